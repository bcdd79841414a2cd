"""Batches of trials in worker processes: a trial that dies, hangs or is interrupted in a batch costs itself only."""

import os
import signal

import pytest

from lidp import Target
from lidp.result import AuditInterrupted
from lidp.store import Store
from lidp.trials import processes
from lidp.trials.dispatcher import Dispatcher
from tests.sample_targets import Numbers, Trouble, closeness, leaky, run, same

TRIALS = 120


@pytest.fixture
def sizes(monkeypatch):
    """The sizes of all batches, which are large however slow the machine is."""
    handed_out, usual = [], Dispatcher.next_batch

    def next_batch(self):
        batch = usual(self)
        handed_out.extend([] if batch is None else [len(batch.pending)])
        return batch

    monkeypatch.setattr(processes, "_BATCH_SECONDS", 1e6)
    monkeypatch.setattr(Dispatcher, "next_batch", next_batch)
    return handed_out


def trouble(kind, rate=0.05):
    return Target(Trouble(kind, rate), Numbers(), closeness, dataset=[0.5], name="trouble")


def failed(result):
    return [note.index for note in result.notes if note.failures]


def test_three_workers_give_the_result_of_one_bit_for_bit(sizes):
    same(run(trials=TRIALS), run(trials=TRIALS, workers=3))
    assert max(sizes) > 1


def test_batches_shrink_towards_the_end(sizes):
    run(trials=TRIALS, workers=2)
    assert sizes[-1] == 1
    assert sum(sizes) == TRIALS


def test_a_death_in_a_batch_costs_its_trial_only(sizes):
    """The trials before it in its batch are recorded, those after it run elsewhere, and none runs twice."""
    result, expected = run(trouble("dies"), trials=TRIALS, workers=3), run(trouble("raises"), trials=TRIALS)
    assert max(sizes) > 1
    assert failed(result) == failed(expected) != []
    assert {note.attempts for note in result.notes} == {1}
    same(result, expected)


def test_a_time_out_in_a_batch_costs_its_trial_only(sizes):
    result = run(trouble("hangs", 0.02), trials=TRIALS, workers=3, time_limit=3)
    expected = run(trouble("raises", 0.02), trials=TRIALS)
    assert max(sizes) > 1
    assert failed(result) == failed(expected) != []
    assert all("time limit of 3 s" in note.failures["scores"] for note in result.notes if note.failures)
    same(result, expected)


def test_an_audit_that_is_interrupted_in_a_batch_resumes_with_the_same_result(sizes, tmp_path):
    """Trials of the batch that were finished are stored; none is lost, and none is recorded twice."""

    def interrupts(progress):
        if progress.done >= TRIALS // 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # also where tests run in a background that ignores it
    try:
        options = {"trials": TRIALS, "store": tmp_path / "a.db"}
        slow = Target(leaky_after_a_moment, Numbers(), closeness, dataset=[0.5], name="x")
        with pytest.raises(AuditInterrupted):
            run(slow, **options, workers=2, watch=interrupts)
        assert max(sizes) > 1
        with Store.read(tmp_path / "a.db") as store:
            assert TRIALS // 3 <= store.count_trials() < TRIALS
        same(run(slow, **options, workers=3), run(slow, trials=TRIALS))
    finally:
        signal.signal(signal.SIGINT, before)


def leaky_after_a_moment(dataset, rng):
    signal.sigtimedwait([], 0.01)
    return leaky(dataset, rng)


leaky_after_a_moment.draws_only_from_rng = True
