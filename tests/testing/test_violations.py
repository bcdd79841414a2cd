"""The contract suites catch what they are for: each broken extension fails the check that is meant for it, and says why."""

import math
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

import lidp
from lidp import Scores
from lidp.store import Store
from lidp.testing import (
    CanaryContract,
    ContractViolated,
    ExecutorContract,
    MethodContract,
    StoreContract,
    TargetContract,
    check_canaries,
    check_executor,
    check_method,
    check_store,
    check_target,
)
from lidp.testing.example_targets import LEAKY, NormalNumbers, closeness, release_with_noise
from lidp.trials.executors import Executor, Serial
from tests.stats.own_methods import Hoeffding


def fails(suite, make, check, message):
    """Require that one check of a suite fails with this message, on what ``make`` returns."""
    broken = type("Broken", (suite,), {"make": lambda self: make()})()
    with pytest.raises(AssertionError, match=message):
        getattr(broken, check)()


@dataclass(frozen=True)
class Overconfident(Hoeffding):
    """Counts dependent canaries as independent trials. Guarantee: none."""

    def bound(self, scores, *, delta, failure_probability):
        inserted, held_out = scores.arms()
        flat = Scores(inserted=inserted.reshape(-1, 1), held_out=held_out.reshape(-1, 1))
        binomial = lidp.ClopperPearson(threshold=lidp.FixedThreshold(self.threshold))
        return binomial.bound(flat, delta=delta, failure_probability=failure_probability)


@dataclass(frozen=True)
class PlugIn(Hoeffding):
    """The observed ratio without any limits. Guarantee: none."""

    def bound(self, scores, *, delta, failure_probability):
        inserted, held_out = (float((arm >= self.threshold).mean()) for arm in scores.arms())
        epsilon = math.log(max(inserted / max(held_out, 1e-9), 1.0))
        return self.report(scores, epsilon, delta=delta, failure_probability=failure_probability, assumptions=("none",))


@dataclass(frozen=True)
class Unchecked(Hoeffding):
    """Hides coin-flip scores, which its check refuses, behind others. Guarantee: none."""

    def bound(self, scores, *, delta, failure_probability):
        others = lidp.Scores(inserted=np.zeros((2, 1)), held_out=np.zeros((2, 1)))
        return self.report(others, 0.0, delta=delta, failure_probability=failure_probability)


@dataclass(frozen=True)
class SaysAnytime(Hoeffding):
    """Claims to be anytime-valid. Guarantee: none."""

    anytime = True


@dataclass(frozen=True)
class Undescribed(Hoeffding):
    """Has no words for its rates. Guarantee: none."""

    works = ()

    def describe_rates(self, bound):
        return {}


@dataclass(frozen=True)
class Random(Hoeffding):
    """Draws from the global generator. Guarantee: none."""

    def bound(self, scores, *, delta, failure_probability):
        noisy = failure_probability * np.random.uniform(0.5, 1)  # noqa: NPY002  # that is the fault
        return super().bound(scores, delta=delta, failure_probability=noisy)


@dataclass(frozen=True)
class Listed(Hoeffding):
    """Has a parameter that no store can keep. Guarantee: none."""

    weights: list = field(default_factory=lambda: [1, 2])


METHODS = [
    (PlugIn, "test_bound_exceeds_the_truth_no_more_often_than_it_says", "arms of correlation 0.5: .* false alarms"),
    (PlugIn, "test_smaller_failure_probability_gives_no_larger_bound", "the failure probability does not matter"),
    (PlugIn, "test_larger_delta_gives_no_larger_bound", "δ does not matter"),
    (PlugIn, "test_equal_arms_give_no_bound", "scores without a difference gave a bound"),
    (Overconfident, "test_clear_difference_gives_a_bound_with_its_whole_record", "says that it is by 'clopper-pearson'"),
    (
        Unchecked,
        "test_designs_that_it_does_not_cover_are_refused_by_check_and_by_bound",
        "bound must raise MethodNotApplicable",
    ),
    (Unchecked, "test_clear_difference_gives_a_bound_with_its_whole_record", "gave a bound of 0"),
    (SaysAnytime, "test_run_gives_the_same_bound_trial_by_trial", "derive from lidp.AnytimeMethod"),
    (Undescribed, "test_every_number_of_the_bound_is_described", "no words for inserted, held_out"),
    (Undescribed, "test_class_says_what_reports_and_citations_need", "works must be a tuple"),
    (Random, "test_same_scores_give_the_same_bound", "two bounds"),
]


