"""Audits by two data sets: false alarms at tight nulls, power, outputs of every kind, and what is refused."""

import copy
import re

import numpy as np
import pytest

import lidp
from lidp import AuditFailed, Claim, InvalidArgument, PairTarget, Verdict, audit_pair
from lidp.pairs.outputs import take_apart
from lidp.testing.simulations import assert_covers
from tests.pairs.mechanisms import Laplace, one_by_one, randomized_response

ONE = Claim(1.0)


# validity


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_false_alarms_at_an_exactly_tight_null(epsilon):
    """Randomized response has exactly the ε that it claims, in both directions and on every output."""
    mechanism = randomized_response(epsilon)
    alarms = sum(
        audit_pair(mechanism, 0, 1, claim=Claim(epsilon), runs=600, seed=seed).verdict is Verdict.REFUTED
        for seed in range(150)
    )
    assert_covers(alarms, 150, 0.05)


def test_false_alarms_when_delta_is_used_up():
    """With probability δ everything is revealed, else randomized response: (ε, δ)-DP, tightly."""
    epsilon, delta = 1.0, 0.02
    base = randomized_response(epsilon)

    def mechanism(dataset, rng):
        return ("revealed", dataset) if rng.random() < delta else ("", int(base(dataset, rng)))

    found = [audit_pair(mechanism, 0, 1, claim=Claim(epsilon, delta), runs=1000, seed=seed) for seed in range(100)]
    assert_covers(sum(result.verdict is Verdict.REFUTED for result in found), 100, 0.05)
    # and the same is far from (ε, 0)-DP
    assert audit_pair(mechanism, 0, 1, claim=Claim(epsilon), runs=5000).verdict is Verdict.REFUTED


def test_false_alarms_of_a_mechanism_that_remembers():
    """Its outputs tell coins of earlier runs, which are known by then: nothing to win."""

    class Remembers:
        def __init__(self):
            self.last = 0

        def __call__(self, dataset, rng):
            before, self.last = self.last, dataset
            return (before, int(randomized_response(1.0)(dataset, rng)))

    verdicts = [audit_pair(Remembers(), 0, 1, claim=ONE, runs=400, seed=seed).verdict for seed in range(60)]
    assert_covers(verdicts.count(Verdict.REFUTED), 60, 0.05)


def test_outputs_are_not_told_apart_by_where_they_lie_in_memory():
    """Equal records of two data sets that were loaded one after the other."""
    loaded = [["".join(["record ", str(i)]) for i in range(3)] for _ in range(2)]

    def mechanism(dataset, rng):
        return np.array([dataset[1][rng.integers(3)]], dtype=object)

    found = audit_pair(mechanism, (0, loaded[0]), (1, loaded[1]), claim=Claim(0.5), runs=2000)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.bound.epsilon == 0

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
def test_mechanisms_that_seed_themselves_from_the_rng(noise):
    found = audit_pair(lambda dataset, rng: dataset + noise(rng), 0, 1, claim=ONE, runs=2000, failure_probability=1e-3)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.bound.epsilon > 0.5


def test_false_alarms_of_many_runs_in_order():
    class Sorted(Laplace):
        def many(self, dataset, size, rng):
            return np.sort(rng.laplace(size=size))

    verdicts = [audit_pair(Sorted(1.0), 0, 1, claim=Claim(0.05), runs=2000, seed=seed).verdict for seed in range(100)]
    assert_covers(verdicts.count(Verdict.REFUTED), 100, 0.05)


def test_global_generators_are_left_as_they_were():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    audit_pair(one_by_one(1.0), 0, 1, claim=ONE, runs=100)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_correct_mechanism_in_two_hundred_of_two_hundred_seeds(scale):
    claim = Claim(1 / scale)
    options = {"claim": claim, "runs": 20_000, "failure_probability": 1e-3}
    verdicts = [audit_pair(Laplace(scale), 0, 1, seed=seed, **options).verdict for seed in range(200)]
    assert verdicts.count(Verdict.REFUTED) == 0


# power


def test_half_the_noise_is_refuted_within_800_runs():
    needed = [audit_pair(Laplace(0.5), 0, 1, claim=ONE, seed=seed).bound.trials for seed in range(20)]
    assert np.median(needed) <= 800


def test_the_bound_comes_close_to_the_truth():
    result = audit_pair(Laplace(1.0), 0, 1, claim=ONE, runs=200_000, stop_when="never")
    assert 0.9 <= result.bound.epsilon <= 1.0
    assert result.verdict is Verdict.NOT_REFUTED


