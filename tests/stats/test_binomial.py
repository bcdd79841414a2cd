"""Binomial limits against scipy and statsmodels."""

import numpy as np
import pytest
from scipy import stats

from lidp import ClopperPearson, Jeffreys, Wilson

proportion = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is in the dev extra")


@pytest.mark.parametrize("successes", [0, 1, 7, 50, 99, 100])
@pytest.mark.parametrize("failure_probability", [0.2, 0.05, 1e-6])
def test_clopper_pearson_equals_scipy(successes, failure_probability):
    histogram = np.array([[100 - successes, successes]])
    # scipy's two-sided interval at 1 - 2β has the one-sided limits at β as its ends.
    interval = stats.binomtest(successes, 100).proportion_ci(1 - 2 * failure_probability, method="exact")
    assert ClopperPearson().lower(histogram, failure_probability)[0] == pytest.approx(interval.low, rel=1e-9)
    assert ClopperPearson().upper(histogram, failure_probability)[0] == pytest.approx(interval.high, rel=1e-9)


@pytest.mark.parametrize("successes", [1, 7, 50, 99])
@pytest.mark.parametrize(("method", "name"), [(Jeffreys(), "jeffreys"), (Wilson(1), "wilson"), (ClopperPearson(), "beta")])
def test_limits_equal_statsmodels(successes, method, name):
    histogram = np.array([[100 - successes, successes]])
    low, high = proportion.proportion_confint(successes, 100, alpha=0.1, method=name)
    assert method.lower(histogram, 0.05)[0] == pytest.approx(low, rel=1e-9)
    assert method.upper(histogram, 0.05)[0] == pytest.approx(high, rel=1e-9)


@pytest.mark.parametrize("failure_probability", [1e-12, 2e-16, 5.6e-17, 1e-30])
def test_tiny_failure_probabilities_are_not_lost_to_rounding(failure_probability):
    """With no success in n trials the upper limit p solves (1-p)^n = β."""
    limit = ClopperPearson().upper(np.array([[50, 0]]), failure_probability)[0]
    assert (1 - limit) ** 50 == pytest.approx(failure_probability, rel=1e-6)


def test_jeffreys_limits_without_successes_or_failures():
    assert Jeffreys().lower(np.array([[10, 0]]), 0.05)[0] == 0
    assert Jeffreys().upper(np.array([[0, 10]]), 0.05)[0] == 1
