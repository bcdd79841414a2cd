"""``audit_pair``: arguments, mechanisms, features and classifiers that are refused, and the errors that say why."""

import copy

import numpy as np
import pytest

from lidp import AuditFailed, Claim, InvalidArgument, PairTarget, audit_pair
from tests.pairs.mechanisms import Laplace, one_by_one

ONE = Claim(1.0)


def test_search_without_usable_pairs_is_refused():
    with pytest.raises(InvalidArgument, match="pairs is empty"):
        audit_pair(Laplace(1.0), pairs=[], claim=ONE)
    with pytest.raises(InvalidArgument, match="search_share must"):
        audit_pair(Laplace(1.0), pairs=[(0, 1)], search_share=1.5, claim=ONE)
    with pytest.raises(InvalidArgument, match="d0 and d1 are equal"):
        audit_pair(Laplace(1.0), pairs=[(1, 1)], claim=ONE)


def test_equal_data_sets_are_refused():
    for same in (1, [1, 2], np.arange(3), {"a": np.zeros(2)}):
        with pytest.raises(InvalidArgument, match="d0 and d1 are equal"):
            audit_pair(Laplace(1.0), same, copy.deepcopy(same), claim=ONE)


def test_mechanism_that_always_raises_is_refused():
    def mechanism(dataset, rng):
        raise KeyError("age")

    with pytest.raises(AuditFailed, match="mechanism raises on d0: KeyError: 'age'"):
        audit_pair(mechanism, 0, 1, claim=ONE)


def test_mechanism_with_outputs_of_different_kinds_is_refused():
    def mechanism(dataset, rng):
        return "high" if rng.random() < 0.5 else 1.0

    with pytest.raises(AuditFailed, match="returns a (text|number) in one run and a (text|number) in another"):
        audit_pair(mechanism, 0, 1, claim=ONE)


def test_mechanism_that_changes_its_data_is_refused():
    def mechanism(dataset, rng):
        dataset.append(1)
        return len(dataset) + rng.laplace()

    with pytest.raises(AuditFailed, match="changed the data set d0"):
        audit_pair(mechanism, [1], [1, 2], claim=ONE)


def test_constant_mechanism_is_refused():
    with pytest.raises(AuditFailed, match="does not use the rng"):
        audit_pair(lambda dataset, rng: 7, 0, 1, claim=ONE, runs=1000)


def test_data_set_that_can_be_read_only_once_is_refused():
    with pytest.raises(InvalidArgument, match="d0 can be read only once"):
        audit_pair(lambda data, rng: sum(data) + rng.laplace(), iter([1]), iter([1, 5]), claim=ONE)


def test_features_that_raise_end_the_audit():
    with pytest.raises(AuditFailed, match=r"features\(.*\) failed: ZeroDivisionError"):
        audit_pair(one_by_one(1.0), 0, 1, claim=ONE, features=lambda value: 1 / 0)


def test_output_that_contains_itself_is_refused():
    def mechanism(dataset, rng):
        output = [rng.laplace()]
        output.append(output)
        return output

    with pytest.raises(AuditFailed, match="nested too deeply"):
        audit_pair(mechanism, 0, 1, claim=ONE)


def test_object_that_is_no_classifier_is_refused():
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


def test_data_sets_given_twice_or_not_at_all_are_refused():
    with pytest.raises(InvalidArgument, match="do not give them again"):
        audit_pair(PairTarget(Laplace(1.0), 0, 1), 0, 5, claim=ONE)
    with pytest.raises(InvalidArgument, match="d0 and d1 are not given"):
        audit_pair(Laplace(1.0), claim=ONE)
    with pytest.raises(InvalidArgument, match="pairs must give tuples .*, got 1"):
        audit_pair(Laplace(1.0), pairs=[1, 2], claim=ONE)


def test_error_of_the_pair_generator_is_passed_on():
    def pairs():
        yield (0, 1)
        raise ValueError("no more data")

    with pytest.raises(ValueError, match="no more data"):
        audit_pair(Laplace(1.0), pairs=pairs(), claim=ONE)


def test_mechanism_that_ignores_rng_is_refused():
    with pytest.raises(AuditFailed, match="the same output in 64 runs.*does not use the rng"):
        audit_pair(lambda dataset, rng: np.random.default_rng(0).normal() + dataset, 0, 1, claim=ONE)


def test_many_that_raises_or_returns_too_few_outputs_is_refused():
    class Short(Laplace):
        def many(self, dataset, size, rng):
            return super().many(dataset, size - 1, rng)

    class Broken(Laplace):
        def many(self, dataset, size, rng):
            raise ValueError("no")

    with pytest.raises(AuditFailed, match="returned 15 outputs for 16 runs"):
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
def test_invalid_argument_is_refused_by_name(options, message):
    with pytest.raises(InvalidArgument, match=message):
        audit_pair(Laplace(1.0), 0, 1, **options)


def test_pair_target_with_parts_that_are_not_callable_is_refused():
    with pytest.raises(InvalidArgument, match="must be callable"):
        PairTarget(3, 0, 1)
    with pytest.raises(InvalidArgument, match="features must be callable"):
        PairTarget(Laplace(1.0), 0, 1, features=3)