@pytest.mark.parametrize(("method", "check", "message"), METHODS, ids=lambda value: getattr(value, "__name__", None))
def test_broken_method_is_caught(method, check, message):
    fails(MethodContract, lambda: method(0.5), check, message)


def test_dependent_canaries_counted_as_independent_are_caught_by_coverage():
    check = "test_bound_exceeds_the_truth_no_more_often_than_it_says"
    fails(MethodContract, lambda: Overconfident(0.5), check, "arms of correlation 1: .* false alarms")


def test_parameter_that_no_store_can_keep_is_caught():
    with pytest.raises(lidp.InvalidArgument, match="a store cannot keep"):
        check_method(Listed(0.5))


@dataclass(frozen=True)
class Altered(Executor):
    """Serial, with a fault."""

    fault: str

    def run(self, setup, indices):
        if self.fault == "another seed":
            setup = type(setup)(setup.target, setup.design, setup.seed + 1)
        for batch in Serial().run(setup, indices):
            if self.fault == "twice":
                yield batch
            if self.fault == "drops failures":
                yield [record for record in batch if not record.failures]
            elif self.fault != "forgets the last" or batch[-1].index != max(indices):
                yield batch


class NoGenerator(Altered):
    def run(self, setup, indices):
        return iter(list(Serial().run(setup, indices)))


@pytest.mark.parametrize(
    ("executor", "check", "message"),
    [
        (Altered("another seed"), "test_records_are_those_of_serial_for_every_design", "is not what Serial computes"),
        (Altered("another seed"), "test_audit_has_the_result_of_a_serial_audit", "another result"),
        (Altered("twice"), "test_single_trial_is_run", "more than once"),
        (Altered("forgets the last"), "test_trials_with_gaps_and_in_any_order_are_run_once", "were asked for"),
        (Altered("drops failures"), "test_failed_runs_are_kept_with_their_reason", "were asked for"),
        (NoGenerator(""), "test_iterator_can_be_closed_early_and_the_executor_used_again", "must return a generator"),
    ],
)
def test_broken_executor_is_caught(executor, check, message):
    fails(ExecutorContract, lambda: executor, check, message)


@dataclass
class Canaries:
    """Standard normal numbers, with a fault."""

    fault: str
    drawn: int = 0

    def draw(self, rng, size):
        self.drawn += 1
        numbers = rng.standard_normal(size)
        if self.fault == "one too few":
            return numbers[1:]
        if self.fault == "sorted":
            return np.sort(numbers)
        if self.fault == "wider at the end":
            return numbers * np.linspace(1, 4, size)
        if self.fault == "shared":
            return numbers + 2 * rng.standard_normal()
        if self.fault == "entropy":
            return np.random.default_rng().standard_normal(size)
        if self.fault == "global":
            return np.random.standard_normal(size)  # noqa: NPY002  # that is the fault
        if self.fault == "counts":
            return numbers + self.drawn
        return numbers

    def __getstate__(self):
        if self.fault == "cannot be pickled":
            raise TypeError("cannot pickle")
        return self.__dict__


@pytest.mark.parametrize(
    ("fault", "check", "message"),
    [
        ("one too few", "test_number_of_canaries_is_the_one_asked_for", r"draw\(rng, 1\) returned 0 canaries"),
        ("sorted", "test_canaries_are_exchangeable_in_order", "larger than the last in 0 of"),
        ("wider at the end", "test_canaries_are_exchangeable_in_order", "further from the median"),
        ("shared", "test_canaries_of_a_draw_are_independent", "correlated"),
        ("entropy", "test_draws_are_a_function_of_the_generator", "draw random numbers from rng only"),
        ("global", "test_draws_are_a_function_of_the_generator", "draw random numbers from rng only"),
        ("counts", "test_earlier_draws_do_not_change_later_ones", "keep no state"),
    ],
)
def test_broken_canaries_are_caught(fault, check, message):
    canaries = Canaries(fault)
    fails(CanaryContract, lambda: canaries, check, message)


