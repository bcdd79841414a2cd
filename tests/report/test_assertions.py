"""The page of a session's assertions."""

import pytest

from lidp import InvalidArgument
from lidp.report.assertions import AssertionRow, SessionReport


def row(**changes):
    return AssertionRow(
        **{
            "test": "test_a.py::test_it",
            "call": 1,
            "mechanism": "noisy_count",
            "claim": "(1, 0)-DP under add-remove neighbours",
            "verdict": "not refuted",
            "bound": "ε ≥ 0.4",
            "runs": 50_000,
            "planned": 50_000,
            "failure_probability": 4.5e-7,
            "seed": 7,
            "explanation": "",
            **changes,
        }
    )


def report(*rows):
    return SessionReport.of(rows, failure_probability=1e-6, budget="quick", seed=5)


REFUTED = row(test="test_a.py::test_b", verdict="refuted", bound="ε ≥ 1.01", runs=151)
REPEATED = row(test="test_a.py::test_b", verdict="refuted", runs=0, failure_probability=0.0, repeats=True)


def test_summary_counts_assertions_runs_and_probability():
    assert report(row(), REFUTED, REPEATED).summary() == (
        "2 assertions, 1 refuted, 1 rerun of a refuted one, 50,151 runs, budget quick, "
        "false-alarm probability 9e-07 of 1e-06 used, --dp-seed=5"
    )
    assert report(row()).summary().startswith("1 assertion, 0 refuted, 50,000 runs, ")


def test_rows_are_in_the_order_of_tests_and_calls():
    rows = [row(call=2), row(test="a"), REPEATED, row(), REFUTED]
    assert [(one.test[-1], one.call, one.repeats) for one in report(*rows).rows] == [
        ("a", 1, False),
        ("b", 1, False),
        ("b", 1, True),
        ("t", 1, False),
        ("t", 2, False),
    ]


def test_row_survives_as_plain_data():
    assert AssertionRow.from_dict(REPEATED.to_dict()) == REPEATED


def test_page_has_every_number_and_no_script():
    page = report(row(), REFUTED).page()
    for text in (
        "1 of 2 assertions refuted",
        "151 of 50,000",
        "4.5e-07",
        "ε ≥ 1.01",
        "noisy_count",
    ):
        assert text in page
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_hostile_text_is_escaped():
    hostile = "</pre><script>alert(1)</script>\x1b[2J\u202e"
    page = report(row(test=hostile, mechanism=hostile, claim=hostile, bound=hostile, explanation=hostile)).page()
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("&lt;script&gt;") >= 5


def test_page_of_a_session_without_assertions_says_so():
    assert "No test asserted privacy." in report().page()


def test_write_makes_the_folder_and_names_what_is_in_its_way(tmp_path):
    path = report(row()).write(tmp_path / "new" / "dp.html")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(InvalidArgument, match="the folder of the report cannot be made"):
        report().write(path / "below.html")