def test_many_and_one_by_one_are_equally_good():
    needed = [audit_pair(one_by_one(0.5), 0, 1, claim=ONE, runs=5000, seed=seed).bound.trials for seed in range(10)]
    assert np.median(needed) <= 800


def test_boosting_finds_what_no_single_column_shows():
    """Which of two bits agree is in their exclusive or only; eight other bits are noise."""
    pytest.importorskip("sklearn")

    def mechanism(dataset, rng):
        bits = rng.integers(0, 2, 10)
        if rng.random() < 0.9:
            bits[7] = bits[3] ^ bits[5] ^ dataset
        return bits

    assert audit_pair(mechanism, 0, 1, claim=ONE, runs=30_000).verdict is Verdict.REFUTED


def test_an_output_that_is_written_over():
    class Buffer:
        def __init__(self):
            self.output = np.zeros(1)

        def __call__(self, dataset, rng):
            self.output[:] = dataset + 1e-3 * rng.normal()
            return self.output

    assert audit_pair(Buffer(), 0, 1, claim=ONE, runs=1000).verdict is Verdict.REFUTED


def test_what_happens_rarely():
    """None in 99 of 100 runs, and then the truth."""
    found = audit_pair(lambda data, rng: data if rng.random() < 0.01 else None, 0, 1, claim=Claim(1.0), runs=20_000)
    assert found.verdict is Verdict.REFUTED
    harmless = audit_pair(lambda data, rng: 1 if rng.random() < 0.01 else None, 0, 1, claim=ONE, runs=5000)
    assert harmless.verdict is Verdict.NOT_REFUTED
    assert harmless.leak.startswith("no output for certain; most of all ")


def test_dicts_of_ever_other_keys():
    found = audit_pair(lambda data, rng: {int(rng.integers(10**9)): data + rng.laplace()}, 0, 1, claim=ONE, runs=3000)
    assert found.verdict is not Verdict.REFUTED


def test_features_of_ones_own():
    def mechanism(dataset, rng):
        word = "".join(rng.choice(list("abcdefgh"), 12))
        return word + ("ab" if dataset else "ba") if rng.random() < 0.9 else word

    options = {"claim": Claim(0.5), "runs": 3000}
    plain = audit_pair(mechanism, 0, 1, **options)
    helped = audit_pair(mechanism, 0, 1, features=lambda word: [word.endswith("ab"), word.endswith("ba")], **options)
    assert plain.verdict is not Verdict.REFUTED
    assert helped.verdict is Verdict.REFUTED
    assert "feature" in helped.leak


def test_bit_patterns():
    """Noise on a grid of its own: equal as numbers go, but the last bits tell."""

    def mechanism(dataset, rng):
        value = rng.normal()
        return np.float64(np.float32(value)) if dataset else value

    assert audit_pair(mechanism, 0, 1, claim=ONE, runs=2000).verdict is not Verdict.REFUTED
    assert audit_pair(mechanism, 0, 1, claim=ONE, runs=2000, bits=True).verdict is Verdict.REFUTED


# outputs of every kind

WRAPS = {
    "bool": lambda bit: bit,
    "int": int,
    "float": float,
    "numpy": lambda bit: np.array([bit, 0.5]),
    "scalar array": lambda bit: np.array(float(bit)),
    "string": lambda bit: "yes" if bit else "no",
    "bytes": lambda bit: b"y" if bit else b"n",
    "tuple": lambda bit: (1, "a", bit),
    "list": lambda bit: [0] * (3 if bit else 2),
    "nested": lambda bit: [[1, [bit]], None],
    "dict": lambda bit: {"a": 1, "b": [bit]},
    "keys": lambda bit: {"a": 1} if bit else {"b": 1},
    "set": lambda bit: {1, 2} if bit else {1},
    "none": lambda bit: None if bit else 1.0,
    "nan": lambda bit: float("nan") if bit else 1.0,
    "infinite": lambda bit: float("inf") if bit else -float("inf"),
    "huge": lambda bit: 10**400 if bit else 1,
    "complex": lambda bit: complex(0, bit),
}


@pytest.mark.parametrize("kind", WRAPS)
def test_outputs_of_every_kind(kind):
    leaky, tight = (randomized_response(epsilon, WRAPS[kind]) for epsilon in (4.0, 1.0))
    refuted = audit_pair(leaky, 0, 1, claim=ONE, runs=1000, seed=1)
    assert refuted.verdict is Verdict.REFUTED
    assert "runs on d0" in refuted.leak
    unlikely = {"failure_probability": 1e-4}
    assert audit_pair(tight, 0, 1, claim=ONE, runs=500, seed=1, **unlikely).verdict is not Verdict.REFUTED


