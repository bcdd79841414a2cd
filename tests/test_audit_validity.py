"""Audits of mechanisms whose ε is known: false alarms at the exact ε, power below it, and what must not raise either."""

import math
import time
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

import lidp
from lidp import (
    Claim,
    ClopperPearson,
    CoinFlip,
    CoinWager,
    Decorrelated,
    FixedThreshold,
    LeaveOneOut,
    LiftedBetting,
    Neighbours,
    ReplaceOne,
    SelfNormalised,
    Target,
    Verdict,
)
from lidp.canaries.sphere import UniformSphere
from lidp.designs.trial_record import TrialRecord
from lidp.engine.audit import scores_of
from lidp.mechanisms.gaussian import GaussianSum, InnerProduct
from lidp.stats.gaussian_curve import sigma_for
from lidp.testing.simulations import assert_breaks, assert_covers
from lidp.trials.scoring import Scene
from lidp.trials.trial import TrialSetup, failed_record, lay_out, run_trials
from tests.engine import Bits, NoisyCount, Numbers, RandomizedResponse, closeness, itself

BETA = 0.05
# The true ε lies on the grid, and rejecting it is a bound above it by one step: so few ε make audits fast.
WAGER = CoinWager(resolution=0.25, largest=4.0)
BETTING = LiftedBetting(resolution=0.25, largest=4.0)
JUST_BELOW = 1e-6


def refutations(target, claim, repeats, seed=0, **options):
    """Audits that refute the claim; it is made a hair smaller than the truth, so that rejecting the truth counts."""
    near = Claim(claim.epsilon - JUST_BELOW, claim.delta, claim.neighbours)
    return sum(
        lidp.audit(target, claim=near, seed=seed + repeat, **options).verdict is Verdict.REFUTED
        for repeat in range(repeats)
    )


EXACT = {
    "laplace": (Target(NoisyCount(1.0), Bits(), itself), Claim(1.0), CoinFlip(2)),
    "laplace, pairs": (Target(NoisyCount(1.0), Bits(), itself), Claim(1.0), LeaveOneOut(1, 1)),
    "gaussian": (Target(NoisyCount(sigma_for(1.0, 1e-3), "gaussian"), Bits(), itself), Claim(1.0, 1e-3), CoinFlip(2)),
    "randomized response": (Target(RandomizedResponse(1.0), Bits(), itself), Claim(1.0), CoinFlip(1)),
}


def method_of(design):
    return WAGER if isinstance(design, CoinFlip) else BETTING


@pytest.mark.parametrize("name", list(EXACT))
def test_false_alarms(name):
    target, claim, design = EXACT[name]
    alarms = refutations(target, claim, 60, design=design, trials=150, method=method_of(design))
    assert_covers(alarms, 60, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(EXACT))
def test_false_alarms_at_length(name):
    target, claim, design = EXACT[name]
    alarms = refutations(target, claim, 400, seed=1000, design=design, trials=400, method=method_of(design))
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


def test_failing_when_a_canary_is_in_raises_no_alarms():
    target = Target(FailsByAnswer(1.0), Bits(), itself)
    for design in (CoinFlip(1), LeaveOneOut(1, 1)):
        alarms = refutations(target, Claim(1.0), 60, design=design, trials=200, method=method_of(design))
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
    return scores_of(records, LeaveOneOut(1, 1))


HALF = FixedThreshold(0.5)


@pytest.mark.parametrize("method", [LiftedBetting(resolution=0.05, largest=1.0), ClopperPearson(threshold=HALF)], ids=str)
def test_dying_when_a_canary_is_in_raises_no_alarms(method):
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


def test_slowing_down_when_a_canary_is_in_changes_nothing():
    target = Target(SlowByData(), Bits(), itself)
    options = {"claim": Claim(1.0), "design": CoinFlip(1), "trials": 100, "stop_when": "never"}
    one, two = (lidp.audit(target, workers=workers, **options) for workers in (1, 2))
    assert one == two
    assert (one.scores.flips()[1] == two.scores.flips()[1]).all()


# Score helpers keep the test valid.


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


@pytest.mark.parametrize("name", list(HELPERS))
@pytest.mark.parametrize("design", [CoinFlip(8), LeaveOneOut(8, 8), ReplaceOne(8, 8)], ids=lambda d: type(d).__name__)
def test_score_helpers_cover_on_pure_noise(name, design):
    target = Target(PureNoise(6), UniformSphere(6), HELPERS[name])
    claim = Claim(0.25, 0.0, design.neighbours)
    alarms = refutations(target, claim, 50, design=design, trials=60, method=method_of(design))
    assert_covers(alarms, 50, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(HELPERS))
