"""Limits fail as rarely as they say, whatever the dependence they allow."""

import math

import numpy as np
import pytest
from scipy import stats

from lidp.diagnosis.intervals import (
    bisect,
    chernoff_ratios,
    dependent_variance_limits,
    rate_limits,
    tail_exponent_of,
    variance_limits,
)

TAIL = 0.1
EXPONENT = math.log(1 / TAIL)
DRAWS = 4000
LARGEST_COUNT = stats.binom.ppf(1 - 1e-6, DRAWS, TAIL)  # a test fails by chance with probability 1e-6


def misses(limits, truth):
    """Return how often the lower and the upper limit are on the wrong side."""
    lower, upper = np.array(limits).T
    return int((lower > truth).sum()), int((upper < truth).sum())


def test_limits_of_all_numbers_of_trials_share_the_failure_probability():
    shares = [7 * math.exp(-tail_exponent_of(0.05, 7, trials)) for trials in range(1, 10_000)]
    assert 0.0499 < sum(shares) < 0.05


@pytest.mark.parametrize("count", [1, 5, 400])
def test_limits_on_a_variance_are_exact(count):
    squares = 4.0 * np.random.default_rng(count).chisquare(count, DRAWS)
    below, above = misses([variance_limits(value, count, EXPONENT) for value in squares], 4.0)
    least = stats.binom.ppf(1e-6, DRAWS, TAIL)
    assert least <= below <= LARGEST_COUNT
    assert least <= above <= LARGEST_COUNT


def test_limits_on_a_variance_are_those_of_the_chi_squared_distribution():
    for count, exponent in [(3, 2.0), (1000, 12.0), (2e7, 30.0)]:
        lower, upper = variance_limits(count, count, exponent)
        assert lower == pytest.approx(count / stats.chi2.isf(math.exp(-exponent), count), rel=1e-6)
        assert upper == pytest.approx(count / stats.chi2.ppf(math.exp(-exponent), count), rel=1e-6)


def test_without_noise_the_variance_is_zero_and_without_numbers_it_is_unknown():
    assert variance_limits(0.0, 10, EXPONENT) == (0.0, 0.0)
    assert variance_limits(0.0, 0, EXPONENT) == (0.0, math.inf)
    assert dependent_variance_limits(0.0, 0, 0, EXPONENT) == (0.0, math.inf)


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_means_of_dependent_sums_give_valid_limits(shared):
    rng = np.random.default_rng(1)
    common, separate = rng.standard_normal((DRAWS, 30, 1)), rng.standard_normal((DRAWS, 30, 8))
    numbers = math.sqrt(shared) * common + math.sqrt(1 - shared) * separate
    means = (numbers**2).sum(axis=1).mean(axis=1)
    limits = [dependent_variance_limits(value, 30, 30, EXPONENT) for value in means]
    assert max(misses(limits, 1.0)) <= LARGEST_COUNT


def test_upper_limits_stay_valid_if_the_number_of_terms_depends_on_earlier_ones():
    rng = np.random.default_rng(2)
    limits = []
    for _ in range(DRAWS):
        squares = rng.standard_normal(40) ** 2
        # The sum ends where it looks smallest: after the fewest terms with a small mean.
        means = np.cumsum(squares)[9:] / np.arange(10, 41)
        count = 10 + int(np.argmin(means)) if means.min() < 0.7 else 40
        limits.append(dependent_variance_limits(float(squares[:count].sum()), count, 40, EXPONENT))
    assert misses(limits, 1.0)[1] <= LARGEST_COUNT


def test_upper_limits_stay_valid_if_other_canaries_add_to_the_noise():
    rng = np.random.default_rng(3)
    squares = ((rng.standard_normal((DRAWS, 30)) + 0.5) ** 2).sum(axis=1)
    assert misses([dependent_variance_limits(value, 30, 30, EXPONENT) for value in squares], 1.0)[1] <= LARGEST_COUNT


def test_chernoff_ratios_solve_their_equation():
    for exponent, count in [(3.0, 1), (12.0, 50), (20.0, 10**7)]:
        low, high = chernoff_ratios(exponent, count)
        assert low < 1 < high
        for ratio in (low, high):
            assert count / 2 * (ratio - 1 - math.log(ratio)) == pytest.approx(exponent, rel=1e-4)


@pytest.mark.parametrize(("count", "rate"), [(10, 0.3), (1000, 0.01), (1000, 0.97)])
def test_limits_on_a_rate_are_valid_and_close(count, rate):
    successes = np.random.default_rng(count).binomial(count, rate, DRAWS)
    assert max(misses([rate_limits(value, count, EXPONENT) for value in successes], rate)) <= LARGEST_COUNT
    lower, upper = rate_limits(count * rate, count, EXPONENT)
    assert upper - lower < 5 * math.sqrt(rate * (1 - rate) / count) + 0.2 / math.sqrt(count)


def test_limits_on_a_rate_at_the_ends():
    assert rate_limits(0, 100, EXPONENT)[0] == 0
    assert rate_limits(100, 100, EXPONENT)[1] == 1
    assert rate_limits(100, 100, EXPONENT)[0] == pytest.approx(TAIL ** (1 / 100), rel=1e-6)


def test_bisect_finds_where_a_condition_begins_to_hold():
    assert bisect(lambda x: x >= 0.3, 0.0, 1.0) == pytest.approx(0.3)
    assert bisect(lambda x: x >= -1, 0.0, 1.0) == 0.0
    assert bisect(lambda x: x >= 2, 0.0, 1.0) == 1.0
