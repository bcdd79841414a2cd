"""Exceptions of user code are failures of that code on every executor, and its forked children never continue the audit."""

import asyncio
import os
import signal
import sys
import threading

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, LeaveOneOut, ReplaceOne, Target
from lidp._runtime.interrupts import Interrupts
from lidp._runtime.workers import Dismissed
from lidp.errors import AuditFailed
from lidp.result import AuditInterrupted
from lidp.trials.executors import Processes, Serial
from tests import sample_targets
from tests.sample_targets import Numbers, closeness, leaky, run, same

EXECUTORS = [Serial(), Processes(2)]


class CustomException(BaseException):
    pass


RAISED = [KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, SystemExit, CustomException, RuntimeError]


@pytest.fixture(autouse=True)
def interrupts():
    """Install the SIGINT handler of a new process, whatever ran before."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def raising(kind):
    def mechanism(dataset, rng):
        if rng.random() < 0.3:
            raise kind
        return leaky(dataset, rng)

    return Target(mechanism, Numbers(), closeness, dataset=[0.5], name="raising")


@pytest.mark.parametrize("executor", EXECUTORS, ids=repr)
@pytest.mark.parametrize("kind", RAISED)
def test_any_exception_of_a_mechanism_is_a_failed_run(kind, executor):
    expected = run(raising(ValueError), trials=20)
    result = run(raising(kind), trials=20, executor=executor)
    assert result.failed_runs == expected.failed_runs > 0
    same(result, expected)
    assert any(kind.__name__ in note.failures.get("scores", "") for note in result.notes)


@pytest.mark.parametrize("executor", EXECUTORS, ids=repr)
@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("many", [False, True])
def test_any_exception_of_a_score_leaves_its_canary_unscored(kind, executor, many):
    class Score:
        def __call__(self, output, canary):
            if canary > 1:
                raise kind
            return closeness(output, canary)

    if many:
        Score.many = lambda self, output, canaries: np.array([self(output, canary) for canary in canaries])
    result = run(Target(leaky, Numbers(), Score(), dataset=[0.5]), trials=10, executor=executor)
    assert result.failed_runs == 0
    assert result.unscored_canaries > 0


@pytest.mark.parametrize("kind", RAISED)
def test_any_exception_of_a_batch_falls_back_to_single_runs(kind):
    class Batch(sample_targets.Many):
        def run_many(self, datasets, rngs):
            raise kind

    same(run(Target(Batch(), Numbers(), closeness, name="x")), run(Target(leaky, Numbers(), closeness, name="x")))


@pytest.mark.parametrize("kind", RAISED)
def test_any_exception_of_a_mechanism_in_a_pair_audit_is_a_failed_run(kind):
    def mechanism(data, rng):
        value = data + rng.laplace()
        if value > 1.5:
            raise kind
        return value

    result = lidp.audit_pair(mechanism, 0, 1, claim=Claim(2.0), runs=500)
    assert result.failed_runs > 0
    assert result.bound.trials == 500


@pytest.mark.parametrize("executor", EXECUTORS, ids=repr)
@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("part", ["prepare", "draw"])
def test_any_exception_of_preparation_or_canaries_ends_the_audit(part, kind, executor):
    class Raising(Numbers):
        def draw(self, rng, size):
            raise kind

    def prepare(dataset, rng):
        raise kind

    target = Target(leaky, *((Raising(), closeness) if part == "draw" else (Numbers(), closeness, (), prepare)))
    with pytest.raises(AuditFailed, match=kind.__name__):
        run(target, executor=executor)


def test_a_signal_interrupts_the_audit(tmp_path):
    calls = []

    def mechanism(dataset, rng):
        calls.append(1)
        if len(calls) == 10:
            signal.raise_signal(signal.SIGINT)
        return leaky(dataset, rng)

    with pytest.raises(AuditInterrupted):
        run(Target(mechanism, Numbers(), closeness), store=tmp_path / "a.db")
    assert sample_targets.finished(tmp_path / "a.db") == 9


def test_a_signal_handler_of_the_user_may_interrupt_the_audit():
    calls = []

    def handler(number, frame):
        raise KeyboardInterrupt

    def mechanism(dataset, rng):
        calls.append(1)
        if len(calls) == 10:
            signal.raise_signal(signal.SIGINT)
        return leaky(dataset, rng)

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(AuditInterrupted):
            run(Target(mechanism, Numbers(), closeness))
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_keyboard_interrupt_in_another_thread_is_a_failed_run():
    results = []
    thread = threading.Thread(target=lambda: results.append(run(raising(KeyboardInterrupt), trials=20)))
    thread.start()
    thread.join()
    assert results[0].failed_runs == run(raising(ValueError), trials=20).failed_runs


def test_a_pair_audit_drops_the_block_in_which_an_interrupt_was_swallowed():
    calls = []

    def mechanism(data, rng):
        calls.append(1)
        if len(calls) == 200:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise RuntimeError("a library that failed") from None
        return data + rng.laplace()

    with pytest.raises(AuditInterrupted) as caught:
        lidp.audit_pair(mechanism, 0, 1, claim=Claim(2.0), runs=5000)
    assert caught.value.result.failed_runs == 0


def test_a_signal_handler_installed_by_user_code_is_kept():
    with Interrupts():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


# Forked children. Each creates a file that is named by its parent's and its own id.


class Forks:
    """Forks a child in every run; the child returns, raises or exits."""

    def __init__(self, exit_mode, folder):
        self.exit_mode = exit_mode
        self.folder = folder

    def __call__(self, dataset, rng):
        output = leaky(dataset, rng)
        parent = os.getpid()
        child = os.fork()
        if child:
            os.waitpid(child, 0)  # until it has ended, in whatever way
            return output
        (self.folder / f"{parent}-{os.getpid()}").touch()
        if self.exit_mode == "raises":
            raise RuntimeError("in the child")
        if self.exit_mode == "exits":
            sys.exit(0)
        return output


def check_children(folder, *, at_least):
    """Check that at least ``at_least`` children were forked, and that none of them forked another child."""
    pairs = [path.name.split("-") for path in folder.iterdir() if not path.name.startswith("a.db")]
    assert len(pairs) >= at_least
    assert not {parent for parent, _ in pairs} & {child for _, child in pairs}


EXIT_MODES = ["returns", "raises", "exits"]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("executor", EXECUTORS, ids=repr)
@pytest.mark.parametrize("exit_mode", EXIT_MODES)
@pytest.mark.parametrize("design", [CoinFlip(4), LeaveOneOut(2, 2), ReplaceOne(2, 2)], ids=repr)
def test_a_forked_child_does_not_continue_the_audit(design, exit_mode, executor, tmp_path):
    claim = sample_targets.claim_for(design)
    target = Target(Forks(exit_mode, tmp_path), Numbers(), closeness, dataset=[0.5], name="x")
    result = run(target, claim=claim, design=design, trials=5, executor=executor, store=tmp_path / "a.db")
    plain = Target(leaky, Numbers(), closeness, dataset=[0.5], name="x")
    same(result, run(plain, claim=claim, design=design, trials=5))
    assert result.failed_runs == 0
    check_children(tmp_path, at_least=5)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("exit_mode", EXIT_MODES)
def test_a_forked_child_does_not_continue_a_pair_audit(exit_mode, tmp_path):
    forks = Forks(exit_mode, tmp_path)

    def mechanism(data, rng):
        forks([], rng)
        return data + rng.laplace()

    lidp.audit_pair(mechanism, 0, 1, claim=Claim(2.0), runs=40)
    check_children(tmp_path, at_least=40)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("executor", EXECUTORS, ids=repr)
@pytest.mark.parametrize("exit_mode", EXIT_MODES)
def test_a_child_forked_by_a_score_or_a_preparation_does_not_continue(exit_mode, executor, tmp_path):
    forks = Forks(exit_mode, tmp_path)

    def score(output, canary, prepared):
        forks([], np.random.default_rng(0))
        return closeness(output, canary)

    def prepare(dataset, rng):
        forks([], rng)
        return {"a": np.zeros(1)}

    target = Target(leaky, Numbers(), score, dataset=[0.5], prepare=prepare)
    assert run(target, trials=3, executor=executor).failed_runs == 0
    check_children(tmp_path, at_least=3)


def test_dismissal_propagates_and_is_not_a_failed_run():
    def mechanism(dataset, rng):
        raise Dismissed

    with pytest.raises(Dismissed):
        run(Target(mechanism, Numbers(), closeness))
