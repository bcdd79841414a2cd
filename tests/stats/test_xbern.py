"""Moments and limits of exchangeable Bernoulli vectors against brute force and multiprecision."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lidp import Bernstein, InvalidArgument, MethodNotApplicable, Wilson
from lidp.stats.xbern import (
    check_order,
    histogram_moments,
    mean_limit,
    moment_table,
    moments,
    tail_histogram,
    variance_coefficients,
    variance_limit,
)


def brute_force_moment(row, order):
    subsets = list(itertools.combinations(row, order))
    return sum(math.prod(subset) for subset in subsets) / len(subsets)


@pytest.mark.parametrize("canaries", range(1, 9))
def test_moments_equal_the_average_over_subsets(canaries):
    rows = np.array(list(itertools.product((0, 1), repeat=canaries)))
    for order in range(1, canaries + 1):
        expected = np.mean([brute_force_moment(row, order) for row in rows])
        assert moments(rows, canaries)[order - 1] == pytest.approx(expected, abs=1e-14)
        for row in rows:
            table = moment_table(canaries, canaries)
            assert table[order - 1, row.sum()] == pytest.approx(brute_force_moment(row, order), abs=1e-14)


@pytest.mark.parametrize(("canaries", "level"), [(k, level) for k in (2, 3, 5, 8) for level in (1, 2, 3, 4) if level <= k])
def test_variance_is_exact_for_every_law(canaries, level):
    """E[m_l²] from the coefficients equals the expectation over an arbitrary exchangeable law."""
    rng = np.random.default_rng(canaries * 10 + level)
    law = rng.dirichlet(np.ones(canaries + 1))  # of the number of ones
    table = moment_table(canaries, canaries)
    mu = table @ law
    coefficients = variance_coefficients(canaries, level)
    involved = np.array([mu[j - 1] if j <= canaries else 0.0 for j in range(level, 2 * level + 1)])
    assert coefficients @ involved == pytest.approx(float(table[level - 1] ** 2 @ law), rel=1e-12)


def test_more_moments_than_canaries_are_refused():
    with pytest.raises(MethodNotApplicable, match="at least 4 canaries"):
        moments(np.ones((3, 2)), 4)
    with pytest.raises(InvalidArgument, match="0 and 1"):
        moments(np.full((3, 2), 0.5), 1)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 6),
    st.lists(st.integers(-3, 3), min_size=1, max_size=5, unique=True) | st.just(list(range(-9, 10))),
    st.booleans(),
    st.integers(0, 10**6),
    st.booleans(),
)
@example(12, 4, list(range(-9, 10)), False, 1, True)  # many thresholds, more trials than canaries
@example(2, 6, list(range(-9, 10)), True, 1, False)  # and fewer
def test_tail_histogram_equals_counts_of_indicators(trials, canaries, thresholds, strict, seed, failing):
    scores = np.random.default_rng(seed).integers(-8, 9, (trials, canaries)).astype(float)
    if failing:
        scores[::3] = np.nan
    grid = np.sort(np.array(thresholds, dtype=float))
    beyond = scores[..., None] > grid if strict else scores[..., None] >= grid
    counts = beyond.sum(axis=1)
    expected = np.stack([np.bincount(counts[:, i], minlength=canaries + 1) for i in range(len(grid))])
    assert (tail_histogram(scores, grid, strict=strict) == expected).all()


def test_histogram_moments_equal_direct_ones():
    scores = np.random.default_rng(1).standard_normal((50, 8))
    grid = np.array([-1.0, 0.0, 0.7])
    result = histogram_moments(tail_histogram(scores, grid), 8)
    for i, threshold in enumerate(grid):
        assert result[:, i] == pytest.approx(moments((scores >= threshold).astype(int), 8), abs=1e-13)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("mean", ["1e-9", "0.0001", "0.3", "0.97"])
@pytest.mark.parametrize("spread", ["1e-6", "0.002", "0.5"])
def test_limit_solves_its_equation_in_multiprecision(mean, spread, upper):
    linear, constant = 0.05, 0.9
    result = variance_limit(np.array([float(mean)]), linear, constant, float(spread), upper=upper)[0]
    with mpmath.workdps(50):
        q, c = mpmath.mpf(float(mean)), mpmath.mpf(float(spread))
        half_b = q + c * mpmath.mpf(linear) / 2
        root = mpmath.sqrt(half_b**2 - (1 + c) * (q**2 - c * mpmath.mpf(constant)))
        expected = min(1, (half_b + root) / (1 + c)) if upper else max(0, (half_b - root) / (1 + c))
    assert result == pytest.approx(float(expected), rel=1e-9, abs=1e-15)


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 1), st.floats(0.01, 1), st.floats(0, 0.8), st.floats(1e-4, 1), st.booleans())
def test_limit_is_the_extreme_point_of_a_fine_grid(mean, linear, constant, spread, upper):
    """Also where the variance is negative at the mean, where a root of the quadratic alone would be wrong."""
    x = np.linspace(0, 1, 20001)
    allowed = np.sqrt(spread * np.maximum(linear * x + constant - x * x, 0))
    inside = x[x - mean <= allowed] if upper else x[mean - x <= allowed]
    if not len(inside):
        return
    result = variance_limit(np.array([mean]), linear, constant, spread, upper=upper)[0]
    extreme = inside.max() if upper else inside.min()
    assert abs(result - extreme) <= 1e-4 or (result > extreme if upper else result < extreme)


@pytest.mark.parametrize("order", [0, 3, 6, -2, 2.0, True])
def test_orders_that_are_not_powers_of_two_are_refused(order):
    with pytest.raises(InvalidArgument, match="power of two"):
        check_order(order)


def test_orders_above_the_number_of_canaries_are_refused():
    with pytest.raises(
        MethodNotApplicable, match="order 8 needs at least 8 canaries per trial, these scores have 7; use order=4"
    ):
        check_order(8, canaries=7)


def as_histogram(indicators):
    return tail_histogram(np.asarray(indicators, dtype=float), np.array([0.5]))


def test_higher_orders_are_narrower_for_independent_canaries_and_not_for_equal_ones():
    rng = np.random.default_rng(3)
    independent = as_histogram(rng.random((4096, 256)) < 0.5)
    half_widths = [
        float(Wilson(order).upper(independent, 0.05)[0] - Wilson(order).lower(independent, 0.05)[0]) / 2
        for order in (1, 2, 4, 8)
    ]
    assert half_widths[0] > half_widths[1] > half_widths[2]
    printed = Wilson(4, as_printed=True)
    printed_width = float(printed.upper(independent, 0.05)[0] - printed.lower(independent, 0.05)[0]) / 2
    assert half_widths[2] < printed_width < half_widths[1], "the misprint costs most of what the fourth order gains"
    equal = as_histogram(np.repeat(rng.random((4096, 1)) < 0.5, 256, axis=1))
    widths = [float(Wilson(order).upper(equal, 0.05)[0] - Wilson(order).lower(equal, 0.05)[0]) for order in (1, 2, 4)]
    assert widths[0] < widths[1] < widths[2], "measuring dependence that is full only costs failure probability"


@pytest.mark.parametrize("kind", [Wilson, Bernstein])
@pytest.mark.parametrize("order", [1, 2, 4, 8])
def test_limits_enclose_the_mean_and_shrink_with_trials(kind, order):
    rng = np.random.default_rng(4)
    previous = 1.0
    for trials in (10, 100, 1000, 10000):
        histogram = as_histogram(rng.random((trials, 8)) < 0.3)
        low, high = float(kind(order).lower(histogram, 0.05)[0]), float(kind(order).upper(histogram, 0.05)[0])
        mean = histogram_moments(histogram, 1)[0, 0]
        assert 0 <= low <= mean <= high <= 1
        assert high - low < previous
        previous = high - low


@pytest.mark.parametrize("kind", [Wilson, Bernstein])
@pytest.mark.parametrize("value", [0, 1])
def test_limits_when_all_indicators_agree(kind, value):
    histogram = as_histogram(np.full((20, 4), value))
    for order in (1, 2, 4):
        low, high = float(kind(order).lower(histogram, 0.05)[0]), float(kind(order).upper(histogram, 0.05)[0])
        assert (low == 0 and 0 < high < 1) if value == 0 else (0 < low < 1 and high == pytest.approx(1))


def test_bernstein_solves_the_inequality_of_the_paper():
    """Order 1 as printed: x - mean = sqrt(2 log(1/β) x(1-x) / n) + 2 log(1/β) / (3n)."""
    histogram = as_histogram(np.random.default_rng(5).random((300, 1)) < 0.2)
    mean = histogram[0, 1] / 300
    level = math.log(1 / 0.05) / 300
    for method, slack in ((Bernstein(1), level / 3), (Bernstein(1, as_printed=True), 2 * level / 3)):
        x = float(method.upper(histogram, 0.05)[0])
        assert x - mean == pytest.approx(math.sqrt(2 * level * x * (1 - x)) + slack)
        x = float(method.lower(histogram, 0.05)[0])
        assert mean - x == pytest.approx(math.sqrt(2 * level * x * (1 - x)) + slack)


def test_bernstein_as_printed_is_wider():
    histogram = as_histogram(np.random.default_rng(6).random((300, 4)) < 0.2)
    for order in (1, 2, 4):
        assert Bernstein(order, as_printed=True).upper(histogram, 0.05) > Bernstein(order).upper(histogram, 0.05)
        assert Bernstein(order, as_printed=True).lower(histogram, 0.05) < Bernstein(order).lower(histogram, 0.05)


@pytest.mark.parametrize("method", [lambda: Wilson(2, as_printed=True), lambda: Bernstein(8, as_printed=True)])
def test_as_printed_is_refused_for_orders_that_were_not_printed(method):
    with pytest.raises(InvalidArgument, match="as_printed"):
        method()


def test_upper_limit_is_at_most_one():
    moments_ = np.array([[1.0], [1.0]])
    assert mean_limit(moments_, 4, spread=0.1, slack=0.2, upper=True)[0] == 1.0


@pytest.mark.parametrize("kind", [Wilson, Bernstein])
@pytest.mark.parametrize("failure_probability", [1e-12, 1e-16, 1e-17, 1e-40])
@pytest.mark.parametrize("order", [1, 4])
def test_tiny_failure_probabilities_give_wide_limits(kind, failure_probability, order):
    histogram = as_histogram(np.random.default_rng(7).random((100, 4)) < 0.3)
    low, high = (
        float(kind(order).lower(histogram, failure_probability)[0]),
        float(kind(order).upper(histogram, failure_probability)[0]),
    )
    wider = kind(order).lower(histogram, 0.05)[0] - low, high - kind(order).upper(histogram, 0.05)[0]
    assert min(wider) > 0


def test_infinite_deviation_excludes_nothing():
    mean = np.array([0.3])
    assert variance_limit(mean, 1.0, 0.0, np.inf, upper=True)[0] == 1
    assert variance_limit(mean, 1.0, 0.0, np.inf, upper=False)[0] == 0


def test_half_widths_on_the_methods_page():
    """N = 4096, K = 256, independent, rate .5: distance of the lower limit from the mean at β = .025."""
    histogram = as_histogram(np.random.default_rng(3).random((4096, 256)) < 0.5)
    mean = histogram_moments(histogram, 1)[0, 0]
    widths = [mean - m.lower(histogram, 0.025)[0] for m in (Wilson(2), Wilson(4, as_printed=True), Wilson(4))]
    assert widths == pytest.approx([0.00513, 0.00473, 0.00354], abs=0.0001)
