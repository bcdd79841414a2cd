"""Decide which trials run next, which run again and which have failed. A state machine without I/O.

An executor reports events (records arrived, a worker died, a node was lost), each with the time at which it happened, and carries
out what the :class:`Dispatcher` answers. The dispatcher starts no process, opens no connection and reads no clock, so local
processes and Ray follow the same rules:

- Every trial ends in exactly one record: the record that a worker returned, or a :class:`LostTrial` that says why there is none.
- The death of a worker process is an outcome of the trial that it was running, like any other outcome: the trial has failed.
  Running it again until it survives would let a mechanism choose, by dying, which of its outputs are looked at. With ``retry``
  the trial runs once more first, with the same coins and streams. That repeats the same run only if the mechanism draws all its
  randomness from its ``rng``, which is why it is not the default.
- Short trials are handed out in batches, sized by their own duration, so that messages cost little. Batches shrink towards the
  end, so that workers end together.
- A death must be charged to one trial: the first one of the batch whose record is missing, because every record is sent, or kept
  where it survives the worker, as soon as its trial ends. If the trials of a batch ran together in one go, none of them is
  charged; each runs again, alone. Without ``retry`` that second run is not allowed, and a time limit must be measured per trial:
  in both cases trials never run together.
- The loss of a node is no trial's fault, so what ran there runs again, with the same coins and streams. If one trial loses its
  node again and again, the mechanism may be what brings nodes down, and the audit ends.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed
from lidp.trials.setup import describe_time_limit

_BATCHES_PER_WORKER = 2  # that the trials in the queue must suffice for: else batches are made smaller
_SHORTEST_TRIAL_SECONDS = 1e-6  # keeps the division by a measured duration finite


@dataclass(frozen=True)
class DispatchPolicy:
    """The rules of one executor.

    Attributes:
        retry: run a trial once more after its worker process died.
        time_limit_seconds: longest duration of a trial; None if there is none.
        batch_trials: largest number of trials in a batch.
        batch_seconds: intended duration of a batch, by the duration of the latest trials.
        keeps_each_record: whether a worker sends every record as soon as its trial ends, or keeps it where it survives the worker,
            so that the first trial that is missing is known to be the one that was running.
        may_run_together: whether a worker may run the trials of a batch in one go and return all their records at the end.
        node_check_seconds: how long after the death of a worker process its node is checked.
        most_node_losses: how many times one trial may lose its node before the audit ends.
        report_seconds: how long a worker may wait, after a trial of a batch has ended, before it reports that.
        stall_seconds: how long no message may arrive before batches that have not started are handed out again.
    """

    retry: bool = False
    time_limit_seconds: float | None = None
    batch_trials: int = 1
    batch_seconds: float = 0.0
    keeps_each_record: bool = False
    may_run_together: bool = False
    node_check_seconds: float = 0.0
    most_node_losses: int = 0
    report_seconds: float = 0.0
    stall_seconds: float = math.inf

    @property
    def runs_together(self) -> bool:
        """Whether the trials of a batch run together: only if a death may be followed by a second run, and without time limit."""
        return self.may_run_together and self.retry and self.time_limit_seconds is None

    @property
    def largest_batch(self) -> int:
        """The largest batch of which it is known, or can be found out, which trial killed its worker."""
        return self.batch_trials if self.runs_together or self.keeps_each_record else 1


@dataclass(eq=False)
class Batch:
    """Trials that are handed to a worker with one message.

    Attributes:
        pending: the trials whose records are missing, in the order in which they run.
        together: whether they run in one go, so that it is not known which of them is running.
        number: the number of the batch.
        size: how many trials it had at first.
        node: the name of the node that they run on; None while it is not known.
        running_since: when the first pending trial started; None while it waits.
        died_at: when their worker process died; infinite while it lives.
        overdue: whether their worker process was ended because a trial exceeded the time limit.
    """

    pending: list[int]
    together: bool
    number: int = 0
    size: int = field(init=False)
    node: str | None = None
    running_since: float | None = None
    died_at: float = math.inf
    overdue: bool = False

    def __post_init__(self) -> None:
        self.size = len(self.pending)

    def running_seconds(self, now: float) -> float:
        """Return how long the first pending trial has been running, or had been when its process died."""
        return 0.0 if self.running_since is None else min(self.died_at, now) - self.running_since

    def running_trial(self) -> int | None:
        """Return the trial that is running; None if it may be one of several."""
        return None if self.together and len(self.pending) > 1 else self.pending[0]


@dataclass(frozen=True)
class LostTrial:
    """A trial that has failed without a record from its worker."""

    index: int
    reason: str
    seconds: float
    attempts: int


class _Queue:
    """Trials that wait to be handed out. Those that were never handed out are not copied: there may be millions."""

    def __init__(self, indices: Sequence[int]) -> None:
        self._indices = indices
        self._next = 0
        self._returned: deque[int] = deque()  # to be handed out first

    def __len__(self) -> int:
        return len(self._returned) + len(self._indices) - self._next

    def __getitem__(self, position: int) -> int:
        returned = len(self._returned)
        return self._returned[position] if position < returned else self._indices[self._next + position - returned]

    def popleft(self) -> int:
        """Remove and return the first trial."""
        if self._returned:
            return self._returned.popleft()
        self._next += 1
        return self._indices[self._next - 1]

    def return_all(self, indices: Sequence[int]) -> None:
        """Put trials back, before all others and in this order."""
        self._returned.extendleft(reversed(indices))


class Dispatcher:
    """Tracks queued, running and deferred trials of one run of an executor.

    ``capacity`` is the largest number of batches to hand out at once. An executor may change it at any time.
    """

    def __init__(self, indices: Sequence[int], policy: DispatchPolicy, *, capacity: int, now: float) -> None:
        self.policy = policy
        self.capacity = capacity
        self._queue = _Queue(indices)
        self._running: dict[Batch, None] = {}  # a set that keeps its order
        self._deferred: list[Batch] = []
        self._alone: set[int] = set()  # trials that must not share a batch: one of them killed a worker, or may have
        self._deaths: dict[int, int] = {}
        self._node_losses: dict[int, int] = {}
        self._seconds_per_trial: float | None = None
        self._batches = 0
        self._heard_at = now
        self._silence_seconds = policy.stall_seconds

    @property
    def done(self) -> bool:
        """Whether every trial has its record."""
        return not (self._queue or self._running or self._deferred)

    @property
    def queued(self) -> Sequence[int]:
        """The trials that wait to be handed out, in order."""
        return [self._queue[position] for position in range(len(self._queue))]

    @property
    def running(self) -> Sequence[Batch]:
        """The batches that are handed out and not returned."""
        return tuple(self._running)

    @property
    def deferred(self) -> Sequence[Batch]:
        """The batches whose worker process died, and whose node is still to be checked."""
        return tuple(self._deferred)

    def next_batch(self) -> Batch | None:
        """Return the trials to hand to a worker that is free; None if there are none, or enough batches are handed out."""
        if not self._queue or len(self._running) >= self.capacity:
            return None
        size = self._batch_size()
        pending = [self._queue.popleft()]
        while len(pending) < size and self._queue[0] not in self._alone:
            pending.append(self._queue.popleft())
        self._batches += 1
        batch = Batch(pending, self.policy.runs_together, self._batches)
        self._running[batch] = None
        return batch

    def note_node(self, batch: Batch, node: str) -> None:
        """Note that a batch is on a node, where it may first have to load what it needs."""
        batch.node = node

    def note_start(self, batch: Batch, *, now: float) -> None:
        """Note that the first trial of a batch starts now."""
        batch.running_since = now

    def take_records(self, batch: Batch, records: Iterable[TrialRecord], *, now: float) -> list[TrialRecord]:
        """Accept records that a worker returned, and return those that count.

        Only trials count that the worker was given and has not returned before: a process that a mechanism has forked may have
        sent others.
        """
        accepted = []
        for record in records if batch in self._running or batch in self._deferred else ():
            if record.index in batch.pending:
                batch.pending.remove(record.index)
                deaths = self._deaths.get(record.index, 0)
                accepted.append(replace(record, attempts=deaths + 1) if deaths else record)
        if accepted and batch.running_since is not None:
            self._note_duration(batch, accepted, now)
        if accepted and not batch.pending:
            self._remove(batch)
        return accepted

    def _note_duration(self, batch: Batch, accepted: Sequence[TrialRecord], now: float) -> None:
        """Note how long trials take, and when the next trial of the batch started."""
        worked = sum(record.seconds for record in accepted)
        if math.isfinite(batch.died_at):  # records that were found after the death of their worker
            batch.running_since = min(batch.died_at, (batch.running_since or 0.0) + worked)
            return
        # The start of a batch and its records may be heard of together, long after both: believe the longer duration.
        self._seconds_per_trial = max(batch.running_seconds(now), worked) / len(accepted)
        batch.running_since = now

    def return_undelivered(self, batch: Batch) -> None:
        """Put back a batch that never reached a worker, because the worker died idle: that is no trial's fault."""
        self._remove(batch)
        self._queue.return_all(batch.pending)

    def handle_dead_worker(self, batch: Batch, reason: str, *, now: float) -> list[LostTrial]:
        """Charge the death of a worker to the trial that it was running, and return that trial if it has failed.

        With ``retry`` the trial runs once more first, unless it was ended because it is overdue. Trials that had not started go
        back to the queue.
        """
        if batch.overdue:
            return [self.give_up(batch, now=now)]
        self._remove(batch)
        dead = batch.running_trial()
        if dead is None:  # any trial of the batch may have done it: none is charged, and each runs alone from now on
            self._alone.update(batch.pending)
            self._queue.return_all(batch.pending)
            return []
        self._queue.return_all([index for index in batch.pending if index != dead])
        self._deaths[dead] = self._deaths.get(dead, 0) + 1
        if self.policy.retry and self._deaths[dead] == 1:
            self._alone.add(dead)
            self._queue.return_all([dead])
            return []
        return [LostTrial(dead, reason, batch.running_seconds(now), attempts=self._deaths[dead])]

    def handle_lost_records(self, batch: Batch, reason: str, *, now: float) -> list[LostTrial]:
        """Handle the death of a worker whose records are lost, so that it is not known which of its trials have run.

        With ``retry`` each of them runs again, alone. Without, none may run a second time, and all of them have failed.
        """
        if self.policy.retry:
            batch.together, batch.overdue = True, False
            return self.handle_dead_worker(batch, reason, now=now)
        self._remove(batch)
        seconds = batch.running_seconds(now) / len(batch.pending)
        return [LostTrial(index, reason, seconds, attempts=1) for index in batch.pending]

    def defer_until_node_checked(self, batch: Batch, *, now: float) -> None:
        """Set a batch aside whose worker process died: by itself, or as the first process of a node that is going down?

        The answer shows a moment later, in which other trials go on and the clock of this batch stands still.
        """
        self._remove(batch)
        batch.died_at = now
        self._deferred.append(batch)

    def due_node_checks(self, *, now: float) -> list[Batch]:
        """Return the deferred batches whose nodes are to be checked now.

        Each is then to be handed to :meth:`handle_lost_node`, :meth:`handle_dead_worker` or :meth:`handle_lost_records`.
        """
        return [batch for batch in self._deferred if now >= batch.died_at + self.policy.node_check_seconds]

    def handle_lost_node(self, batch: Batch) -> None:
        """Queue a batch again whose node is gone: that is no trial's fault.

        Raises:
            AuditFailed: if one of its trials has lost its node too many times.
        """
        self._remove(batch)
        for index in batch.pending:
            losses = self._node_losses[index] = self._node_losses.get(index, 0) + 1
            if losses > self.policy.most_node_losses:
                raise AuditFailed(
                    f"trial {index} lost its node {losses} times; resume when the cluster is stable, "
                    "and check whether the mechanism brings nodes down"
                )
        self._queue.return_all(batch.pending)

    def overdue(self, *, now: float) -> list[Batch]:
        """Return the batches whose running trial has exceeded the time limit, as far as is known without its worker's report."""
        return [batch for batch in self._running if batch.running_seconds(now) > self._limit(batch)]

    def give_up(self, batch: Batch, *, now: float) -> LostTrial:
        """Return the running trial of an overdue batch as failed; trials that had not started go back to the queue."""
        self._remove(batch)
        late, *rest = batch.pending
        self._queue.return_all(rest)
        reason = describe_time_limit(self.policy.time_limit_seconds or math.inf)
        return LostTrial(late, reason, batch.running_seconds(now), attempts=self._deaths.get(late, 0) + 1)

    def note_message(self, *, now: float) -> None:
        """Note that a worker has sent something, so that nothing is stalled."""
        self._heard_at, self._silence_seconds = now, self.policy.stall_seconds

    def take_back_stalled(self, *, slots: int, now: float) -> list[Batch]:
        """Queue the batches again that have not started though no message came for long, and return them.

        Only if some of the ``slots``, the number of batches that can run at once, are free. No batch that is taken back was heard
        to start, so the choice cannot depend on an outcome. If all is well and others use the slots, the batches are taken back
        less and less often.
        """
        if now - self._heard_at <= self._silence_seconds:
            return []
        self._heard_at, self._silence_seconds = now, 2 * self._silence_seconds
        waiting = [batch for batch in self._running if batch.node is None and batch.running_since is None]
        if len(self._running) - len(waiting) >= slots:
            return []
        for batch in reversed(waiting):
            self._remove(batch)
            self._queue.return_all(batch.pending)
        return waiting

    def next_deadline(self) -> float:
        """Return the time at which a trial becomes overdue or a node is to be checked; infinite if there is none."""
        deadlines = [batch.died_at + self.policy.node_check_seconds for batch in self._deferred]
        started = (batch for batch in self._running if batch.running_since is not None)
        deadlines += [(batch.running_since or 0.0) + self._limit(batch) for batch in started]
        return min(deadlines, default=math.inf)

    def _limit(self, batch: Batch) -> float:
        """Return how long after the latest report on a batch its running trial has surely exceeded the time limit."""
        limit = self.policy.time_limit_seconds
        return math.inf if limit is None else limit + (self.policy.report_seconds if batch.size > 1 else 0.0)

    def _batch_size(self) -> int:
        """Return how many trials keep a worker busy for a moment; one while their duration is not known."""
        if self._seconds_per_trial is None or self._queue[0] in self._alone:
            return 1
        size = math.floor(self.policy.batch_seconds / max(self._seconds_per_trial, _SHORTEST_TRIAL_SECONDS))
        return max(1, min(size, self.policy.largest_batch, len(self._queue) // (_BATCHES_PER_WORKER * self.capacity)))

    def _remove(self, batch: Batch) -> None:
        """Remove a batch that is running or deferred."""
        if batch in self._running:
            del self._running[batch]
        else:
            self._deferred.remove(batch)
