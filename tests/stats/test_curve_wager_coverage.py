"""Coverage of the curve wager: mechanisms that have exactly the claimed curve are refuted at most β of the time.

A refutation at any trial counts, so that every early stop is covered. Predictions are learned, or given by someone who knows the
mechanism and is as bold as can be. Each test fails for a valid method in one of 10,000 simulations. A selection of small cases
runs with all tests, the rest with the slow ones.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from lidp import Claim, Scores
from lidp.curves import GaussianCurve, LaplaceCurve, PointCurve, PrivacyCurve
from lidp.stats.curve_wager import CurveWager
from lidp.testing.simulations import assert_breaks, assert_covers, gaussian_coins, randomized_response

BETA = 0.05
STEPS, RATE, NOISE = 20, 0.1, 0.8
DPSGD = Claim.dpsgd(noise_multiplier=NOISE, sampling_rate=RATE, steps=STEPS).curve


@dataclass(frozen=True)
class Null:
    """A pair of output distributions, and the curve that they have exactly."""

    curve: PrivacyCurve
    delta: float

    def losses(self, rng, coins):
        """Return the privacy loss log P1/P0 of an independent output for each coin."""
        shape = coins.shape
        if isinstance(self.curve, GaussianCurve):
            mu = self.curve.mu
            return mu * (mu * coins + rng.standard_normal(shape)) - mu**2 / 2
        if isinstance(self.curve, LaplaceCurve):
            scale = self.curve.noise_scale
            x = coins + rng.laplace(scale=scale, size=shape)
            # Rounded: beyond 0 and 1 the loss is constant, and the last bits of this difference would reveal the coin.
            return np.round((np.abs(x) - np.abs(x - 1)) / scale, 9)
        if isinstance(self.curve, PointCurve):
            told = np.where(rng.random(shape) < 1 / (1 + math.exp(-self.curve.at_epsilon)), coins, 1 - coins)
            size = np.where(rng.random(shape) < self.curve.delta, 40.0, self.curve.at_epsilon)
            return np.where(size == 40.0, 2 * coins - 1, 2 * told - 1) * size
        total = np.zeros(shape)
        for _ in range(STEPS):
            z = (rng.random(shape) < RATE) * coins + NOISE * rng.standard_normal(shape)
            total += np.log(1 - RATE + RATE * np.exp((z - 0.5) / NOISE**2))
        return total


NULLS = {
    "gaussian": Null(GaussianCurve(0.5), 1e-5),
    "gaussian, little noise": Null(GaussianCurve(2.0), 1e-5),
    "laplace": Null(LaplaceCurve(0.8), 0.0),
    "dpsgd": Null(DPSGD, 1e-5),
    "point": Null(PointCurve(0.5, 0.02), 0.02),
}
SYMMETRIC = [name for name in NULLS if name != "dpsgd"]


def independent(null, rng, trials, canaries):
    coins = rng.integers(0, 2, (trials, canaries))
    return null.losses(rng, coins), coins


def duplicated(null, rng, trials, canaries):
    """The output is about one canary; all canaries have its score. Which one, nobody knows."""
    coins = rng.integers(0, 2, (trials, canaries))
    chosen = rng.integers(0, canaries, trials)
    losses = null.losses(rng, coins[np.arange(trials), chosen][:, None])
    return np.repeat(losses, canaries, axis=1), coins


def mixture_over_runs(null, rng, trials, canaries):
    """A run reveals all of its coins equally well: the sizes of their privacy losses are one number, with the law of the pair.

    Given its size, the loss of a pair with the same curve in both directions points to the right side with probability
    1/(1 + e^-size), and so does that of every coin here. So each pair of neighbours has the curve exactly. A run with a large
    size reveals everything.
    """
    coins = rng.integers(0, 2, (trials, canaries))
    sizes = np.abs(null.losses(rng, coins[:, :1]))
    right = rng.random(coins.shape) < 1 / (1 + np.exp(-sizes))
    return np.where(right, 1, -1) * (2 * coins - 1) * sizes, coins


DEPENDENCE = {"independent": independent, "duplicated": duplicated, "mixture": mixture_over_runs}


def alarms(method, null, dependence, trials, canaries, repeats, *, boldness=None, seed=0):
    """Count the repetitions in which the claim falls. With ``boldness``, predictions are the true log-odds times this."""
    count = 0
    for sequence in np.random.SeedSequence([seed, canaries]).spawn(repeats):
        values, coins = dependence(null, np.random.default_rng(sequence), trials, canaries)
        scores = Scores(scores=values if boldness is None else boldness * values, coins=coins)
        count += method.bound(scores, delta=null.delta, failure_probability=BETA).fell_at is not None
    return count


def wager(null, boldness=None, **options):
    return CurveWager(null.curve, log_odds=boldness is not None, **options)


@pytest.mark.parametrize("boldness", [None, 1.3], ids=["learned", "bold"])
@pytest.mark.parametrize("name", ["gaussian", "point"])
def test_few_trials_of_eight_coins(name, boldness):
    null = NULLS[name]
    for dependence in DEPENDENCE.values():
        count = alarms(wager(null, boldness), null, dependence, 24, 8, 60, boldness=boldness)
        assert_covers(count, 60, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("boldness", [None, 1.0, 1.3], ids=["learned", "oracle", "bold"])
@pytest.mark.parametrize(("trials", "canaries"), [(1500, 1), (250, 8), (60, 64), (12, 512)])
@pytest.mark.parametrize("dependence", ["independent", "duplicated"])
@pytest.mark.parametrize("name", NULLS)
def test_claim_that_is_exactly_true(name, dependence, trials, canaries, boldness):
    null = NULLS[name]
    count = alarms(wager(null, boldness), null, DEPENDENCE[dependence], trials, canaries, 200, boldness=boldness)
    assert_covers(count, 200, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("boldness", [1.0, 1.5], ids=["oracle", "bold"])
@pytest.mark.parametrize(("trials", "canaries"), [(250, 8), (60, 64), (20, 512), (1, 4096)])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_runs_that_reveal_all_their_coins_alike(name, trials, canaries, boldness):
    null = NULLS[name]
    count = alarms(wager(null, boldness), null, mixture_over_runs, trials, canaries, 200, boldness=boldness)
    assert_covers(count, 200, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("name", NULLS)
def test_one_direction_alone(name, direction):
    null = NULLS[name]
    method = wager(null, 1.0, direction=direction)
    for dependence in (independent, mixture_over_runs) if name in SYMMETRIC else (independent,):
        assert_covers(alarms(method, null, dependence, 60, 64, 200, boldness=1.0), 200, BETA)


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "canaries", "whole_run"), [(64, 16, True), (64, 16, False), (4, 256, True)])
def test_point_whose_runs_are_revealed_with_probability_delta(trials, canaries, whole_run):
    draw = randomized_response(trials, canaries, 0.5, 0.02, whole_run)
    method = CurveWager(PointCurve(0.5, 0.02))
    count = 0
    for sequence in np.random.SeedSequence(3).spawn(300):
        bound = method.bound(draw(np.random.default_rng(sequence)), delta=0.02, failure_probability=BETA)
        count += bound.fell_at is not None
    assert_covers(count, 300, BETA)


@pytest.mark.parametrize("repeats", [40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("boldness", [None, 1.0], ids=["learned", "oracle"])
def test_canary_by_canary_where_outputs_are_independent(repeats, boldness):
    null = NULLS["gaussian"]
    method = wager(null, boldness, canary_by_canary=True)
    assert_covers(alarms(method, null, independent, 4, 128, repeats, boldness=boldness), repeats, BETA)


@pytest.mark.parametrize("repeats", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_canary_by_canary_refutes_a_true_claim_if_a_run_reveals_all_coins_alike(repeats):
    """The documented weakness: μ-GDP holds, independence does not. The curve wager itself is valid for the same scores."""
    null = NULLS["gaussian, little noise"]
    broken = alarms(wager(null, 1.0, canary_by_canary=True), null, mixture_over_runs, 4, 128, repeats, boldness=1.0)
    assert_breaks(broken, repeats, BETA)
    assert_covers(alarms(wager(null, 1.0), null, mixture_over_runs, 4, 128, repeats, boldness=1.0), repeats, BETA)


def test_bound_on_the_noise_is_above_the_truth():
    """A mechanism with 1.25 times less noise than claimed: the bound falls below its true noise at most β of the time."""
    true = 1 / 1.25
    null = NULLS["gaussian"]
    count, draw = 0, gaussian_coins(48, 64, 0.5 / true)
    for sequence in np.random.SeedSequence(5).spawn(40):
        bound = wager(null).bound(draw(np.random.default_rng(sequence)), delta=1e-5, failure_probability=BETA)
        count += bound.effective_noise is not None and bound.effective_noise < true
    assert_covers(count, 40, BETA)
