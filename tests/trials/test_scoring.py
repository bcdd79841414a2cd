"""Scores and score helpers: they stay valid, and they are as strong as they should be."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import lidp
from lidp import (
    Claim,
    CoinFlip,
    Decorrelated,
    LeaveOneOut,
    ReplaceOne,
    SelfNormalised,
    Target,
)
from lidp.canaries.sphere import UniformSphere
from lidp.curves.gaussian import sigma_for
from lidp.mechanisms.gaussian import GaussianSum, InnerProduct
from lidp.testing.simulations import assert_breaks, assert_covers
from lidp.trials.scoring import ScoringContext
from tests.refutations import BETA, BETTING, WAGER, count_refutations, method_for
from tests.sample_targets import Numbers, closeness


@dataclass(frozen=True)
class PureNoise:
    """Releases noise: 0-DP."""

    dimension: int

    def __call__(self, dataset, rng):
        return rng.standard_normal(self.dimension)


class Inner:
    """The inner product of two canaries: what one adds to the other's score."""

    def __call__(self, canary, other):
        return float(np.dot(canary, other))

    def many(self, canary, others):
        return np.asarray(others) @ canary


HELPERS = {
    "z": SelfNormalised(InnerProduct(), 16),
    "rank": SelfNormalised(InnerProduct(), 16, "rank"),
    "decorrelated": Decorrelated(InnerProduct(), Inner()),
}


ARMS = [pytest.param(design, marks=pytest.mark.slow) for design in (LeaveOneOut(8, 8), ReplaceOne(8, 8))]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("name", list(HELPERS))
@pytest.mark.parametrize("design", [CoinFlip(8), *ARMS], ids=lambda d: type(d).__name__)
def test_score_helper_does_not_refute_pure_noise(name, design):
    target = Target(PureNoise(6), UniformSphere(6), HELPERS[name])
    claim = Claim(0.25, 0.0, design.neighbours)
    alarms = count_refutations(target, claim, 50, design=design, trials=60, method=method_for(design))
    assert_covers(alarms, 50, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(HELPERS))
@pytest.mark.parametrize("design", [CoinFlip(8), LeaveOneOut(8, 8)], ids=lambda d: type(d).__name__)
def test_score_helper_does_not_refute_the_exact_epsilon(name, design):
    dimension, delta = 3, 1e-2  # few dimensions: strong interference between canaries
    target = Target(GaussianSum(sigma_for(1.0, delta), dimension), UniformSphere(dimension), HELPERS[name])
    alarms = count_refutations(target, Claim(1.0, delta), 200, design=design, trials=150, method=method_for(design))
    assert_covers(alarms, 200, BETA)


@dataclass(frozen=True)
class SubtractsAll:
    """The broken variant: all K inserted canaries are subtracted from held-out scores, K-1 from inserted ones."""

    auxiliary: int = 0
    sequential: bool = False

    def score_trial(self, context: ScoringContext):
        scores = InnerProduct().many(context.output, context.tested)
        # An inserted canary leaves itself out, a held-out one any of the inserted ones.
        held_out = any(k in context.others[k] for k in range(len(context.tested)))
        for k, canary in enumerate(context.tested):
            others = context.inserted if held_out else context.inserted[context.others[k]]
            scores[k] -= float(np.sum(others @ canary))
        return scores


@pytest.mark.slow
def test_score_that_subtracts_all_canaries_refutes_pure_noise_and_decorrelated_does_not():
    @dataclass(frozen=True)
    class Same:
        """One canary, again and again: the strongest correlation there is."""

        def draw(self, rng, size):
            return np.tile(np.array([1.0, 0.0]), (size, 1))

    claim = Claim(0.25, 0.0, "replace-one")
    options = {"design": ReplaceOne(4, 4), "trials": 60, "method": BETTING}
    broken = count_refutations(Target(PureNoise(2), Same(), SubtractsAll()), claim, 30, **options)
    assert_breaks(broken, 30, BETA)
    right = count_refutations(Target(PureNoise(2), Same(), HELPERS["decorrelated"]), claim, 30, **options)
    assert_covers(right, 30, BETA)