def test_canaries_that_cannot_be_sent_are_caught():
    with pytest.raises(TypeError, match="cannot pickle"):
        check_canaries(Canaries("cannot be pickled"))


class Remembering:
    """A mechanism that adds up the sizes of all its data sets."""

    def __init__(self):
        self.total = 0

    def __call__(self, dataset, rng):
        self.total += 1 + len(dataset)
        return [float(self.total)]


def draws_entropy(dataset, rng):
    return [np.random.default_rng().random()]


def draws_globally(dataset, rng):
    return [np.random.random()]  # noqa: NPY002  # that is the fault


def always_raises(dataset, rng):
    raise RuntimeError("never works")


def not_finite(output, canary):
    return float("nan")


class SharedRecords:
    """Records whose ``with_canaries`` hands out the records themselves, not copies."""

    def __init__(self):
        self.records = [0.5, -0.5]

    def __len__(self):
        return len(self.records)

    def with_canaries(self, canaries):
        self.records.extend(canaries)
        return self.records

    def __eq__(self, other):
        return self.records == other.records

    __hash__ = None


def target(mechanism=release_with_noise, score=closeness, **options):
    return lidp.Target(mechanism, NormalNumbers(), score, **options)


@pytest.mark.parametrize(
    ("make", "check", "message"),
    [
        (lambda: target(draws_entropy), "test_randomness_comes_from_the_generator_only", "draw all randomness from rng"),
        (lambda: target(draws_globally), "test_randomness_comes_from_the_generator_only", "draw all randomness from rng"),
        (lambda: target(Remembering()), "test_runs_leave_nothing_behind_for_later_runs", "keep no state"),
        (lambda: target(Remembering()), "test_trial_is_the_same_each_time_and_in_worker_processes", "two results"),
        (lambda: target(always_raises), "test_every_design_runs_without_a_failure", "never works"),
        (lambda: target(score=not_finite), "test_every_design_runs_without_a_failure", "without a finite score"),
        (lambda: target(dataset=SharedRecords()), "test_base_data_set_is_not_changed_by_trials", "changed the data set"),
        (lambda: target(dataset=SharedRecords()), "test_data_with_canaries_are_not_shared_between_runs", "later runs"),
    ],
)
def test_broken_target_is_caught(make, check, message):
    broken = make()
    fails(TargetContract, lambda: broken, check, message)


def test_target_that_cannot_be_sent_is_caught():
    with pytest.raises((AttributeError, pickle.PicklingError)):
        check_target(target(lambda dataset, rng: [1.0]))


class Forgetful(Store):
    """A store that keeps no failures."""

    def trials(self):
        return [type(record)(record.index, record.arrays, {}, record.seconds) for record in super().trials()]


class Rounding(Store):
    """A store that reads rounded scores."""

    def preparation(self):
        found = super().preparation()
        return found and ({name: array.ravel() for name, array in found[0].items()}, found[1])


@pytest.mark.parametrize(
    ("store", "check", "message"),
    [
        (Forgetful, "test_trials_are_read_as_they_were_kept", "trial 0 was read otherwise"),
        (Rounding, "test_preparation_is_read_as_it_was_kept", "read otherwise"),
    ],
)
def test_broken_store_is_caught(store, check, message):
    fails(StoreContract, lambda: store, check, message)


def test_functions_run_the_whole_suite():
    for run, broken in (
        (check_executor, Altered("another seed")),
        (check_canaries, Canaries("sorted")),
        (check_store, Forgetful),
        (check_target, target(always_raises)),
        (check_method, Undescribed(0.5)),
    ):
        with pytest.raises(ContractViolated):
            run(broken)
    check_canaries(NormalNumbers())
    check_target(LEAKY)
