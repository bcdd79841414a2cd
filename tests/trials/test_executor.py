"""The interface of executors: the defaults of one's own executor, and what all of them have in common."""

import os

import numpy as np
import pytest

from lidp import CoinFlip, Target
from lidp.errors import AuditFailed, InvalidArgument
from lidp.result import AuditInterrupted
from lidp.trials.executor import Executor, group_trials
from lidp.trials.executors import Processes, Serial, choose_executor
from lidp.trials.trial import TrialSetup
from tests.sample_targets import LEAKY, InterruptedAfter, Many, Numbers, closeness, leaky, run, same


class Backwards(Executor):
    """An executor of a user's own, which defines run only: the last trial comes first."""

    def run(self, setup, indices):
        for index in reversed(indices):
            yield setup.run([index])


class Forking(Backwards):
    """An executor of a user's own that says that it has several processes."""

    separate_processes = True

    @property
    def several(self):
        return True


class OwnGenerator:
    """Noise from a generator that every process has a copy of."""

    def __init__(self):
        self.own = np.random.default_rng(7)

    def __call__(self, dataset, rng):
        return [self.own.standard_normal()]


@pytest.mark.parametrize(
    "executor", [Serial(), Processes(1), Processes(2), Backwards()], ids=lambda one: type(one).__name__
)
def test_executors_run_every_trial_once(executor):
    setup = TrialSetup(LEAKY, CoinFlip(4), 0)
    indices = [record.index for records in executor.run(setup, list(range(5, 90))) for record in records]
    assert sorted(indices) == list(range(5, 90))


@pytest.mark.parametrize("executor", [Serial(), Processes(2), Backwards()], ids=lambda one: type(one).__name__)
def test_no_trials_are_no_records(executor):
    assert [record for records in executor.run(TrialSetup(LEAKY, CoinFlip(4), 0), []) for record in records] == []


def test_an_executor_that_defines_run_only_gives_the_same_result(tmp_path):
    target = Target(leaky, Numbers(), lambda output, canary, prepared: closeness(output, canary), prepare=prepare)
    with pytest.raises(AuditInterrupted):
        run(target, store=tmp_path / "a.db", executor=InterruptedAfter(10))
    same(run(target, store=tmp_path / "a.db", executor=Backwards()), run(target))


def prepare(dataset, rng):
    return {"pid": np.array([os.getpid()])}


def test_defaults_are_those_of_trials_in_this_process():
    executor = Backwards()
    assert (executor.several, executor.separate_processes, executor.yields_while_waiting) == (False, False, False)
    assert executor.time_limit is None
    assert executor.prepare(os.getpid) == os.getpid()
    with executor.session():
        assert executor.run_work(os.getpid) != os.getpid()


def test_an_executor_with_several_processes_is_probed_by_default():
    with pytest.raises(InvalidArgument, match="same ones in every worker process"):
        run(Target(OwnGenerator(), Numbers(), closeness), executor=Forking(), trials=4)
    same(run(executor=Forking()), run())


def test_what_does_not_inherit_from_executor_is_refused_by_name():
    class Stranger:
        def run(self, setup, indices):
            return iter([])

    with pytest.raises(InvalidArgument, match=r"executor must inherit from lidp\.trials\.executor\.Executor, got Stranger"):
        run(executor=Stranger())


@pytest.mark.parametrize(
    ("workers", "time_limit", "expected"), [(1, None, Serial()), (2, None, Processes(2)), (1, 5.0, Processes(1, 5.0))]
)
def test_choose_executor(workers, time_limit, expected):
    assert choose_executor(workers, time_limit, retry=False) == expected
    assert choose_executor(workers, time_limit, False, executor=Serial()) == Serial()


def test_trials_are_grouped_for_mechanisms_that_run_many_at_a_time():
    many = TrialSetup(Target(Many(), Numbers(), closeness), CoinFlip(2), 0)
    assert [len(group) for group in group_trials(many, range(150))] == [64, 64, 22]
    assert list(group_trials(TrialSetup(LEAKY, CoinFlip(2), 0), [3, 5])) == [[3], [5]]


def test_work_in_a_fresh_process_that_fails_says_how():
    executor = Backwards()
    with pytest.raises(AuditFailed, match=r"the process of the probe died \(exit code 3\)"):
        executor.run_work(lambda: os._exit(3))
    with pytest.raises(AuditFailed, match=r"the process of the probe died \(SIGKILL\)"):
        executor.run_work(lambda: os.kill(os.getpid(), 9))
    with pytest.raises(AuditFailed, match="passed the time limit of 0.3 s"):
        executor.run_work(wait_forever, 0.3)
    with pytest.raises(RuntimeError, match="ValueError: no luck"):
        executor.run_work(raise_error)


def wait_forever():
    while True:
        pass


def raise_error():
    raise ValueError("no luck")