def test_decorrelated_scores_are_stronger_where_canaries_interfere():
    dimension = 12
    mechanism = GaussianSum(1.0, dimension)
    options = {"claim": Claim(9.0, 1e-5), "design": LeaveOneOut(12, 12), "trials": 300, "stop_when": "never"}
    plain = lidp.audit(Target(mechanism, UniformSphere(dimension), InnerProduct()), **options)
    better = lidp.audit(Target(mechanism, UniformSphere(dimension), HELPERS["decorrelated"]), **options)
    assert better.bound.epsilon > plain.bound.epsilon + 0.2


def test_self_normalised_scores_are_stronger_where_models_drift():
    def drifting(dataset, rng):
        return 30 * rng.standard_normal(), [value + 0.3 * rng.standard_normal() for value in dataset]

    def score(output, canary):
        drift, released = output
        return drift + closeness(released, canary)

    options = {"claim": Claim(9.0, 1e-5), "design": CoinFlip(8), "trials": 150, "stop_when": "never"}
    plain = lidp.audit(Target(drifting, Numbers(), score), **options)
    better = lidp.audit(Target(drifting, Numbers(), SelfNormalised(score, 32)), **options)
    assert better.bound.epsilon > plain.bound.epsilon + 0.5


@pytest.mark.parametrize("options", [{"auxiliary": 0}, {"auxiliary": 1}, {"kind": "median"}])
def test_self_normalised_refuses_invalid_options(options):
    with pytest.raises(lidp.InvalidArgument):
        SelfNormalised(closeness, **options)


def test_score_that_fails_for_some_canaries_is_no_evidence():
    """The mechanism releases nothing; one canary in many has no score. Failing the whole run would refute it."""
    target = Target(lambda dataset, rng: 0.0, Numbers(), lambda output, canary: math.log(canary + 1.5))
    alarms = count_refutations(target, Claim(0.5), 12, design=LeaveOneOut(1, 32), trials=100, method=BETTING)
    assert_covers(alarms, 12, BETA)


@pytest.mark.slow
def test_contribution_that_fails_for_some_canaries_is_no_evidence():
    class Few:
        def draw(self, rng, size):
            return rng.integers(0, 20, size)

    def contribution(canary, other):
        return 1.0 / other if other else 1 // 0

    target = Target(lambda dataset, rng: 0.0, Few(), Decorrelated(lambda output, canary: float(canary), contribution))
    alarms = count_refutations(target, Claim(0.5), 12, design=CoinFlip(8), trials=200, method=WAGER)
    assert_covers(alarms, 12, BETA)


@pytest.mark.slow
def test_score_that_reads_the_indices_of_others_is_no_evidence():
    """Local randomized response at exactly ε under replace-one; the score reads the answers at the places of the others."""
    epsilon = 0.5

    class Coins:
        def draw(self, rng, size):
            return rng.integers(0, 2, size)

    def local(dataset, rng):
        lies = rng.random(len(dataset)) < 1 / (1 + math.exp(epsilon))
        return np.where(lies, 1 - np.asarray(dataset), dataset)

    @dataclass(frozen=True)
    class ByPlace:
        auxiliary: int = 0
        sequential: bool = False

        def score_trial(self, context):
            missing = [int(np.setdiff1d(np.arange(len(context.inserted)), places)[0]) for places in context.others]
            return np.array([float(context.output[k] == canary) for k, canary in zip(missing, context.tested, strict=True)])

    claim = Claim(epsilon, 0.0, "replace-one")
    alarms = count_refutations(
        Target(local, Coins(), ByPlace()), claim, 20, design=ReplaceOne(8, 8), trials=150, method=BETTING
    )
    assert_covers(alarms, 20, BETA)
