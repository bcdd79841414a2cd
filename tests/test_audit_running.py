"""The audit engine at work: the same result whoever runs it, and nothing lost in trouble."""

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, Target, Verdict
from lidp._runtime.interrupts import Interrupts, held_signals
from lidp.errors import AuditFailed, StoreError
from lidp.result import AuditInterrupted
from lidp.store import Store
from lidp.trials.executors import Processes, Serial, _Pool
from lidp.trials.trial import TrialSetup
from tests import engine
from tests.engine import DESIGNS, LEAKY, Many, Numbers, Trouble, claim_for, closeness, run, same
from tests.waiting import PATIENCE, wait_until_gone

ROOT = Path(__file__).parent.parent


@pytest.fixture
def interrupts():
    """Python's own handler of interrupts, also where tests run in a background that ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # given back
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_one_worker_or_two_is_the_same(design):
    options = {"claim": claim_for(design), "design": design}
    same(run(**options, workers=1), run(**options, workers=2))


def test_many_at_a_time_is_the_same():
    batched = Target(Many(), Numbers(), closeness, dataset=[0.5, -0.5], name="leaky")
    for design in DESIGNS:
        options = {"claim": claim_for(design), "design": design, "trials": 70}
        same(run(**options), run(batched, **options))
    assert batched.mechanism.batches == 2 * len(DESIGNS)
    same(run(trials=70), run(batched, trials=70, workers=2))


def test_a_batch_that_fails_is_told_apart_trial_by_trial():
    class Fussy(Many):
        def run_many(self, datasets, rngs):
            raise RuntimeError("one of these is bad")

    fussy = Target(Fussy(), Numbers(), closeness, dataset=[0.5, -0.5], name="leaky")
    same(run(fussy), run())


def test_a_store_changes_nothing(tmp_path):
    with_store = run(store=tmp_path / "a.db")
    same(with_store, run())
    same(with_store, lidp.result_of(tmp_path / "a.db"))
    same(with_store, run(store=tmp_path / "a.db"))


def test_resuming_half_an_audit_is_the_same(tmp_path):
    class Stop(Exception):
        pass

    def stopper(progress):
        if progress.done >= 10:
            raise Stop

    mark = tmp_path / "fast"
    target = Target(engine.SlowUntil(str(mark)), Numbers(), closeness, dataset=[0.5], name="slow")
    with pytest.raises(Stop):
        run(target, trials=1000, store=tmp_path / "a.db", watch=stopper)
    assert 10 <= engine.finished(tmp_path / "a.db") < 1000
    mark.touch()
    same(run(target, trials=1000, store=tmp_path / "a.db"), run(target, trials=1000))


def test_killed_at_random_moments_and_resumed(tmp_path):
    """SIGKILL of the whole process group, each time after some more trials (20 kills are in tests/faults).

    No trial is lost after it was recorded, none is run twice.
    """
    path = tmp_path / "a.db"
    command = [
        sys.executable, "-m", "lidp", "audit", "tests.engine:SLOW", "--epsilon", "9", "--trials", "400", "--canaries", "4",
        "--workers", "2", "--store", str(path), "--stop-when", "never", "--quiet",
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    kept: list[int] = []
    for _ in range(4):
        process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL)
        engine.wait_for_more(path, len(kept) + int(rng.integers(40)))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with Store.read(path) as store:
            now = store.finished()
        assert set(kept) < set(now)
        kept = now
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
    with Store.read(path) as store:
        assert store.finished() == list(range(400))
    leaky = Target(engine.leaky, Numbers(), closeness, dataset=[0.5], name="slow")  # the same mechanism, without its sleep
    same(lidp.result_of(path), lidp.audit(leaky, claim=Claim(9.0), design=CoinFlip(4), trials=400, stop_when="never"))


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_failing_runs_are_kept_and_named(design):
    target = Target(Trouble("raises", 0.2), Numbers(), closeness, dataset=[0.5])
    result = run(target, claim=claim_for(design), design=design, trials=60)
    assert 3 <= result.failed_runs <= 60
    assert result.bound.trials == 60
    reasons = [reason for note in result.notes for reason in note.failures.values()]
    assert all("no luck today" in reason for reason in reasons)
    assert "runs failed (kept, not bet on)" in str(result)
    assert lidp.recheck(json.loads(json.dumps(result.witness()))).epsilon == result.bound.epsilon


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_canaries_that_cannot_be_scored_get_a_constant_and_are_counted(design):
    target = Target(Trouble("nan", 0.2), Numbers(), closeness, dataset=[0.5])
    result = run(target, claim=claim_for(design), design=design, trials=60)
    assert result.failed_runs == 0
    assert result.unscored_canaries > 10
    assert "could not be scored" in str(result)


def test_all_failed_is_no_verdict():
    def broken(dataset, rng):
        raise RuntimeError("never works")

    with pytest.raises(AuditFailed, match="all 5 trials failed, the first with: RuntimeError: never works"):
        run(Target(broken, Numbers(), closeness), trials=5)


def test_global_generators_differ_from_trial_to_trial():
    def careless(dataset, rng):
        return np.random.random()  # noqa: NPY002  # what careless mechanisms do

    target = Target(careless, Numbers(), lambda output, canary: output)
    one, two = (run(target, trials=20, workers=workers, design=CoinFlip(1)) for workers in (1, 2))
    same(one, two)
    assert len(set(one.scores.flips()[0].ravel())) == 20


def test_a_method_that_is_not_anytime_valid_says_nothing_half_way(tmp_path):
    def interrupt(progress):
        if progress.done >= 10:
            raise KeyboardInterrupt

    options = {"trials": 400, "store": tmp_path / "a.db", "method": lidp.OneRun(), "stop_when": None}
    with pytest.raises(AuditInterrupted) as caught:
        run(Target(engine.slow, Numbers(), closeness), watch=interrupt, **options)
    assert caught.value.result is not None
    assert caught.value.result.verdict is Verdict.INCONCLUSIVE
    assert "gives no verdict until all 400 trials" in str(caught.value.result)


def test_a_store_knows_what_was_audited(tmp_path):
    run(Target(engine.NoisyCount(1.0), engine.Bits(), engine.itself), store=tmp_path / "a.db", trials=5)
    for other in (
        Target(engine.NoisyCount(2.0), engine.Bits(), engine.itself),
        Target(engine.NoisyCount(1.0), Numbers(), engine.itself),
        Target(engine.NoisyCount(1.0), engine.Bits(), engine.itself, dataset=[1.0]),
    ):
        with pytest.raises(StoreError, match="is not what it was when"):
            run(other, store=tmp_path / "a.db", trials=5)


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    """Only the parent is killed: the store is free at once and can be gone on with."""
    path = tmp_path / "a.db"
    command = [
        sys.executable, "-m", "lidp", "audit", "tests.engine:SLOW", "--epsilon", "9", "--trials", "3000", "--canaries", "4",
        "--workers", "2", "--store", str(path), "--stop-when", "never", "--quiet",
    ]  # fmt: skip
    for how, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 130)):
        before = engine.finished(path)
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        engine.wait_for_more(path, before)
        os.kill(process.pid, how)
        complaint = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == code, complaint
        wait_until_gone(str(path))
    Store.open(path).close()


def test_an_interrupt_that_comes_while_writing_waits(tmp_path, interrupts):
    """The second write is interrupted, and ends all the same."""

    def interrupt(progress):
        if progress.done >= 10:
            os.kill(os.getpid(), signal.SIGINT)
            seen.append(progress.done)  # still here

    seen = []
    target = Target(engine.slow, Numbers(), closeness)
    with pytest.raises(AuditInterrupted):
        run(target, watch=interrupt, trials=400, store=tmp_path / "a.db")
    assert len(seen) == 1
    assert engine.finished(tmp_path / "a.db") == seen[0]


def test_an_interrupt_that_comes_while_workers_start_leaves_none_behind(interrupts, monkeypatch):
    """Python waits at its end for processes it has started; one that nobody dismisses would be waited for forever."""

    def start(self):
        worker = usual(self)
        os.kill(os.getpid(), signal.SIGINT)
        started.append(worker.process)
        return worker

    usual, started = _Pool._start, []
    monkeypatch.setattr(_Pool, "_start", start)
    with pytest.raises(AuditInterrupted):
        run(workers=2)
    assert len(started) == 2
    assert not multiprocessing.active_children()


def test_held_signals(interrupts):
    def interrupted(error=None):
        with held_signals():
            os.kill(os.getpid(), signal.SIGINT)
            seen.append("after")
            if error is not None:
                raise error

    seen = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert seen == ["after"]
    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted(ValueError("is not lost"))
    assert isinstance(caught.value.__context__, ValueError)
    with ThreadPoolExecutor(1) as pool:  # handlers run in the main thread, whatever others do
        assert pool.submit(lambda: held_signals().__enter__()).result() is None


def test_a_trial_that_swallows_an_interrupt_has_not_failed(tmp_path, interrupts):
    """Libraries turn an interrupt into errors of their own; what they leave is no outcome of the mechanism."""
    armed = [True]

    def mechanism(dataset, rng):
        if armed and len(calls) == 25:
            armed.clear()
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(PATIENCE)  # ended by the interrupt
            except KeyboardInterrupt:
                raise RuntimeError("a library that failed") from None
        calls.append(1)
        return engine.leaky(dataset, rng)

    calls = []
    target = Target(mechanism, Numbers(), closeness)
    with pytest.raises(AuditInterrupted):
        run(target, store=tmp_path / "a.db")
    resumed = run(target, store=tmp_path / "a.db")
    assert resumed.failed_runs == 0
    same(resumed, run(target))


def test_a_worker_that_dies_in_a_batch_is_found_by_running_one_by_one():
    class Killer(Many):
        def __call__(self, dataset, rng):
            if rng.random() < 0.05:
                os._exit(7)
            return leaky_output(dataset, rng)

        def run_many(self, datasets, rngs):
            return [self(dataset, rng) for dataset, rng in zip(datasets, rngs, strict=True)]

    def leaky_output(dataset, rng):
        return [value + 0.01 * rng.standard_normal() for value in dataset]

    result = run(Target(Killer(), Numbers(), closeness), workers=2, trials=150, retry=True)
    assert 1 <= result.failed_runs <= 20
    assert result.retried_trials == result.failed_runs


def test_a_process_that_dies_costs_its_trial_only():
    target = Target(Trouble("dies"), Numbers(), closeness, dataset=[0.5])
    result = run(target, workers=2, trials=60, retry=True)
    assert 1 <= result.failed_runs <= 15
    dead = [note for note in result.notes if note.failures]
    assert all(note.attempts == 2 for note in dead)
    assert all("worker process died (exit code 9)" in note.failures["scores"] for note in dead)
    strict = run(target, workers=2, trials=60)
    assert [note.index for note in strict.notes if note.failures] == [note.index for note in dead]
    assert all(note.attempts == 1 for note in strict.notes)
    assert strict.bound.epsilon == result.bound.epsilon


def test_a_second_try_has_the_same_coins_and_stream(tmp_path):
    fragile = Target(engine.DiesOnce(str(tmp_path)), Numbers(), closeness, dataset=[0.5], name="x")
    result = run(fragile, workers=2, trials=30, retry=True)
    assert result.retried_trials >= 2
    assert result.failed_runs == 0
    same(result, run(fragile, workers=1, trials=30))


def test_a_trial_that_hangs_is_given_up(tmp_path):
    """Trials either take no time or hang forever: the limit is a thousand times what those take that do not hang."""
    options = {"trials": 16, "store": tmp_path / "a.db"}
    result = run(Target(Trouble("hangs", 0.1), Numbers(), closeness, dataset=[0.5]), **options, time_limit=4, workers=2)
    late = [note for note in result.notes if note.failures]
    assert all("time limit of 4 s" in note.failures["scores"] for note in late)
    same(result, lidp.result_of(tmp_path / "a.db"))
    # The same trials get into trouble whatever the trouble is.
    expected = run(Target(Trouble("raises", 0.1), Numbers(), closeness, dataset=[0.5]), trials=16)
    assert [note.index for note in late] == [note.index for note in expected.notes if note.failures] != []


def test_interrupting_keeps_what_is_done(tmp_path):
    def interrupt(progress):
        if progress.done >= 10:
            raise KeyboardInterrupt

    mark = tmp_path / "fast"
    target = Target(engine.SlowUntil(str(mark)), Numbers(), closeness, dataset=[0.5])
    with pytest.raises(AuditInterrupted) as caught:
        run(target, trials=1000, store=tmp_path / "a.db", watch=interrupt)
    assert caught.value.result is not None
    assert 10 <= caught.value.result.bound.trials < 1000
    mark.touch()
    same(run(target, trials=1000, store=tmp_path / "a.db"), run(target, trials=1000))


@pytest.mark.parametrize("executor", [Serial(), Processes(2)], ids=["serial", "processes"])
def test_executors_run_every_trial_once(executor):
    setup = TrialSetup(LEAKY, CoinFlip(4), 0)
    found = [record.index for records in executor.run(setup, list(range(5, 90))) for record in records]
    assert sorted(found) == list(range(5, 90))


def test_a_store_of_another_audit_is_refused_by_name(tmp_path):
    run(store=tmp_path / "a.db")
    for change, message in (
        ({"seed": 4}, "seed was 3, is 4"),
        ({"trials": 41}, "trials was 40, is 41"),
        ({"claim": Claim(2.0, 1e-5)}, "claim was"),
        ({"design": CoinFlip(7)}, "design was"),
        ({"method": lidp.OneRun()}, "method was"),
    ):
        with pytest.raises(StoreError, match=message):
            run(store=tmp_path / "a.db", **change)


def test_two_writers(tmp_path):
    with Store.create(tmp_path / "a.db", {}), pytest.raises(StoreError, match="being written to by another audit"):
        Store.open(tmp_path / "a.db")


def test_files_that_are_no_stores(tmp_path):
    (tmp_path / "a.db").write_text("hello")
    with pytest.raises(StoreError, match="not a store"):
        run(store=tmp_path / "a.db")
    with pytest.raises(StoreError, match="no such store"):
        lidp.result_of(tmp_path / "b.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        run(store=tmp_path / "file" / "a.db")


def test_a_mechanism_that_exits_has_failed():
    def leaves(dataset, rng):
        sys.exit(3)

    with pytest.raises(AuditFailed, match="all 5 trials failed, the first with: SystemExit: 3"):
        run(Target(leaves, Numbers(), closeness), trials=5)


def test_a_file_system_without_hard_links(tmp_path, monkeypatch):
    def link(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    result = run(store=tmp_path / "a.db")
    same(result, run(store=tmp_path / "a.db"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]
    with pytest.raises(StoreError, match="exists already"):
        Store.create(tmp_path / "a.db", {})


def test_an_error_takes_the_place_of_a_waiting_interrupt(interrupts):
    def fail():
        with held.held():
            os.kill(os.getpid(), signal.SIGINT)
            raise RuntimeError("an error")

    with Interrupts() as held:
        with pytest.raises(RuntimeError, match="an error"):
            fail()
        assert held.seen
        with held.held():
            pass  # not interrupted once more by what is over
        with pytest.raises(KeyboardInterrupt), held.held():
            os.kill(os.getpid(), signal.SIGINT)