# results


def test_the_same_seed_the_same_result():
    first, second = (audit_pair(Laplace(0.5), 0, 1, claim=ONE, seed=3) for _ in range(2))
    timeless = {"seconds": 0, "trial_seconds": 0, "trials": []}
    assert first.to_dict() | timeless == second.to_dict() | timeless
    other = audit_pair(Laplace(0.5), 0, 1, claim=ONE, seed=4)
    assert (other.scores.flips()[0][:50] != first.scores.flips()[0][:50]).any()


def test_the_scores_of_an_unfinished_audit_say_so():
    def interrupt(progress):
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(lidp.AuditInterrupted) as interrupted:
        audit_pair(Laplace(2.0), 0, 1, claim=ONE, runs=5000, watch=interrupt)
    result = interrupted.value.result
    assert result.bound.trials == result.scores.trials < 5000
    with pytest.raises(lidp.MethodNotApplicable, match="the audit is not finished"):
        lidp.bound(result.scores, "one-run", delta=0)
    assert not audit_pair(Laplace(2.0), 0, 1, claim=ONE, runs=200).scores.stopped_early


def test_a_result_can_be_checked_again():
    result = audit_pair(Laplace(0.5), 0, 1, claim=ONE)
    assert lidp.recheck(result.witness()).epsilon == result.bound.epsilon > 1
    assert result.bound.trials < result.planned_trials
    assert result.witness()["stopped_early"]
    assert result.bound.trials == result.scores.trials
    assert "refuted: Laplace claims (1, 0)-DP" in str(result)
    assert "leak       value" in str(result)
    forged = result.witness() | {"epsilon": 3.0}
    with pytest.raises(InvalidArgument, match=r"states ε ≥ 3\.0"):
        lidp.recheck(forged)


def test_a_run_that_raises_is_kept_and_not_bet_on():
    def mechanism(dataset, rng):
        if rng.random() < 0.2:
            raise RuntimeError("no luck")
        return dataset + rng.laplace(0, 1.0)

    result = audit_pair(mechanism, 0, 1, claim=ONE, runs=2000)
    assert 300 < result.failed_runs < 500
    assert result.verdict is Verdict.NOT_REFUTED
    assert "runs failed (kept, not bet on)" in str(result)


def test_too_few_runs_are_undecided():
    assert audit_pair(Laplace(1e-9), 0, 1, claim=ONE, runs=5).verdict is Verdict.UNDECIDED
    # Nothing is staked on the first runs.
    assert audit_pair(Laplace(1e-9), 0, 1, claim=Claim(0.01), runs=32).verdict is Verdict.UNDECIDED


def test_watching():
    seen = []
    audit_pair(Laplace(1.0), 0, 1, claim=ONE, runs=5000, watch=seen.append)
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert seen[-1].done == seen[-1].planned == 5000
    assert "5,000/5,000 runs" in str(seen[-1])


# choosing data sets


def test_the_search_finds_the_pair_that_leaks():
    """Only the last of many pairs of counts differs by more than the noise was meant for."""
    pairs = [(k, k + 1) for k in range(15)] + [(7, 12)]
    result = audit_pair(Laplace(1.0), pairs=pairs, claim=ONE, runs=8000)
    assert result.verdict is Verdict.REFUTED
    assert 0 < result.preparation_models <= 1600
    assert result.planned_trials == 8000 - 1600


def test_a_search_among_correct_pairs_does_not_refute():
    verdicts = [
        audit_pair(Laplace(1.0), pairs=((k, k + 1) for k in range(20)), claim=ONE, runs=1500, seed=seed).verdict
        for seed in range(60)
    ]
    assert_covers(verdicts.count(Verdict.REFUTED), 60, 0.05)


def test_searches_that_cannot_be():
    with pytest.raises(InvalidArgument, match="pairs is empty"):
        audit_pair(Laplace(1.0), pairs=[], claim=ONE)
    with pytest.raises(InvalidArgument, match="search_share must"):
        audit_pair(Laplace(1.0), pairs=[(0, 1)], search_share=1.5, claim=ONE)
    with pytest.raises(InvalidArgument, match="d0 and d1 are equal"):
        audit_pair(Laplace(1.0), pairs=[(1, 1)], claim=ONE)


# what is refused


