"""``audit_pair`` on mechanisms that keep their claim: the rate of false refutations."""

import copy

import numpy as np
import pytest

from lidp import AuditFailed, Claim, Verdict, audit_pair
from lidp.testing.simulations import assert_covers
from lidp.trials.executor import Executor
from tests.pairs.mechanisms import Laplace, randomized_response

ONE = Claim(1.0)


@pytest.mark.parametrize("epsilon", [1.0, *(pytest.param(value, marks=pytest.mark.slow) for value in (0.5, 2.0))])
def test_tight_null_is_refuted_at_most_as_often_as_stated(epsilon):
    """Randomized response has exactly the ε that it claims, in both directions and on every output."""
    mechanism = randomized_response(epsilon)
    alarms = sum(
        audit_pair(mechanism, 0, 1, claim=Claim(epsilon), runs=600, seed=seed).verdict is Verdict.REFUTED
        for seed in range(150)
    )
    assert_covers(alarms, 150, 0.05)


@pytest.mark.slow
def test_tight_null_with_delta_is_refuted_at_most_as_often_as_stated():
    """With probability δ everything is revealed, else randomized response: (ε, δ)-DP, tightly."""
    epsilon, delta = 1.0, 0.02
    base = randomized_response(epsilon)

    def mechanism(dataset, rng):
        return ("revealed", dataset) if rng.random() < delta else ("", int(base(dataset, rng)))

    results = [audit_pair(mechanism, 0, 1, claim=Claim(epsilon, delta), runs=1000, seed=seed) for seed in range(100)]
    assert_covers(sum(result.verdict is Verdict.REFUTED for result in results), 100, 0.05)
    # and the same is far from (ε, 0)-DP
    assert audit_pair(mechanism, 0, 1, claim=Claim(epsilon), runs=5000).verdict is Verdict.REFUTED


def test_mechanism_that_reveals_earlier_coins_is_not_refuted():
    """Its outputs tell coins of earlier runs, which are known by then: nothing to win."""

    class Remembers:
        def __init__(self):
            self.last = 0

        def __call__(self, dataset, rng):
            before, self.last = self.last, dataset
            return (before, int(randomized_response(1.0)(dataset, rng)))

    verdicts = [audit_pair(Remembers(), 0, 1, claim=ONE, runs=400, seed=seed).verdict for seed in range(60)]
    assert_covers(verdicts.count(Verdict.REFUTED), 60, 0.05)


def test_memory_addresses_of_outputs_are_no_evidence():
    """Equal records of two data sets that were loaded one after the other."""
    loaded = [["".join(["record ", str(i)]) for i in range(3)] for _ in range(2)]

    def mechanism(dataset, rng):
        return np.array([dataset[1][rng.integers(3)]], dtype=object)

    result = audit_pair(mechanism, (0, loaded[0]), (1, loaded[1]), claim=Claim(0.5), runs=2000)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.bound.epsilon == 0

    class Record:
        pass

    with pytest.raises(AuditFailed, match="which is Record; wrap it"):
        audit_pair(lambda dataset, rng: Record(), 0, 1, claim=ONE)


@pytest.mark.parametrize(
    "noise",
    [
        lambda rng: np.random.default_rng(rng.bit_generator.seed_seq.generate_state(1)).laplace(),
        lambda rng: copy.deepcopy(rng).laplace(),
        lambda rng: np.random.laplace(),  # noqa: NPY002
    ],
    ids=["seeded", "copied", "global"],
)
def test_mechanism_that_derives_a_generator_from_rng_is_not_refuted(noise):
    result = audit_pair(lambda dataset, rng: dataset + noise(rng), 0, 1, claim=ONE, runs=2000, failure_probability=1e-3)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.bound.epsilon > 0.5


