"""One trial: the order of its arms, its memory, the canaries that scores may subtract, and copies of canaries."""

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

import lidp
from lidp import (
    Claim,
    CoinFlip,
    Decorrelated,
    LeaveOneOut,
    Neighbours,
    ReplaceOne,
    Target,
)
from lidp.trials.trial import TrialSetup, lay_out, run_trials
from tests.sample_targets import Bits, NoisyCount, Numbers, itself


@pytest.mark.parametrize("workers", [1, 2])
def test_each_arm_of_leave_one_out_runs_first_in_half_of_the_trials(workers):
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
def test_memory_is_linear_in_the_number_of_canaries(design):
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


def test_others_of_each_design_leave_out_the_canary_that_they_should():
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
        vectors = 10 * rng.standard_normal((size, 3))
        return list(vectors) if self.in_a_list else vectors


@pytest.mark.parametrize("in_a_list", [False, True])
@pytest.mark.parametrize("design", [LeaveOneOut(4, 2), ReplaceOne(4, 2)], ids=repr)
def test_score_that_changes_canaries_in_place_changes_no_data(design, in_a_list):
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