def test_equal_data_sets():
    for same in (1, [1, 2], np.arange(3), {"a": np.zeros(2)}):
        with pytest.raises(InvalidArgument, match="d0 and d1 are equal"):
            audit_pair(Laplace(1.0), same, copy.deepcopy(same), claim=ONE)


def test_a_mechanism_that_always_raises():
    def mechanism(dataset, rng):
        raise KeyError("age")

    with pytest.raises(AuditFailed, match="mechanism raises on d0: KeyError: 'age'"):
        audit_pair(mechanism, 0, 1, claim=ONE)


def test_a_mechanism_that_returns_mixed_kinds():
    def mechanism(dataset, rng):
        return "high" if rng.random() < 0.5 else 1.0

    with pytest.raises(AuditFailed, match="returns a (text|number) in one run and a (text|number) in another"):
        audit_pair(mechanism, 0, 1, claim=ONE)


def test_a_mechanism_that_changes_its_data():
    def mechanism(dataset, rng):
        dataset.append(1)
        return len(dataset) + rng.laplace()

    with pytest.raises(AuditFailed, match="changed the data set d0"):
        audit_pair(mechanism, [1], [1, 2], claim=ONE)


def test_a_constant():
    with pytest.raises(AuditFailed, match="does not use the rng"):
        audit_pair(lambda dataset, rng: 7, 0, 1, claim=ONE, runs=1000)


def test_data_that_can_be_read_once():
    with pytest.raises(InvalidArgument, match="d0 can be read only once"):
        audit_pair(lambda data, rng: sum(data) + rng.laplace(), iter([1]), iter([1, 5]), claim=ONE)


def test_features_that_fail():
    with pytest.raises(AuditFailed, match=r"features\(.*\) failed: ZeroDivisionError"):
        audit_pair(one_by_one(1.0), 0, 1, claim=ONE, features=lambda value: 1 / 0)


def test_a_list_in_itself():
    def mechanism(dataset, rng):
        found = [rng.laplace()]
        found.append(found)
        return found

    with pytest.raises(AuditFailed, match="nested too deeply"):
        audit_pair(mechanism, 0, 1, claim=ONE)


def test_classifiers_that_are_none():
    with pytest.raises(InvalidArgument, match="a classifier has predict"):
        audit_pair(one_by_one(1.0), 0, 1, claim=ONE, classifier=3)

    class Short:
        def predict(self, outputs):
            return np.zeros(3)

        def learn(self, outputs, coins):
            pass

        def explain(self):
            return ""

    with pytest.raises(AuditFailed, match="must give 32 finite log-odds"):
        audit_pair(one_by_one(1.0), 0, 1, claim=ONE, classifier=Short())


def test_a_classifier_of_ones_own_sees_coins_after_its_predictions():
    class Sign:
        def __init__(self):
            self.order = []

        def predict(self, outputs):
            self.order.append("predict")
            return np.where(outputs.select(["value"])[:, 0] > 0.5, 1.2, -1.2)

        def learn(self, outputs, coins):
            self.order.append(("learn", len(outputs), len(coins)))

        def explain(self):
            return "above a half"

    own = Sign()
    found = audit_pair(Laplace(0.2), 0, 1, claim=ONE, runs=1000, classifier=own)
    assert found.verdict is Verdict.REFUTED
    assert found.leak == "above a half"
    assert own.order[:2] == ["predict", ("learn", 32, 32)]
    # Of the last block it is shown what the result counts.
    assert sum(step[1] for step in own.order if step != "predict") == found.bound.trials < found.planned_trials


# what leaks, in numbers that fit those of the bound


def counted(leak):
    return [int(number.replace(",", "")) for number in re.findall(r"of ([\d,]+) (?:runs )?on d[01]", leak)]


def wide(dataset, rng):
    """Outputs of so many parts that they are given to boosting."""
    return tuple(rng.laplace(0, 0.4, 5) + dataset)


@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("kind", ["views", "boosted"])
def test_a_leak_counts_the_runs_of_the_bound(kind, failing):
    base = one_by_one(0.4) if kind == "views" else wide

    def mechanism(dataset, rng):
        if failing and rng.random() < 0.1:
            raise ValueError("now and then")
        return base(dataset, rng)

    found = audit_pair(mechanism, 0, 1, claim=Claim(1.0 if kind == "views" else 2.5), runs=6000)
    assert found.verdict is Verdict.REFUTED
    assert found.bound.trials not in (64, 128, 256, 512, 1024, 2048, 4096)  # it fell within a block
    assert sum(counted(found.leak)) == found.bound.trials - found.failed_runs
    ones = int(found.scores.flips()[1][~found.scores.failed[:, 0]].sum())
    assert counted(found.leak)[1] == ones
    whole = audit_pair(mechanism, 0, 1, claim=Claim(9.0), runs=1500)
    assert sum(counted(whole.leak)) == 1500 - whole.failed_runs


