"""Audits of mechanisms whose ε is known: the rate of false refutations at the exact ε."""

import math
import time
from dataclasses import dataclass

import numpy as np
import pytest

import lidp
from lidp import (
    Claim,
    ClopperPearson,
    CoinFlip,
    FixedThreshold,
    LeaveOneOut,
    LiftedBetting,
    ReplaceOne,
    Target,
    Verdict,
)
from lidp.curves.gaussian import sigma_for
from lidp.designs.trial_record import TrialRecord
from lidp.engine.scorer import CanaryScorer
from lidp.testing.simulations import assert_breaks, assert_covers
from lidp.trials.trial import TrialSetup, failed_record
from tests.refutations import BETA, BETTING, count_refutations, method_for
from tests.sample_targets import Bits, NoisyCount, RandomizedResponse, itself

EXACT = {
    "laplace": (Target(NoisyCount(1.0), Bits(), itself), Claim(1.0), CoinFlip(2)),
    "laplace, pairs": (Target(NoisyCount(1.0), Bits(), itself), Claim(1.0), LeaveOneOut(1, 1)),
    "gaussian": (Target(NoisyCount(sigma_for(1.0, 1e-3), "gaussian"), Bits(), itself), Claim(1.0, 1e-3), CoinFlip(2)),
    "randomized response": (Target(RandomizedResponse(1.0), Bits(), itself), Claim(1.0), CoinFlip(1)),
}


@pytest.mark.parametrize("name", ["randomized response"])
def test_exact_epsilon_is_refuted_at_most_as_often_as_stated(name):
    target, claim, design = EXACT[name]
    alarms = count_refutations(target, claim, 60, design=design, trials=150, method=method_for(design))
    assert_covers(alarms, 60, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(EXACT))
def test_exact_epsilon_is_refuted_at_most_as_often_as_stated_in_400_audits(name):
    target, claim, design = EXACT[name]
    alarms = count_refutations(target, claim, 400, seed=1000, design=design, trials=400, method=method_for(design))
    assert_covers(alarms, 400, BETA)


@dataclass(frozen=True)
class FailsByAnswer:
    """Randomized response that fails more often when its answer is "in": post-processing, so the ε is the same."""

    epsilon: float

    def __call__(self, dataset, rng):
        answer = RandomizedResponse(self.epsilon)(dataset, rng)
        if rng.random() < (0.6 if answer else 0.05):
            raise RuntimeError("failed")
        return answer


@dataclass(frozen=True)
class SlowByData:
    """Takes longer when a canary is in."""

    def __call__(self, dataset, rng):
        time.sleep(0.01 * len(dataset))
        return RandomizedResponse(1.0)(dataset, rng)


@pytest.mark.slow
def test_mechanism_that_fails_when_a_canary_is_inserted_is_not_refuted():
    target = Target(FailsByAnswer(1.0), Bits(), itself)
    for design in (CoinFlip(1), LeaveOneOut(1, 1)):
        alarms = count_refutations(target, Claim(1.0), 60, design=design, trials=200, method=method_for(design))
        assert_covers(alarms, 60, BETA)


DYING_EPSILON = 0.5


def dying_scores(rng, trials, record):
    """Leave-one-out trials of a mechanism that says 1 or 0, or dies, exactly 0.5-DP: dying is likelier with the canary in.

    ``record(index)`` is how a trial is recorded of which one run or both died.
    """
    odds = math.exp(DYING_EPSILON)
    # Without the canary it dies or says 1 with probability 1/(1 + e^ε), three times in four the former; with it e^ε times as often.
    answers = {name: (1 + odds) * rng.random(trials) / factor for name, factor in (("inserted", odds), ("held_out", 1.0))}
    records = []
    for index in range(trials):
        drawn = {name: values[index] for name, values in answers.items()}
        if min(drawn.values()) < 0.75:
            records.append(record(index))
        else:
            records.append(TrialRecord(index, {name: np.array([float(value < 1)]) for name, value in drawn.items()}))
    return CanaryScorer(LeaveOneOut(1, 1), sequential=False).score(records)


HALF = FixedThreshold(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("method", [LiftedBetting(resolution=0.05, largest=1.0), ClopperPearson(threshold=HALF)], ids=str)
def test_mechanism_that_kills_its_process_when_a_canary_is_inserted_is_not_refuted(method):
    """Of two runs that share a process it is not known which one died. Taking both for failed is a way to break an audit."""
    setup = TrialSetup(Target(itself, Bits(), itself), LeaveOneOut(1, 1), seed=0)
    options = {"delta": 0.0, "failure_probability": BETA}

    def alarms(record):
        rng = np.random.default_rng(1)
        bounds = [method.bound(dying_scores(rng, 8000, record), **options) for _ in range(10)]
        return sum(bound.epsilon > DYING_EPSILON for bound in bounds)

    def both_failed(index):
        unknown = {"inserted": np.array([np.nan]), "held_out": np.array([np.nan])}
        return TrialRecord(index, unknown, dict.fromkeys(unknown, "died"))

    assert_covers(alarms(lambda index: failed_record(setup, index, "died", seconds=0.0)), 10, BETA)
    assert_breaks(alarms(both_failed), 10, BETA)


def test_mechanism_that_slows_down_when_a_canary_is_inserted_has_the_same_result():
    target = Target(SlowByData(), Bits(), itself)
    options = {"claim": Claim(1.0), "design": CoinFlip(1), "trials": 100, "stop_when": "never"}
    one, two = (lidp.audit(target, workers=workers, **options) for workers in (1, 2))
    assert one == two
    assert (one.scores.flips()[1] == two.scores.flips()[1]).all()


class EverySecond:
    """Laplace noise on the number of records, and more in every second call: memory that holds nothing of the data."""

    def __init__(self, more):
        self.more = more
        self.calls = 0

    def __call__(self, dataset, rng):
        self.calls += 1
        return len(dataset) + rng.laplace() + self.more * (self.calls % 2)


class EverySecondOfMany(EverySecond):
    def run_many(self, datasets, rngs):
        return [self(dataset, rng) for dataset, rng in zip(datasets, rngs, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [EverySecond(0.9), *(pytest.param(EverySecondOfMany(more), marks=pytest.mark.slow) for more in (0.9, -0.9))],
)
def test_mechanism_with_memory_of_its_calls_only_is_not_refuted(mechanism):
    """If one arm always came first, what is added in every second call would shift it, and refute nearly every time."""
    target = Target(mechanism, Bits(), itself)
    options = {"design": LeaveOneOut(1, 1), "trials": 200, "method": BETTING}
    assert_covers(count_refutations(target, Claim(1.0), 30, **options), 30, BETA)


class CountingScore:
    """A score with memory: the output, and a bonus in the first of every two blocks of calls."""

    def __init__(self, block):
        self.block, self.calls = block, 0

    def __call__(self, output, canary):
        self.calls += 1
        return output + 3.0 * ((self.calls - 1) // self.block % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("design", [LeaveOneOut(2, 2), ReplaceOne(2, 2)], ids=["leave-one-out", "replace-one"])
def test_score_with_memory_does_not_refute_pure_noise(design):
    def noise(dataset, rng):
        return rng.laplace()

    def refuted(seed):
        target = Target(noise, Bits(), CountingScore(2))
        claim = Claim(0.5, 0.0, design.neighbours)
        return lidp.audit(target, claim=claim, design=design, trials=100, method=BETTING, seed=seed).verdict

    alarms = sum(refuted(seed) is Verdict.REFUTED for seed in range(30))
    assert_covers(alarms, 30, BETA)
