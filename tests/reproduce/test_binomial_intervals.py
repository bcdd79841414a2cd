"""Expected widths are exact."""

import csv
import math

import pytest

from lidp.reproduce import reproduce


def test_binomial_widths_equal_a_sum_over_all_outcomes(tmp_path):
    from scipy import stats

    reproduce("binomial-intervals", out=tmp_path)
    with (tmp_path / "binomial-intervals" / "binomial-intervals.csv").open() as file:
        rows = {(row["interval"], int(row["trials"])): row for row in csv.DictReader(file)}
    lower = upper = 0.0
    for ones in range(11):
        chance = math.comb(10, ones) * 0.1**ones * 0.9 ** (10 - ones)
        interval = stats.binomtest(ones, 10).proportion_ci(0.95, method="exact")
        lower += chance * interval.low
        upper += chance * interval.high
    row = rows["Clopper-Pearson", 10]
    assert float(row["below"]) == pytest.approx(0.1 - lower, rel=1e-5)
    assert float(row["above"]) == pytest.approx(upper - 0.1, rel=1e-5)
