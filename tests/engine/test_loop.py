"""The audit engine at work: the same result whoever runs it, and nothing lost in trouble."""

import errno
import json
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
from lidp import Claim, CoinFlip, LeaveOneOut, Target, Verdict
from lidp._runtime.interrupts import Interrupts, defer_signals
from lidp.errors import AuditFailed, StoreError
from lidp.result import AuditInterrupted
from lidp.store import Store
from tests import sample_targets
from tests.sample_targets import DESIGNS, Many, Numbers, Trouble, claim_for, closeness, run, same
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.fixture
def interrupts():
    """Python's own handler of interrupts, also where tests run in a background that ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # given back
    signal.signal(signal.SIGINT, before)


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
    target = Target(sample_targets.SlowUntil(str(mark)), Numbers(), closeness, dataset=[0.5], name="slow")
    with pytest.raises(Stop):
        run(target, trials=1000, store=tmp_path / "a.db", watch=stopper)
    assert 10 <= sample_targets.finished(tmp_path / "a.db") < 1000
    mark.touch()
    same(run(target, trials=1000, store=tmp_path / "a.db"), run(target, trials=1000))


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed(tmp_path):
    """SIGKILL of the whole process group, each time after some more trials (20 kills are in tests/faults).

    No trial is lost after it was recorded, none is run twice.
    """
    path = tmp_path / "a.db"
    command = [
        sys.executable, "-m", "lidp", "audit", "tests.sample_targets:SLOW", "--epsilon", "9", "--trials", "400", "--canaries", "4",
        "--workers", "2", "--store", str(path), "--stop-when", "never", "--quiet",
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    kept: list[int] = []
    for _ in range(4):
        process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL)
        sample_targets.wait_for_more(path, len(kept) + int(rng.integers(40)))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with Store.read(path) as store:
            now = store.finished()
        assert set(kept) < set(now)
        kept = now
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
    with Store.read(path) as store:
        assert store.finished() == list(range(400))
    leaky = Target(
        sample_targets.leaky, Numbers(), closeness, dataset=[0.5], name="slow"
    )  # the same mechanism, without its sleep
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
        run(Target(sample_targets.slow, Numbers(), closeness), watch=interrupt, **options)
    assert caught.value.result is not None
    assert caught.value.result.verdict is Verdict.INCONCLUSIVE
    assert "gives no verdict until all 400 trials" in str(caught.value.result)


def test_a_store_knows_what_was_audited(tmp_path):
    run(
        Target(sample_targets.NoisyCount(1.0), sample_targets.Bits(), sample_targets.itself),
        store=tmp_path / "a.db",
        trials=5,
    )
    for other in (
        Target(sample_targets.NoisyCount(2.0), sample_targets.Bits(), sample_targets.itself),
        Target(sample_targets.NoisyCount(1.0), Numbers(), sample_targets.itself),
        Target(sample_targets.NoisyCount(1.0), sample_targets.Bits(), sample_targets.itself, dataset=[1.0]),
    ):
        with pytest.raises(StoreError, match="is not what it was when"):
            run(other, store=tmp_path / "a.db", trials=5)


def test_an_interrupt_that_comes_while_writing_waits(tmp_path, interrupts):
    """The second write is interrupted, and ends all the same."""

    def interrupt(progress):
        if progress.done >= 10:
            os.kill(os.getpid(), signal.SIGINT)
            seen.append(progress.done)  # still here

    seen = []
    target = Target(sample_targets.slow, Numbers(), closeness)
    with pytest.raises(AuditInterrupted):
        run(target, watch=interrupt, trials=400, store=tmp_path / "a.db")
    assert len(seen) == 1
    assert sample_targets.finished(tmp_path / "a.db") == seen[0]


def test_defer_signals(interrupts):
    def interrupted(error=None):
        with defer_signals():
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
        assert pool.submit(lambda: defer_signals().__enter__()).result() is None


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
        return sample_targets.leaky(dataset, rng)

    calls = []
    target = Target(mechanism, Numbers(), closeness)
    with pytest.raises(AuditInterrupted):
        run(target, store=tmp_path / "a.db")
    resumed = run(target, store=tmp_path / "a.db")
    assert resumed.failed_runs == 0
    same(resumed, run(target))


def test_interrupting_keeps_what_is_done(tmp_path):
    def interrupt(progress):
        if progress.done >= 10:
            raise KeyboardInterrupt

    mark = tmp_path / "fast"
    target = Target(sample_targets.SlowUntil(str(mark)), Numbers(), closeness, dataset=[0.5])
    with pytest.raises(AuditInterrupted) as caught:
        run(target, trials=1000, store=tmp_path / "a.db", watch=interrupt)
    assert caught.value.result is not None
    assert 10 <= caught.value.result.bound.trials < 1000
    mark.touch()
    same(run(target, trials=1000, store=tmp_path / "a.db"), run(target, trials=1000))


def test_a_store_of_another_audit_is_refused_by_name(tmp_path):
    run(store=tmp_path / "a.db")
    for change, message in (
        ({"seed": 4}, "seed was 3, is 4"),
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
        with held.deferred():
            os.kill(os.getpid(), signal.SIGINT)
            raise RuntimeError("an error")

    with Interrupts() as held:
        with pytest.raises(RuntimeError, match="an error"):
            fail()
        assert held.seen
        with held.deferred():
            pass  # not interrupted once more by what is over
        with pytest.raises(KeyboardInterrupt), held.deferred():
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_before_the_method_applies_is_an_interrupt(tmp_path):
    """Wilson splits trials in two: after one trial there is no result yet."""

    def interrupt(progress):
        if progress.done:
            raise KeyboardInterrupt

    options = {
        "trials": 40,
        "store": tmp_path / "a.db",
        "design": LeaveOneOut(2, 2),
        "method": lidp.Wilson(),
        "stop_when": None,
    }
    with pytest.raises(AuditInterrupted) as caught:
        run(Target(sample_targets.slow, Numbers(), closeness), watch=interrupt, **options)
    assert caught.value.result is None or caught.value.result.provisional


def test_a_finished_preparation_is_not_deleted_with_its_store(tmp_path):
    path = tmp_path / "a.db"

    def prepare(dataset, rng):
        return {"pilot": [1.0]}

    def fails(rng, size):
        raise ValueError("no canaries today")

    class Canaries:
        draw = staticmethod(fails)

    target = Target(sample_targets.leaky, Canaries(), lambda output, canary, arrays: 0.0, prepare=prepare)
    with pytest.raises(lidp.AuditFailed):
        run(target, store=path)
    with pytest.raises(lidp.StoreError, match="belongs to another audit: seed was"):
        run(target, store=path, seed=4)
    with Store.read(path) as store:
        assert store.preparation() is not None
