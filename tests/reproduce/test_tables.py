"""Rows are selected, grouped and averaged; tables survive a round trip through CSV files."""

import pytest

from lidp.reproduce.tables import average, group, select, sorted_groups, write_table
from tests.reproduce.outputs import read_table

ROWS = [
    {"method": "b", "trials": 2, "epsilon": 0.5},
    {"method": "a", "trials": 2, "epsilon": 0.25},
    {"method": "b", "trials": 2, "epsilon": 1.5},
]


def test_select_returns_the_rows_with_all_values():
    assert select(ROWS, method="b", trials=2) == [ROWS[0], ROWS[2]]
    assert select(ROWS, method="b", trials=3) == []


def test_group_keeps_the_order_of_first_appearance():
    assert list(group(ROWS, "method", "trials").items()) == [(("b", 2), [ROWS[0], ROWS[2]]), (("a", 2), [ROWS[1]])]


def test_sorted_groups_begin_a_row_with_the_values_that_its_rows_share():
    assert sorted_groups(ROWS, "method") == [({"method": "a"}, [ROWS[1]]), ({"method": "b"}, [ROWS[0], ROWS[2]])]


def test_average_sorts_and_gives_the_standard_error_of_the_mean():
    first, second = average(ROWS, "method", "trials")
    assert first == {"method": "a", "trials": 2, "epsilon_hat": 0.25, "standard_error": 0.0, "repetitions": 1}
    assert second["epsilon_hat"] == 1.0
    assert second["standard_error"] == pytest.approx(0.5)  # √(.5² + .5²) / √2
    assert second["repetitions"] == 2


def test_write_table_writes_a_csv_file_with_numbers_of_six_digits(tmp_path):
    table = [
        {"method": "coin wager", "trials": 12, "epsilon": 0.25, "factor": ""},
        {"method": "x, y", "trials": 1, "epsilon": 2e-7, "factor": 3.5},
    ]
    write_table(tmp_path / "a.csv", table)
    assert read_table(tmp_path / "a.csv") == table
    write_table(tmp_path / "b.csv", [{"epsilon": 0.123456789}])
    assert (tmp_path / "b.csv").read_text() == "epsilon\n0.123457\n"
