"""The dispatcher, event by event, without processes or clocks."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed
from lidp.trials.dispatcher import Dispatcher, DispatchPolicy, LostTrial

DIED = "the worker process died"
LOCAL = {"batch_trials": 8, "batch_seconds": 10.0, "keeps_each_record": True}
RAY = {"batch_trials": 8, "batch_seconds": 10.0, "may_run_together": True, "node_check_seconds": 5.0, "most_node_losses": 2}


def dispatcher(trials, capacity=1, **options):
    return Dispatcher(range(trials), DispatchPolicy(**options), capacity=capacity, now=0.0)


def record(index):
    return TrialRecord(index, {"scores": np.zeros(1)})


def records(batch):
    return [record(index) for index in batch.pending]


def start(dispatch, now=0.0):
    """Hand out the next batch and start it."""
    batch = dispatch.next_batch()
    dispatch.note_start(batch, now=now)
    return batch


def warm_up(dispatch, seconds=1.0):
    """Run the first trial, so that the dispatcher knows how long a trial takes."""
    batch = start(dispatch)
    assert batch.pending == [0]
    dispatch.take_records(batch, records(batch), now=seconds)


# Handing out.


def test_first_batch_is_one_trial_and_later_batches_last_as_long_as_intended():
    dispatch = dispatcher(100, **LOCAL)
    warm_up(dispatch, seconds=2.0)
    assert dispatch.next_batch().pending == [1, 2, 3, 4, 5]  # 10 seconds of 2-second trials


@pytest.mark.parametrize(("trials", "capacity", "size"), [(100, 1, 8), (25, 3, 4), (13, 3, 2), (4, 10, 1)])
def test_batches_are_bounded_and_leave_trials_for_other_workers(trials, capacity, size):
    dispatch = dispatcher(trials, capacity=capacity, **LOCAL)
    warm_up(dispatch, seconds=1e-12)
    assert len(dispatch.next_batch().pending) == size


def test_no_more_batches_than_the_capacity_are_handed_out():
    dispatch = dispatcher(10, capacity=2, **LOCAL)
    assert dispatch.next_batch() is not None
    assert dispatch.next_batch() is not None
    assert dispatch.next_batch() is None
    dispatch.capacity = 3  # a node has joined
    assert dispatch.next_batch().pending == [2]


def test_no_batch_is_left_when_all_trials_are_handed_out():
    dispatch = dispatcher(1, capacity=2)
    batch = dispatch.next_batch()
    assert dispatch.next_batch() is None
    assert not dispatch.done
    assert dispatch.take_records(batch, records(batch), now=1.0)
    assert dispatch.done


@pytest.mark.parametrize(
    ("options", "size", "together"),
    [
        ({**RAY, "retry": True}, 8, True),
        ({**RAY, "retry": False}, 1, False),
        ({**RAY, "retry": True, "time_limit_seconds": 60.0}, 1, False),
        ({**LOCAL, "may_run_together": True, "retry": True}, 8, True),
        ({**LOCAL, "may_run_together": True, "retry": False}, 8, False),
        ({**LOCAL, "may_run_together": True, "retry": True, "time_limit_seconds": 60.0}, 8, False),
    ],
)
def test_trials_run_together_only_with_retry_and_without_time_limit(options, size, together):
    """Or a death could be charged to no trial, and a time limit could not be measured."""
    dispatch = dispatcher(100, **options)
    warm_up(dispatch)
    batch = dispatch.next_batch()
    assert (len(batch.pending), batch.together) == (size, together)


# Records.


def test_records_count_once_and_only_for_trials_of_the_batch():
    """A process that a mechanism has forked may send others."""
    dispatch = dispatcher(3, capacity=2, **LOCAL)
    first, second = start(dispatch), start(dispatch)
    assert dispatch.take_records(first, [record(1), record(2), record(9)], now=1.0) == []
    accepted = dispatch.take_records(first, [record(0), record(0), record(1)], now=1.0)
    assert [one.index for one in accepted] == [0]
    assert dispatch.take_records(first, [record(0)], now=1.0) == []
    assert [one.index for one in dispatch.take_records(second, [record(1)], now=1.0)] == [1]


def test_a_record_that_comes_after_its_trial_was_given_up_does_not_count():
    dispatch = dispatcher(1, time_limit_seconds=1.0)
    batch = start(dispatch)
    assert dispatch.give_up(batch, now=2.0).index == 0
    assert dispatch.take_records(batch, [record(0)], now=3.0) == []


# Deaths.


def test_a_death_is_charged_to_the_first_trial_that_is_missing():
    dispatch = dispatcher(100, **LOCAL)
    warm_up(dispatch)
    batch = start(dispatch, now=1.0)
    assert batch.pending == list(range(1, 9))
    dispatch.take_records(batch, [record(1), record(2)], now=3.0)
    assert dispatch.handle_dead_worker(batch, DIED, now=3.5) == [LostTrial(3, DIED, 0.5, attempts=1)]
    assert list(dispatch.queued[:6]) == [4, 5, 6, 7, 8, 9]


def test_with_retry_a_trial_runs_once_more_alone_and_then_has_failed():
    dispatch = dispatcher(100, **LOCAL, retry=True)
    warm_up(dispatch)
    batch = start(dispatch, now=1.0)
    assert dispatch.handle_dead_worker(batch, DIED, now=2.0) == []
    again = start(dispatch, now=2.0)
    assert again.pending == [1]
    assert dispatch.handle_dead_worker(again, DIED, now=5.0) == [LostTrial(1, DIED, 3.0, attempts=2)]
    assert 1 not in dispatch.queued


def test_a_retried_trial_that_succeeds_says_so():
    dispatch = dispatcher(1, retry=True)
    dispatch.handle_dead_worker(start(dispatch), DIED, now=1.0)
    again = start(dispatch, now=1.0)
    assert [one.attempts for one in dispatch.take_records(again, [record(0)], now=2.0)] == [2]


def test_a_batch_that_ran_together_is_broken_up_and_none_is_charged():
    dispatch = dispatcher(100, **RAY, retry=True)
    warm_up(dispatch)
    batch = start(dispatch, now=1.0)
    suspects = list(batch.pending)
    assert len(suspects) == 8
    assert dispatch.handle_dead_worker(batch, DIED, now=2.0) == []
    for index in suspects:
        alone = start(dispatch, now=2.0)
        assert alone.pending == [index]
        assert [one.attempts for one in dispatch.take_records(alone, [record(index)], now=3.0)] == [1]
    assert len(dispatch.next_batch().pending) == 8


def test_a_batch_stops_before_a_trial_that_must_run_alone():
    dispatch = dispatcher(100, capacity=2, **RAY, retry=True)
    warm_up(dispatch)
    first, second = start(dispatch, now=1.0), start(dispatch, now=1.0)
    assert second.pending[0] == 9
    dispatch.handle_dead_worker(second, DIED, now=2.0)
    dispatch.take_records(first, [record(1), record(2)], now=3.0)
    dispatch.handle_lost_node(first)
    assert dispatch.next_batch().pending == [3, 4, 5, 6, 7, 8]  # not the 8 trials of a full batch
    assert dispatch.next_batch().pending == [9]


def test_one_trial_of_a_batch_that_runs_together_is_charged():
    dispatch = dispatcher(1, **RAY, retry=True)
    dispatch.handle_dead_worker(start(dispatch), DIED, now=1.0)
    assert dispatch.handle_dead_worker(start(dispatch, now=1.0), DIED, now=2.0) == [LostTrial(0, DIED, 1.0, attempts=2)]


def test_records_that_are_found_after_a_death_count_and_the_first_missing_trial_is_charged():
    dispatch = dispatcher(100, **LOCAL, node_check_seconds=5.0)
    warm_up(dispatch)
    batch = start(dispatch, now=1.0)
    dispatch.defer_until_node_checked(batch, now=4.0)
    found = [replace(record(index), seconds=1.0) for index in (1, 2)]
    assert dispatch.take_records(batch, found, now=9.0) == found
    assert dispatch.handle_dead_worker(batch, DIED, now=9.0) == [LostTrial(3, DIED, 1.0, attempts=1)]
    assert list(dispatch.queued[:2]) == [4, 5]


def test_a_worker_that_died_after_its_last_trial_costs_none():
    dispatch = dispatcher(1)
    batch = start(dispatch)
    dispatch.defer_until_node_checked(batch, now=1.0)
    assert dispatch.take_records(batch, [record(0)], now=2.0) == [record(0)]
    assert dispatch.done


def test_if_records_are_lost_no_trial_that_may_have_run_runs_again():
    dispatch = dispatcher(100, **LOCAL)
    warm_up(dispatch)
    batch = start(dispatch, now=1.0)
    lost = dispatch.handle_lost_records(batch, DIED, now=9.0)
    assert lost == [LostTrial(index, DIED, 1.0, attempts=1) for index in range(1, 9)]
    assert dispatch.queued[0] == 9


def test_if_records_are_lost_with_retry_each_trial_runs_again_alone():
    dispatch = dispatcher(100, **LOCAL, retry=True)
    warm_up(dispatch)
    assert dispatch.handle_lost_records(start(dispatch, now=1.0), DIED, now=9.0) == []
    assert [start(dispatch).pending] == [[1]]


def test_batches_are_sized_by_the_duration_that_workers_measure_if_messages_come_late():
    dispatch = dispatcher(100, **LOCAL)
    batch = start(dispatch, now=5.0)
    dispatch.take_records(batch, [replace(record(0), seconds=5.0)], now=5.0)
    assert len(dispatch.next_batch().pending) == 2  # 10 seconds of 5-second trials


def test_a_worker_that_died_idle_is_no_trials_fault():
    dispatch = dispatcher(2)
    batch = start(dispatch)
    dispatch.return_undelivered(batch)
    assert list(dispatch.queued) == [0, 1]
    again = start(dispatch)
    assert [one.attempts for one in dispatch.take_records(again, [record(0)], now=1.0)] == [1]


# Nodes.


def test_a_dead_worker_is_charged_only_after_its_node_was_checked():
    dispatch = dispatcher(2, **RAY)
    batch = start(dispatch, now=1.0)
    dispatch.defer_until_node_checked(batch, now=3.0)
    assert dispatch.next_batch().pending == [1]  # others go on
    assert dispatch.due_node_checks(now=7.9) == []
    assert dispatch.next_deadline() == 8.0
    assert dispatch.due_node_checks(now=8.0) == [batch]
    lost = dispatch.handle_dead_worker(batch, DIED, now=9.0)
    assert lost == [LostTrial(0, DIED, 2.0, attempts=1)]  # its clock stood still from its death on
    assert not dispatch.deferred


def test_a_deferred_trial_is_never_overdue():
    dispatch = dispatcher(1, **RAY, time_limit_seconds=2.0)
    batch = start(dispatch)
    dispatch.defer_until_node_checked(batch, now=1.0)
    assert dispatch.overdue(now=100.0) == []


def test_a_lost_node_charges_no_trial_and_its_batch_stays_whole():
    dispatch = dispatcher(100, **RAY, retry=True)
    warm_up(dispatch)
    batch = start(dispatch, now=1.0)
    dispatch.note_node(batch, "a")
    dispatch.handle_lost_node(batch)
    again = start(dispatch, now=2.0)
    assert again.pending == list(range(1, 9))
    assert {one.attempts for one in dispatch.take_records(again, records(again), now=3.0)} == {1}


def test_a_trial_that_loses_its_node_again_and_again_ends_the_audit():
    dispatch = dispatcher(1, **RAY)
    for _ in range(2):
        dispatch.handle_lost_node(start(dispatch))
    with pytest.raises(AuditFailed, match="trial 0 lost its node 3 times"):
        dispatch.handle_lost_node(start(dispatch))


# Time.


def test_an_overdue_trial_has_failed_and_the_rest_of_its_batch_has_not():
    dispatch = dispatcher(100, **LOCAL, time_limit_seconds=5.0)
    warm_up(dispatch)
    batch = start(dispatch, now=1.0)
    dispatch.take_records(batch, [record(1)], now=4.0)
    assert dispatch.next_deadline() == 9.0
    assert dispatch.overdue(now=9.0) == []
    assert dispatch.overdue(now=9.1) == [batch]
    assert dispatch.give_up(batch, now=10.0) == LostTrial(2, "passed the time limit of 5 s", 6.0, attempts=1)
    assert list(dispatch.queued[:2]) == [3, 4]
    assert dispatch.next_deadline() == math.inf


def test_a_trial_that_hangs_after_its_first_run_died_had_two_attempts():
    dispatch = dispatcher(1, retry=True, time_limit_seconds=5.0)
    dispatch.handle_dead_worker(start(dispatch), DIED, now=1.0)
    assert dispatch.give_up(start(dispatch, now=1.0), now=7.0).attempts == 2


def test_the_clock_of_a_batch_that_waits_does_not_run():
    dispatch = dispatcher(1, **RAY, time_limit_seconds=5.0)
    batch = dispatch.next_batch()
    dispatch.note_node(batch, "a")
    assert dispatch.next_deadline() == math.inf
    assert dispatch.overdue(now=1000.0) == []
    dispatch.note_start(batch, now=1000.0)
    assert dispatch.next_deadline() == 1005.0


def test_without_time_limit_no_trial_is_overdue():
    dispatch = dispatcher(1)
    start(dispatch)
    assert dispatch.overdue(now=1e9) == []
    assert dispatch.next_deadline() == math.inf


# Stalled batches.


def stalled(waiting=2, **options):
    """Return a dispatcher with one batch that runs and some that wait."""
    dispatch = dispatcher(10, capacity=1 + waiting, stall_seconds=20.0, **{**RAY, **options})
    running = start(dispatch)
    dispatch.note_node(running, "a")
    return dispatch, [dispatch.next_batch() for _ in range(waiting)]


def test_batches_that_wait_are_taken_back_after_a_silence_if_slots_are_free():
    dispatch, waiting = stalled()
    assert dispatch.take_back_stalled(slots=2, now=20.0) == []
    assert dispatch.take_back_stalled(slots=2, now=20.1) == waiting
    assert list(dispatch.queued) == list(range(1, 10))
    assert len(dispatch.running) == 1


def test_batches_that_wait_are_left_while_all_slots_are_taken():
    dispatch, _ = stalled()
    assert dispatch.take_back_stalled(slots=1, now=20.1) == []
    assert list(dispatch.queued) == list(range(3, 10))


def test_batches_are_taken_back_less_and_less_often_until_a_message_comes():
    dispatch, _ = stalled()
    assert dispatch.take_back_stalled(slots=2, now=21.0)
    dispatch.next_batch()
    assert not dispatch.take_back_stalled(slots=2, now=61.0)
    assert dispatch.take_back_stalled(slots=2, now=61.1)
    dispatch.next_batch()
    dispatch.note_message(now=70.0)
    assert dispatch.take_back_stalled(slots=2, now=90.1)


def test_a_batch_that_is_on_a_node_is_not_taken_back():
    """It may have loaded what it needs, and started."""
    dispatch, (first, second) = stalled()
    dispatch.note_node(first, "b")
    assert dispatch.take_back_stalled(slots=3, now=21.0) == [second]
