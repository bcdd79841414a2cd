"""How often canaries took part, and what they added, from sums over all steps."""

import math

import numpy as np
import pytest
from scipy import stats

from lidp.diagnosis.participation import participation

EXPONENT = math.log(1 / 0.02)
CANARIES, STEPS = 40, 100


def sums(rng, *, rate, contribution, noise, length=1.0):
    """Return the columns of inserted canaries whose gradients have this length."""
    along = contribution * length * (rng.random((STEPS, CANARIES)) < rate) + noise * rng.standard_normal((STEPS, CANARIES))
    counts = np.full(CANARIES, float(STEPS))
    return {
        "products": length * along.sum(axis=0),
        "squares": (along**2).sum(axis=0),
        "lengths": length**2 * counts,
        "counts": counts,
    }


def measured(columns, noise):
    """Return limits if the variance of the noise is known."""
    everything = [(np.arange(CANARIES), (noise**2, noise**2))]
    return participation(**columns, variances=everything, tail_exponent=EXPONENT)


@pytest.mark.parametrize(("rate", "contribution", "noise", "length"), [(0.1, 1.0, 0.5, 1.0), (0.5, 2.0, 1.0, 0.3)])
def test_limits_hold(rate, contribution, noise, length):
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(400):
        columns = sums(rng, rate=rate, contribution=contribution, noise=noise, length=length)
        limits = measured(columns, noise)
        truths = ((limits.rate, rate), (limits.contribution, contribution), (limits.product, rate * contribution))
        wrong += any(not lower <= truth <= upper for (lower, upper), truth in truths)
    # They fail together with probability at most 6 x 0.02; this bound is exceeded by chance with probability 1e-6.
    assert wrong <= stats.binom.ppf(1 - 1e-6, 400, 0.12)


def test_if_contributions_vary_lower_limits_hold_for_the_largest_and_for_the_rate():
    rng, noise = np.random.default_rng(4), 0.5
    for _ in range(50):
        added = rng.choice([1.0, 10.0], (STEPS, CANARIES)) * (rng.random((STEPS, CANARIES)) < 0.2)
        along = added + noise * rng.standard_normal((STEPS, CANARIES))
        columns = sums(rng, rate=0.0, contribution=0.0, noise=1.0)
        columns |= {"products": along.sum(axis=0), "squares": (along**2).sum(axis=0)}
        limits = measured(columns, noise)
        assert 5 < limits.contribution[0] < 10
        assert 0.05 < limits.rate[0] < 0.2


def test_without_noise_contribution_and_rate_are_known_well():
    limits = measured(sums(np.random.default_rng(1), rate=0.2, contribution=1.5, noise=1e-6), 1e-6)
    assert limits.contribution == pytest.approx((1.5, 1.5), rel=1e-4)
    assert 0.17 < limits.rate[0] < 0.2 < limits.rate[1] < 0.23


def test_under_much_noise_nothing_is_known():
    limits = measured(sums(np.random.default_rng(2), rate=0.01, contribution=1.0, noise=50.0), 50.0)
    assert limits.rate == (0.0, 1.0)
    assert limits.contribution[0] == 0
    assert limits.contribution[1] > 100


def test_gradients_must_have_one_length_and_noise_a_limit():
    columns = sums(np.random.default_rng(3), rate=0.1, contribution=1.0, noise=1.0)
    unknown = [(np.arange(CANARIES), (0.0, math.inf))]
    assert participation(**columns, variances=unknown, tail_exponent=EXPONENT) is None
    uneven = columns | {"lengths": columns["lengths"] * np.linspace(0.5, 1, CANARIES)}
    assert measured(uneven, 1.0) is None
    assert measured(columns | {"lengths": np.zeros(CANARIES)}, 1.0) is None
    assert measured(columns | {"counts": np.zeros(CANARIES)}, 1.0) is None