def test_a_leak_says_if_it_counts_fewer_runs(monkeypatch):
    monkeypatch.setattr("lidp.pairs.classifier._KEPT", 200)
    found = audit_pair(one_by_one(1.0), 0, 1, claim=Claim(3.0), runs=3000)
    assert sum(counted(found.leak)) < 3000
    assert f"(counted in {sum(counted(found.leak)):,} of the runs)" in found.leak
    assert "counted in" not in audit_pair(one_by_one(1.0), 0, 1, claim=Claim(3.0), runs=150).leak


def test_predictions_do_not_depend_on_where_the_audit_stops():
    stopped = audit_pair(one_by_one(0.4), 0, 1, claim=ONE, runs=3000)
    whole = audit_pair(one_by_one(0.4), 0, 1, claim=ONE, runs=3000, stop_when="never")
    seen = stopped.bound.trials
    np.testing.assert_array_equal(stopped.scores.flips()[0], whole.scores.flips()[0][:seen])
    assert stopped.bound.epsilon == whole.bound.epsilon_after(seen)


def test_arguments_that_are_given_twice():
    with pytest.raises(InvalidArgument, match="do not give them again"):
        audit_pair(PairTarget(Laplace(1.0), 0, 1), 0, 5, claim=ONE)
    with pytest.raises(InvalidArgument, match="d0 and d1 are not given"):
        audit_pair(Laplace(1.0), claim=ONE)
    with pytest.raises(InvalidArgument, match="pairs must give tuples .*, got 1"):
        audit_pair(Laplace(1.0), pairs=[1, 2], claim=ONE)


def test_a_generator_of_pairs_that_fails_says_so_itself():
    def pairs():
        yield (0, 1)
        raise ValueError("no more data")

    with pytest.raises(ValueError, match="no more data"):
        audit_pair(Laplace(1.0), pairs=pairs(), claim=ONE)


def test_known_columns_are_kept_whatever_later_outputs_are():
    """Which columns there are must not depend on outputs yet to come, where there are more than can be kept."""
    known = take_apart([{"early": 1.0, "rare": 2.0}]).look().names
    crowd = [{f"{k}": 0.0 for k in range(400)} for _ in range(3)]
    found = take_apart(crowd).look(known)
    assert found.names[:2] == known
    assert len(found.names) == len(take_apart(crowd).look().names) < 400
    assert np.isnan(found.select(known)).all()


def test_a_mechanism_that_ignores_its_rng():
    with pytest.raises(AuditFailed, match="the same output in 64 runs.*does not use the rng"):
        audit_pair(lambda dataset, rng: np.random.default_rng(0).normal() + dataset, 0, 1, claim=ONE)


def test_many_that_is_wrong():
    class Short(Laplace):
        def many(self, dataset, size, rng):
            return super().many(dataset, size - 1, rng)

    class Broken(Laplace):
        def many(self, dataset, size, rng):
            raise ValueError("no")

    with pytest.raises(AuditFailed, match="returned 15 outputs, 16 runs were asked for"):
        audit_pair(Short(1.0), 0, 1, claim=ONE)
    with pytest.raises(AuditFailed, match="many raised ValueError: no"):
        audit_pair(Broken(1.0), 0, 1, claim=ONE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"claim": 1.0}, "claim must be a Claim"),
        ({"claim": ONE, "runs": 0}, "runs must be"),
        ({"claim": ONE, "seed": -1}, "seed must be"),
        ({"claim": ONE, "stop_when": "tired"}, "stop_when must be one of refuted, never"),
        ({"claim": ONE, "failure_probability": 2}, "failure_probability must"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(InvalidArgument, match=message):
        audit_pair(Laplace(1.0), 0, 1, **options)


def test_bad_targets():
    with pytest.raises(InvalidArgument, match="must be callable"):
        PairTarget(3, 0, 1)
    with pytest.raises(InvalidArgument, match="features must be callable"):
        PairTarget(Laplace(1.0), 0, 1, features=3)


def test_replace_one_claims():
    claim = Claim(1.0, neighbours="replace-one")
    assert audit_pair(Laplace(0.2), 0, 1, claim=claim, runs=2_000).verdict is Verdict.REFUTED
    assert audit_pair(Laplace(1.0), 0, 1, claim=claim, runs=500).bound.neighbours == "replace-one"
