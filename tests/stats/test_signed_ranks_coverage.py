"""Coverage of signed ranks at independent canaries that have the claimed curve exactly, and how the simulation catches mistakes.

A test of a valid method fails with probability 1e-4 (``assert_covers``).
"""

import numpy as np
import pytest
from scipy.special import logit

from lidp import Scores, SignedRanks
from lidp.curves import PointCurve
from lidp.testing.simulations import assert_breaks, assert_covers, randomized_response
from tests.stats.curve_nulls import (
    EventAlone,
    GaussianAlone,
    LaplaceAlone,
    OptimisticGaussian,
    coins_of,
    gaussian_scores,
    laplace_scores,
    mixture_scores,
    refutations,
    sampled_event,
    sampled_scores,
)

BETA = 0.05
NULLS = {
    "gaussian": (GaussianAlone(1.0), gaussian_scores(1.0)),
    "much noise": (GaussianAlone(0.2), gaussian_scores(0.2)),
    "little noise": (GaussianAlone(3.0), gaussian_scores(3.0)),
    "laplace": (LaplaceAlone(0.7), laplace_scores(0.7)),
    "dp-sgd": (EventAlone(sampled_event()), sampled_scores()),
}


@pytest.mark.parametrize(("trials", "canaries"), [(1, 60), pytest.param(2, 600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("null", NULLS)
def test_covers_mechanisms_with_the_claimed_curve(null, trials, canaries):
    curve, law = NULLS[null]
    alarms = refutations(SignedRanks(curve), coins_of(law, trials, canaries), 200, seed=70)
    assert_covers(alarms, 200, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.05, 0.2])
@pytest.mark.parametrize("null", NULLS)
def test_covers_over_many_repetitions(null, beta):
    curve, law = NULLS[null]
    alarms = refutations(SignedRanks(curve), coins_of(law, 1, 10_000), 2000, seed=71, beta=beta)
    assert_covers(alarms, 2000, beta)


@pytest.mark.slow
@pytest.mark.parametrize("null", NULLS)
def test_covers_with_log_odds(null):
    curve, law = NULLS[null]
    alarms = refutations(SignedRanks(curve, log_odds=True), coins_of(law, 1, 3000), 1000, seed=72)
    assert_covers(alarms, 1000, BETA)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_covers_in_one_direction(direction):
    curve, law = NULLS["dp-sgd"]
    alarms = refutations(SignedRanks(curve, direction=direction), coins_of(law, 1, 1000), 200, seed=73)
    assert_covers(alarms, 200, BETA)


@pytest.mark.parametrize("canaries", [1, 2, 20, pytest.param(1000, marks=pytest.mark.slow)])
def test_covers_randomized_response(canaries):
    """The law of a pure point has one certainty: the test is a count of right guesses."""
    draw = randomized_response(1, canaries, 1.0)
    alarms = refutations(SignedRanks(PointCurve(1.0, 0.0)), draw, 300, seed=74, delta=1e-5)
    assert_covers(alarms, 300, BETA)


@pytest.mark.slow
def test_covers_rules_that_look_at_all_outputs():
    """Scores of one canary may use the outputs about others, as long as those are independent."""
    law = gaussian_scores(1.0)

    def draw(rng):
        coins = rng.integers(0, 2, (1, 1000))
        values = law(rng, coins)
        ranks = np.argsort(np.argsort(values))
        return Scores(scores=logit((ranks + 0.5) / 1000) + 0.3 * np.roll(np.sign(values), 1), coins=coins)

    assert_covers(refutations(SignedRanks(GaussianAlone(1.0)), draw, 200, seed=75), 200, BETA)


@pytest.mark.slow
def test_dependent_canaries_are_not_covered():
    """The hypothesis includes independence: a mechanism with the curve and dependent canaries may fall, as the method says."""
    alarms = refutations(SignedRanks(GaussianAlone(1.0)), coins_of(mixture_scores(1.0), 1, 300), 800, seed=76)
    assert_breaks(alarms, 800, BETA)


def test_simulation_catches_a_curve_that_promises_too_much():
    alarms = refutations(SignedRanks(OptimisticGaussian(1.0, 0.75)), coins_of(gaussian_scores(1.0), 1, 4000), 60, seed=77)
    assert_breaks(alarms, 60, BETA)


def test_simulation_catches_weights_that_follow_the_coins():
    """Ranking by a score that knows the coin is no function of the outputs."""

    def draw(rng):
        coins = rng.integers(0, 2, (1, 1000))
        values = gaussian_scores(1.0)(rng, coins) - 0.5
        right = (values > 0) == (coins == 1)
        return Scores(scores=np.where(right, values, values / 2), coins=coins)

    assert_breaks(refutations(SignedRanks(GaussianAlone(1.0), log_odds=True), draw, 60, seed=78), 60, BETA)
