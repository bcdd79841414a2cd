"""Trials in worker processes: the same result as in this process, and nothing lost when workers die, hang or are interrupted."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lidp
from lidp import CoinFlip, Target
from lidp.errors import InvalidArgument
from lidp.result import AuditInterrupted
from lidp.store import Store
from lidp.trials.processes import Processes, _Pool, _Worker
from lidp.trials.trial import TrialSetup, failed_record
from tests import sample_targets
from tests.sample_targets import DESIGNS, LEAKY, Many, Numbers, Trouble, claim_for, closeness, leaky, run, same
from tests.waiting import PATIENCE, wait_until_gone

ROOT = Path(__file__).parent.parent.parent


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
    same(run(trials=300), run(batched, trials=300, workers=2, retry=True))


@pytest.mark.parametrize("options", [{"workers": 0}, {"workers": 1.5}, {"workers": 2, "time_limit": 0}], ids=str)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InvalidArgument, match="must be"):
        Processes(**options)


# Workers that die.


def test_a_worker_that_dies_in_a_batch_is_found_by_running_one_by_one():
    class Killer(Many):
        def __call__(self, dataset, rng):
            if rng.random() < 0.05:
                os._exit(7)
            return leaky(dataset, rng)

        def run_many(self, datasets, rngs):
            return [self(dataset, rng) for dataset, rng in zip(datasets, rngs, strict=True)]

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
    fragile = Target(sample_targets.DiesOnce(str(tmp_path)), Numbers(), closeness, dataset=[0.5], name="x")
    result = run(fragile, workers=2, trials=30, retry=True)
    assert result.retried_trials >= 2
    assert result.failed_runs == 0
    same(result, run(fragile, workers=1, trials=30))


def test_a_worker_that_dies_idle_costs_no_trial(monkeypatch):
    """The first worker is killed before it has been given anything."""

    def start(self):
        worker = usual(self)
        if not killed:
            worker.process.kill()
            worker.process.join()
            killed.append(worker)
        return worker

    usual, killed = _Pool._start, []
    monkeypatch.setattr(_Pool, "_start", start)
    result = run(workers=2)
    assert len(killed) == 1
    assert {note.attempts for note in result.notes} == {1}
    same(result, run())


def test_a_dead_worker_whose_child_holds_the_pipe_is_noticed(tmp_path):
    """The pipe does not close then; the worker's exit code must tell."""

    def forks_and_dies(dataset, rng):
        if rng.random() < 0.1:
            if os.fork() == 0:
                (tmp_path / str(os.getpid())).touch()
                signal.pause()
            os._exit(9)
        return leaky(dataset, rng)

    try:
        result = run(Target(forks_and_dies, Numbers(), closeness, dataset=[0.5]), trials=40, executor=Processes(2))
    finally:
        for mark in tmp_path.iterdir():
            os.kill(int(mark.name), signal.SIGKILL)
    assert 1 <= result.failed_runs <= 15
    assert all("exit code 9" in note.failures["scores"] for note in result.notes if note.failures)


def test_a_worker_that_writes_nonsense_to_its_pipe_costs_its_trial():
    def writes(dataset, rng):
        if rng.random() < 0.3:
            for descriptor in range(3, 256):
                try:
                    if str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith("socket:"):
                        os.write(descriptor, b"\0\0\0\4nons")
                except OSError:
                    pass
            os._exit(9)
        return leaky(dataset, rng)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc")
    result = run(Target(writes, Numbers(), closeness, dataset=[0.5]), trials=12, executor=Processes(2))
    assert 0 < result.failed_runs < 12


def test_records_that_a_worker_should_not_have_sent_are_ignored():
    """Duplicates and trials that it was not given, from a process that it forked."""
    setup = TrialSetup(LEAKY, CoinFlip(4), 0)
    pool = _Pool(Processes(1), setup, [3, 4])
    parent_end, worker_end = pool.context.Pipe()
    worker = _Worker(None, parent_end)
    pool.workers = [worker]
    pool._hand_out(worker)
    records = {index: failed_record(setup, index, "for the test", seconds=0.0) for index in (3, 4, 9)}
    for sent, accepted in (([9], []), ([3, 9], [3]), ([3], []), ([4, 3], [4])):
        worker_end.send([records[index] for index in sent])
        assert [record.index for record in pool._receive(worker)] == accepted
    assert pool.dispatcher.done


# Time limits and waiting.


@pytest.mark.slow
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


def test_an_executor_that_waits_returns_control(tmp_path):
    gate = tmp_path / "gate"

    def waits(dataset, rng):
        while not gate.exists():
            pass
        return leaky(dataset, rng)

    setup = TrialSetup(Target(waits, Numbers(), closeness), CoinFlip(2), 0)
    results = Processes(1).run(setup, [0])
    assert next(results) == []
    gate.touch()
    assert [record.index for records in results for record in records] == [0]


# Interrupts.


def test_an_interrupt_while_workers_start_leaves_none_behind(interrupts, monkeypatch):
    """Python waits at its end for processes that it has started; one that is never ended would be waited for forever."""

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


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    """Only the parent is killed: the store can be opened again at once, and the audit resumed."""
    path = tmp_path / "a.db"
    command = [
        sys.executable, "-m", "lidp", "audit", "tests.sample_targets:SLOW", "--epsilon", "9", "--trials", "3000", "--canaries", "4",
        "--workers", "2", "--store", str(path), "--stop-when", "never", "--quiet",
    ]  # fmt: skip
    for how, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 130)):
        before = sample_targets.finished(path)
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        sample_targets.wait_for_more(path, before)
        os.kill(process.pid, how)
        complaint = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == code, complaint
        wait_until_gone(str(path))
    Store.open(path).close()