@pytest.mark.parametrize("design", [CoinFlip(8), LeaveOneOut(8, 8)], ids=lambda d: type(d).__name__)
def test_score_helpers_cover_at_the_exact_epsilon(name, design):
    dimension, delta = 3, 1e-2  # few dimensions: strong interference between canaries
    target = Target(GaussianSum(sigma_for(1.0, delta), dimension), UniformSphere(dimension), HELPERS[name])
    alarms = refutations(target, Claim(1.0, delta), 200, design=design, trials=150, method=method_of(design))
    assert_covers(alarms, 200, BETA)


@dataclass(frozen=True)
class SubtractsAll:
    """The broken variant: all K inserted canaries are subtracted from held-out scores, K-1 from inserted ones."""

    auxiliary: int = 0
    sequential: bool = False

    def score_trial(self, scene: Scene):
        scores = InnerProduct().many(scene.output, scene.tested)
        # An inserted canary leaves itself out, a held-out one any of the inserted ones.
        held_out = any(k in scene.others[k] for k in range(len(scene.tested)))
        for k, canary in enumerate(scene.tested):
            others = scene.inserted if held_out else scene.inserted[scene.others[k]]
            scores[k] -= float(np.sum(others @ canary))
        return scores


def test_subtracting_all_in_replace_one_refutes_a_mechanism_that_releases_nothing():
    @dataclass(frozen=True)
    class Same:
        """One canary, again and again: the strongest correlation there is."""

        def draw(self, rng, size):
            return np.tile(np.array([1.0, 0.0]), (size, 1))

    claim = Claim(0.25, 0.0, "replace-one")
    options = {"design": ReplaceOne(4, 4), "trials": 60, "method": BETTING}
    broken = refutations(Target(PureNoise(2), Same(), SubtractsAll()), claim, 30, **options)
    assert_breaks(broken, 30, BETA)
    right = refutations(Target(PureNoise(2), Same(), HELPERS["decorrelated"]), claim, 30, **options)
    assert_covers(right, 30, BETA)


def test_decorrelated_scores_are_stronger_where_canaries_interfere():
    dimension = 12
    mechanism = GaussianSum(1.0, dimension)
    options = {"claim": Claim(9.0, 1e-5), "design": LeaveOneOut(12, 12), "trials": 300, "stop_when": "never"}
    plain = lidp.audit(Target(mechanism, UniformSphere(dimension), InnerProduct()), **options)
    better = lidp.audit(Target(mechanism, UniformSphere(dimension), HELPERS["decorrelated"]), **options)
    assert better.bound.epsilon > plain.bound.epsilon + 0.2


def test_self_normalised_scores_remove_what_differs_between_models():
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
def test_bad_helpers(options):
    with pytest.raises(lidp.InvalidArgument):
        SelfNormalised(closeness, **options)


# Power, and the planner that foretells it.


def gaussian_target(epsilon, delta, share, dimension):
    return Target(GaussianSum(share * sigma_for(epsilon, delta), dimension), UniformSphere(dimension), InnerProduct())


@pytest.mark.slow
def test_half_the_noise_is_refuted_within_the_planned_budget():
    claim, dimension = Claim(1.0, 1e-5), 500
    mu = 2 / sigma_for(1.0, 1e-5)
    from lidp.stats.gaussian_curve import gaussian_epsilon

    planned = lidp.plan(
        claim, suspect=gaussian_epsilon(mu, 1e-5), canaries=64, dimension=dimension, power=0.95, repeats=100
    )
    budget = planned.recommended
    assert budget is not None
    target = gaussian_target(1.0, 1e-5, 0.5, dimension)
    trials = budget.models // budget.design.models_per_trial
    found = sum(
        lidp.audit(target, claim=claim, design=budget.design, trials=trials, seed=seed).verdict is Verdict.REFUTED
        for seed in range(50)
    )
    assert found >= 45


@pytest.mark.slow
def test_the_planner_is_right():
    """Power of real audits within 5 points of what the planner said."""
    claim, suspect, dimension = Claim(0.5, 1e-5), 3.0, 60
    planned = lidp.plan(claim, suspect=suspect, canaries=16, dimension=dimension, power=0.8, repeats=600)
    row = planned.rows[0]
    assert row.models is not None
    target = gaussian_target(suspect, 1e-5, 1.0, dimension)
    found = [
        lidp.audit(target, claim=claim, design=row.design, trials=row.models, seed=10_000 + seed).verdict is Verdict.REFUTED
        for seed in range(600)
    ]
    assert np.mean(found) == pytest.approx(row.power, abs=0.05)