def test_order_in_which_many_returns_outputs_is_no_evidence():
    class Sorted(Laplace):
        def many(self, dataset, size, rng):
            return np.sort(rng.laplace(size=size))

    verdicts = [audit_pair(Sorted(1.0), 0, 1, claim=Claim(0.05), runs=2000, seed=seed).verdict for seed in range(100)]
    assert_covers(verdicts.count(Verdict.REFUTED), 100, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_correct_mechanism_is_refuted_for_none_of_200_seeds(scale):
    claim = Claim(1 / scale)
    options = {"claim": claim, "runs": 20_000, "failure_probability": 1e-3}
    verdicts = [audit_pair(Laplace(scale), 0, 1, seed=seed, **options).verdict for seed in range(200)]
    assert verdicts.count(Verdict.REFUTED) == 0


def test_search_among_correct_pairs_is_refuted_at_most_as_often_as_stated():
    verdicts = [
        audit_pair(Laplace(1.0), pairs=((k, k + 1) for k in range(20)), claim=ONE, runs=1500, seed=seed).verdict
        for seed in range(60)
    ]
    assert_covers(verdicts.count(Verdict.REFUTED), 60, 0.05)


class LosesBlocks(Executor):
    """Loses every block in which a run has died, as worker processes do; here without the processes."""

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def run(self, setup, indices):
        for index in indices:
            self.mechanism.deaths = 0
            records = setup.run([index])
            yield [setup.lost_record(index, "died", seconds=0.0)] if self.mechanism.deaths else records


class DyingResponse:
    """Randomized response, part of whose answer 1 is to die: exactly ε-DP, and dying is e^ε times as frequent on d1."""

    def __init__(self, epsilon, death):
        self.odds = np.exp(epsilon)
        self.death = death
        self.deaths = 0

    def __call__(self, dataset, rng):
        factor = self.odds if dataset else 1.0
        drawn = rng.random()
        if drawn < self.death * factor:
            self.deaths += 1
        return int(drawn < factor / (1 + self.odds))


def test_tight_null_whose_deaths_lose_blocks_is_refuted_at_most_as_often_as_stated():
    epsilon, alarms, lost = 1.0, 0, 0
    for seed in range(150):
        mechanism = DyingResponse(epsilon, death=0.002)
        executor = LosesBlocks(mechanism)
        result = audit_pair(mechanism, 0, 1, claim=Claim(epsilon), runs=600, seed=seed, executor=executor)
        alarms += result.verdict is Verdict.REFUTED
        lost += result.failed_runs
    assert lost > 150 * 60  # blocks were lost, and many were not
    assert lost < 150 * 500
    assert_covers(alarms, 150, 0.05)


class Counting:
    """A classifier of a user's own: log-odds by the counts of the two coins for each output."""

    def __init__(self):
        self.counts = {}

    def predict(self, outputs):
        counts = [self.counts.get(value, (1.0, 1.0)) for value in outputs.identities.tolist()]
        return np.array([np.log(one / zero) for zero, one in counts])

    def learn(self, outputs, coins):
        for value, coin in zip(outputs.identities.tolist(), coins, strict=True):
            zero, one = self.counts.get(value, (1.0, 1.0))
            self.counts[value] = (zero + (not coin), one + coin)

    def explain(self):
        return "counts"


@pytest.mark.slow
def test_tight_null_with_a_classifier_of_the_user_is_refuted_at_most_as_often_as_stated():
    classifier = Counting()  # the same object throughout: every audit teaches a copy
    verdicts = [
        audit_pair(randomized_response(1.0), 0, 1, claim=ONE, runs=600, seed=seed % 75, classifier=classifier).verdict
        for seed in range(150)
    ]
    assert verdicts[:75] == verdicts[75:]
    assert_covers(verdicts[:75].count(Verdict.REFUTED), 75, 0.05)


@pytest.mark.slow
def test_tight_null_after_a_search_is_refuted_at_most_as_often_as_stated():
    """All pairs are equally tight, so the search chooses by chance; a bound that reused its runs would be wrong."""
    pairs = [(0, 1), (1, 0)] * 4
    verdicts = [
        audit_pair(randomized_response(1.0), pairs=pairs, claim=ONE, runs=700, seed=seed).verdict for seed in range(100)
    ]
    assert_covers(verdicts.count(Verdict.REFUTED), 100, 0.05)