def test_a_plan_reads_well():
    planned = lidp.plan(Claim(0.5, 1e-5), suspect=4.0, canaries=32, repeats=20, models=16, seconds_per_model=60)
    assert [type(row.design).__name__ for row in planned.rows] == ["CoinFlip", "LeaveOneOut"]
    best = planned.recommended
    assert best is not None
    assert best.at_models == 16
    assert 0 < best.epsilon < 4
    assert 0 <= best.power <= 1
    assert "canaries by coin flips and coin-wager" in planned.sentence()
    assert "minutes" in planned.sentence() or "seconds" in planned.sentence()
    assert planned.to_dict()["recommended"]["models"] == best.models


def test_a_plan_that_cannot_be():
    with pytest.raises(lidp.InvalidArgument, match="suspect must be above"):
        lidp.plan(Claim(2.0, 1e-5), suspect=1.0)
    with pytest.raises(lidp.InvalidArgument, match="delta"):
        lidp.plan(Claim(2.0), suspect=3.0)
    with pytest.raises(lidp.InvalidArgument, match="add-remove"):
        lidp.plan(Claim(2.0, 1e-5, "replace-one"), suspect=3.0)


# Ways in which scoring itself could tell the arms apart, each once a bug.


def test_a_score_that_fails_for_some_canaries_is_no_evidence():
    """The mechanism releases nothing; one canary in many has no score. Failing the whole run would refute it."""
    target = Target(lambda dataset, rng: 0.0, Numbers(), lambda output, canary: math.log(canary + 1.5))
    alarms = refutations(target, Claim(0.5), 12, design=LeaveOneOut(1, 32), trials=100, method=BETTING)
    assert_covers(alarms, 12, BETA)


def test_a_contribution_that_fails_for_some_canaries_is_no_evidence():
    class Few:
        def draw(self, rng, size):
            return rng.integers(0, 20, size)

    def contribution(canary, other):
        return 1.0 / other if other else 1 // 0

    target = Target(lambda dataset, rng: 0.0, Few(), Decorrelated(lambda output, canary: float(canary), contribution))
    alarms = refutations(target, Claim(0.5), 12, design=CoinFlip(8), trials=200, method=WAGER)
    assert_covers(alarms, 12, BETA)


def test_scores_that_look_at_the_place_of_others_are_no_evidence():
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

        def score_trial(self, scene):
            missing = [int(np.setdiff1d(np.arange(len(scene.inserted)), places)[0]) for places in scene.others]
            return np.array([float(scene.output[k] == canary) for k, canary in zip(missing, scene.tested, strict=True)])

    claim = Claim(epsilon, 0.0, "replace-one")
    alarms = refutations(Target(local, Coins(), ByPlace()), claim, 20, design=ReplaceOne(8, 8), trials=150, method=BETTING)
    assert_covers(alarms, 20, BETA)


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


@pytest.mark.parametrize("mechanism", [EverySecond(0.9), EverySecondOfMany(0.9), EverySecondOfMany(-0.9)])
def test_memory_that_holds_nothing_of_the_data_raises_no_alarms(mechanism):
    """If one arm always came first, what is added in every second call would shift it, and refute nearly every time."""
    target = Target(mechanism, Bits(), itself)
    options = {"design": LeaveOneOut(1, 1), "trials": 200, "method": BETTING}
    assert_covers(refutations(target, Claim(1.0), 30, **options), 30, BETA)


class CountingScore:
    """A score with memory: the output, and a bonus in the first of every two blocks of calls."""

    def __init__(self, block):
        self.block, self.calls = block, 0

    def __call__(self, output, canary):
        self.calls += 1
        return output + 3.0 * ((self.calls - 1) // self.block % 2 == 0)


@pytest.mark.parametrize("design", [LeaveOneOut(2, 2), ReplaceOne(2, 2)], ids=["leave-one-out", "replace-one"])
def test_a_score_with_memory_raises_no_alarms(design):
    def noise(dataset, rng):
        return rng.laplace()

    def refuted(seed):
        target = Target(noise, Bits(), CountingScore(2))
        claim = Claim(0.5, 0.0, design.neighbours)
        return lidp.audit(target, claim=claim, design=design, trials=100, method=BETTING, seed=seed).verdict

    alarms = sum(refuted(seed) is Verdict.REFUTED for seed in range(30))
    assert_covers(alarms, 30, BETA)


@pytest.mark.parametrize("workers", [1, 2])
def test_either_arm_of_leave_one_out_may_run_first(workers):
    """Half of the trials begin with either, whoever runs them, alone or many at a time."""
    order = []

    def mechanism(dataset, rng):
        order.append(len(dataset))
        return 0.0

    setup = TrialSetup(Target(mechanism, Bits(), itself), LeaveOneOut(1, 1), 0)
    for index in range(200):
        run_trials(setup, [index])
    first = order[::2]
    assert 60 < sum(first) < 140  # of fair coins: outside with probability 1e-8
    options = {"claim": Claim(1.0), "design": LeaveOneOut(2, 2), "trials": 30, "stop_when": "never"}
    target = Target(NoisyCount(1.0), Bits(), itself)
    one, other = lidp.audit(target, **options), lidp.audit(target, workers=workers, **options)
    np.testing.assert_array_equal(one.scores.to_arrays()["inserted"], other.scores.to_arrays()["inserted"])


LARGE = {
    "coins": CoinFlip(20_000),
    "pairs": CoinFlip(20_000, Neighbours.REPLACE_ONE),
    "leave-one-out": LeaveOneOut(20_000, 1),
    "replace-one": ReplaceOne(20_000, 20_000),
}


@pytest.mark.parametrize("design", LARGE.values(), ids=LARGE)
def test_memory_grows_with_the_number_of_canaries_not_with_its_square(design):
    class Sum:
        def __call__(self, output, canary):
            return output

        def many(self, output, canaries):
            return np.full(len(canaries), output)

    setup = TrialSetup(Target(lambda dataset, rng: float(np.sum(dataset)), Numbers(), Sum()), design, 0)
    run_trials(setup, [0])
    tracemalloc.start()
    try:
        run_trials(setup, [0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6, "the indices of all others alone take 1.6 or 3.2 GB"


def test_others_are_what_they_were():
    coins = lay_out(TrialSetup(Target(NoisyCount(1.0), Numbers(), itself), CoinFlip(50), 0), 4)
    before = np.concatenate([[0], np.cumsum(coins[0])[:-1]]).astype(int)
    others = coins[1][0].others
    assert [list(places) for places in others] == [list(range(count)) for count in before]
    for design, left_out in ((LeaveOneOut(5, 3), 4), (ReplaceOne(5, 3), None)):
        arms = {arm.name: arm for arm in lay_out(TrialSetup(Target(NoisyCount(1.0), Numbers(), itself), design, 0), 0)[1]}
        assert [sorted({0, 1, 2, 3, 4} - set(places)) for places in arms["inserted"].others] == [[0], [1], [2], [3], [4]]
        missing = [sorted({0, 1, 2, 3, 4} - set(places)) for places in arms["held_out"].others]
        assert len(missing) == 3
        assert all(len(one) == 1 and left_out in (None, one[0]) for one in missing)


@dataclass(frozen=True)
class Vectors:
    """Canaries that are long vectors, in an array or in a list."""

    in_a_list: bool

    def draw(self, rng, size):
        found = 10 * rng.standard_normal((size, 3))
        return list(found) if self.in_a_list else found


@pytest.mark.parametrize("in_a_list", [False, True])
@pytest.mark.parametrize("design", [LeaveOneOut(4, 2), ReplaceOne(4, 2)], ids=repr)
def test_a_score_that_changes_canaries_in_place_changes_no_data(design, in_a_list):
    """Data of both arms, and the canaries that other scores may subtract, are as they were drawn."""
    norms = []

    def mechanism(dataset, rng):
        norms.append([np.linalg.norm(record) for record in dataset])
        return 0.0

    def normalises(output, canary):
        canary /= np.linalg.norm(canary)
        return 0.0

    def contribution(canary, other):
        return float(np.linalg.norm(other))

    setup = TrialSetup(Target(mechanism, Vectors(in_a_list), Decorrelated(normalises, contribution)), design, 5)
    records = [run_trials(setup, [index])[0] for index in range(4)]
    for index, record in enumerate(records):
        lengths = np.linalg.norm(np.array(lay_out(setup, index)[1][0].inserted), axis=1)
        np.testing.assert_allclose(record.arrays["inserted"], lengths - lengths.sum())
    assert min(min(one) for one in norms) > 1.001
