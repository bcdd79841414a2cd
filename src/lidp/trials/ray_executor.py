"""Trials on a cluster: an executor that hands them to Ray. The driver alone decides what is run again, and what has failed."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from lidp import checks
from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed, InvalidArgument
from lidp.trials.ray_cluster import Cluster, connected
from lidp.trials.ray_task import packed, pickled, work, work_once
from lidp.trials.trial import TrialSetup

_BATCH = 1024  # trials in a task, at most
_TASK_SECONDS = 0.5  # ... or about as many as take this long: losing a task loses no more
_AHEAD = 2  # tasks handed out per slot, so that none waits for the driver
_LOOK_SECONDS = 2.0  # how often the nodes are counted
_YIELD_SECONDS = 0.2  # how often control is returned to the caller while nothing is finished
_PATIENCE_SECONDS = 300.0  # how long a cluster may be without a node that can run a trial
_MOST_LOSSES = 20  # nodes that may be lost under one trial
_ASIDE_SECONDS = 5.0  # how long after the death of a process its node is asked for
_SILENT_SECONDS = 20.0  # how long nothing may begin though there is room, before waiting tasks are handed out anew


@dataclass(frozen=True)
class Ray:
    """Trials as tasks of a Ray cluster, each with its share of processors and graphics cards.

    Without an ``address`` Ray is started on this machine for as long as the trials take, reachable from this machine only. A Ray
    that this process is connected to already is used as it is, and left connected.

    A lost node costs what was running there; that is run again with the same coins and streams, and charged to no trial. A
    worker process that dies on a node that lives costs its trial, which is run once more if ``retry`` and recorded as failed
    if its process dies again. A trial that exceeds ``time_limit`` seconds, counted from its start, is recorded as failed.

    Raises:
        InvalidArgument: when run, if Ray is missing, the address does not answer, or no node can ever run a trial.
        AuditFailed: if the nodes cannot load the target, or are lost again and again.
    """

    address: str | None = None
    cpus_per_trial: float = 1.0
    gpus_per_trial: float = 0.0
    time_limit: float | None = None
    retry: bool = False

    yields_while_waiting: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.positive(cpus_per_trial=self.cpus_per_trial)
        checks.non_negative(gpus_per_trial=self.gpus_per_trial)
        for name, share in (("cpus_per_trial", self.cpus_per_trial), ("gpus_per_trial", self.gpus_per_trial)):
            if share > 1 and share != int(share):
                raise InvalidArgument(f"{name} must be a whole number, or a part of one, got {share:g}")
        if self.time_limit is not None:
            checks.positive(time_limit=self.time_limit)
        if self.address is not None and self.address.startswith("ray://"):
            raise InvalidArgument(
                f"address must be auto or host:port, got {self.address!r}; run lidp on a node of the cluster, not as its client"
            )

    @property
    def several(self) -> bool:
        """Whether trials run in more than one process."""
        return True

    def session(self) -> AbstractContextManager[Any]:
        """Stay connected for several calls of :meth:`run_work` and :meth:`run`."""
        return connected(self.address)

    def run_work(self, work: Callable[[], Any], time_limit: float | None = None) -> Any:
        """Return the result of some work, done as a task in a process that runs nothing else.

        Raises:
            AuditFailed: if the work fails, its process dies, it passes the time limit (in seconds), or no node is left to run it.
        """
        with connected(self.address) as ray:
            cluster = Cluster(ray, self.cpus_per_trial, self.gpus_per_trial)
            cluster.require_slots()
            # A process ends after max_calls: what one piece of work leaves behind does not reach the next.
            options = {"num_cpus": self.cpus_per_trial, "num_gpus": self.gpus_per_trial, "max_retries": 0, "max_calls": 1}
            task = ray.remote(**options)(work_once).remote(ray.put(pickled(ray, work)))
            try:
                _wait_for(ray, cluster, task, math.inf if time_limit is None else time_limit)
                found, error = ray.get(task)
            except ray.exceptions.RayError as failure:
                raise AuditFailed(f"work on the cluster failed: {type(failure).__name__}: {failure}") from None
            finally:
                # Only what still runs: Ray ends this process if it is asked to cancel a task that has just finished.
                if not ray.wait([task], timeout=0)[0]:
                    with contextlib.suppress(ray.exceptions.RayError, ValueError, RuntimeError):
                        ray.cancel(task, force=True)
        if error is not None:
            raise AuditFailed(error)
        return found

    def run(self, setup: TrialSetup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        with connected(self.address) as ray:
            flight = _Flight(self, Cluster(ray, self.cpus_per_trial, self.gpus_per_trial), ray, setup, indices)
            try:
                yield from flight.results()
            finally:
                flight.close()


def _wait_for(ray: Any, cluster: Cluster, task: Any, time_limit: float) -> None:
    """Wait for a task, but not without a node that could run it for longer than ``_PATIENCE_SECONDS``."""
    begun = had_slots = time.monotonic()
    while not ray.wait([task], timeout=_LOOK_SECONDS)[0]:
        now = time.monotonic()
        had_slots = now if cluster.slots() else had_slots
        if now - begun > time_limit or now - had_slots > _PATIENCE_SECONDS:
            raise AuditFailed("work on the cluster passed its time limit, or no node was left to run it")


@dataclass
class _Task:
    """Trials handed to Ray together: where they run and since when, both None while they wait, and when their process died."""

    pending: list[int]
    node: str | None = None
    since: float | None = None
    died: float = math.inf

    def seconds(self) -> float:
        """How long they have run, or had run when they died."""
        return 0.0 if self.since is None else min(self.died, time.monotonic()) - self.since


class _Flight:
    """Trials on their way: what waits here, what Ray has, and what has befallen each."""

    def __init__(self, options: Ray, cluster: Cluster, ray: Any, setup: TrialSetup, indices: Sequence[int]) -> None:
        self.options = options
        self.cluster = cluster
        self.ray = ray
        self.setup = setup
        self.queue = deque(indices)
        # Without a second try, a death must be charged to one trial: no batches then, nor with a time limit for each.
        self.together = options.retry and options.time_limit is None
        self.alone: set[int] = set()
        self.deaths: dict[int, int] = {}
        self.losses: dict[int, int] = {}
        self.tasks: dict[Any, _Task] = {}
        self.aside: list[_Task] = []
        self.pace: float | None = None
        self.slots = cluster.require_slots()
        self.seen_slots = self.looked = self.heard = time.monotonic()
        self.silence = _SILENT_SECONDS
        self.parcel = packed(ray, setup)
        self.remote = self._remote()

    def _remote(self) -> Any:
        return self.ray.remote(work).options(
            num_cpus=self.options.cpus_per_trial,
            num_gpus=self.options.gpus_per_trial,
            num_returns="streaming",  # first where the task runs and that it begins, then its records
            max_retries=0,  # what is run again is decided here
            name="lidp trials",
        )

    def results(self) -> Iterator[list[TrialRecord]]:
        yielded = time.monotonic()
        while self.queue or self.tasks or self.aside:
            self._look()
            while self.queue and len(self.tasks) < _AHEAD * max(1, self.slots):
                self._give()
            ready = self._ready()
            found = [record for stream in ready for record in self._receive(stream)]
            found.extend(self._overdue())
            found.extend(self._settled())
            if ready:
                self.heard, self.silence = time.monotonic(), _SILENT_SECONDS
            elif time.monotonic() - self.heard > self.silence:
                self._hand_out_anew()
            if found or time.monotonic() - yielded >= _YIELD_SECONDS:
                yield found
                yielded = time.monotonic()

    def _ready(self) -> list[Any]:
        """Tasks that have something to say, waited for as long as nothing else is to be done."""
        running = list(self.tasks)
        if not running:
            time.sleep(self._patience())
            return []
        ready: list[Any] = self.ray.wait(running, num_returns=len(running), timeout=0)[0]
        return ready or self.ray.wait(running, num_returns=1, timeout=self._patience())[0]

    def _hand_out_anew(self) -> None:
        """Take back what waits in Ray's queue, if there is room to run it.

        Ray has been seen, rarely, to forget tasks that were waiting when a worker process died: nodes idle, and it asks for none.
        Tasks of a remote function of their own have a queue of their own, which is not stuck. Of none of these trials has it been
        heard that it began, so that it cannot matter which of them are taken back; if all is well and the nodes are busy with other
        people's work, it is asked less and less often.
        """
        waiting = [stream for stream, task in self.tasks.items() if task.node is None]
        self.heard, self.silence = time.monotonic(), 2 * self.silence
        if not waiting or len(self.tasks) - len(waiting) >= self.slots:
            return
        self.remote = self._remote()
        for stream in reversed(waiting):
            self._cancel(stream)
            self.queue.extendleft(reversed(self.tasks.pop(stream).pending))

    def close(self) -> None:
        for stream in self.tasks:
            self._cancel(stream)
        self.tasks.clear()

    def _look(self) -> None:
        """Count slots anew now and then: nodes come and go."""
        now = time.monotonic()
        if now - self.looked < _LOOK_SECONDS:
            return
        self.looked = now
        self.slots = self.cluster.slots()
        if self.slots:
            self.seen_slots = now
        elif now - self.seen_slots > _PATIENCE_SECONDS:
            raise AuditFailed(
                f"the cluster has had no node that can run a trial for {_PATIENCE_SECONDS:.0f} s; resume when it has one"
            )

    def _give(self) -> None:
        """Hand out the next trials: one, or as many as keep a worker busy for a moment."""
        size = 1
        if self.together and self.pace is not None and self.queue[0] not in self.alone:
            size = max(1, min(_BATCH, math.floor(_TASK_SECONDS / max(self.pace, 1e-6))))
            size = max(1, min(size, len(self.queue) // (_AHEAD * max(1, self.slots))))
        pending = [self.queue.popleft()]
        while len(pending) < size and self.queue[0] not in self.alone:
            pending.append(self.queue.popleft())
        self.tasks[self.remote.remote(self.parcel, pending)] = _Task(pending)

    def _receive(self, stream: Any) -> list[TrialRecord]:
        """The next thing that a task says."""
        errors = self.ray.exceptions
        task = self.tasks[stream]
        try:
            said = self.ray.get(next(stream))
        except StopIteration:  # it ended without its records, which no task of ours does
            return self._set_aside(stream)
        except errors.RayTaskError as error:
            if not isinstance(error.cause, _lost(errors)):
                raise _failure(error.cause) from None
            return self._lose(self.tasks.pop(stream))
        except _lost(errors):
            return self._lose(self.tasks.pop(stream))
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.TaskCancelledError):
            return self._set_aside(stream)
        except errors.RayError as error:
            raise _failure(error) from None
        if isinstance(said, tuple):
            task.node, begins = said
            task.since = time.monotonic() if begins else None
            return []
        del self.tasks[stream]
        records: list[TrialRecord] = said
        if task.since is not None:
            self.pace = task.seconds() / len(records)
        return [replace(record, attempts=self.deaths.get(record.index, 0) + 1) for record in records]

    def _set_aside(self, stream: Any) -> list[TrialRecord]:
        """A worker process died. By itself, or as the first of its node? That shows in a moment; other trials go on."""
        task = self.tasks.pop(stream)
        task.died = time.monotonic()
        self.aside.append(task)
        return []

    def _settled(self) -> list[TrialRecord]:
        """What comes of those that were set aside long enough ago."""
        now = time.monotonic()
        due = [task for task in self.aside if now >= task.died + _ASIDE_SECONDS]
        self.aside = [task for task in self.aside if task not in due]
        gone = {node for node in {task.node for task in due} if node is not None and self.cluster.is_gone(node)}
        return [record for task in due for record in (self._lose(task) if task.node in gone else self._bury(task))]

    def _lose(self, task: _Task) -> list[TrialRecord]:
        """A node is gone, and with it what ran there; that is nobody's fault."""
        for index in task.pending:
            self.losses[index] = self.losses.get(index, 0) + 1
            if self.losses[index] > _MOST_LOSSES:
                raise AuditFailed(
                    f"trial {index} lost its node {self.losses[index]} times; resume when the cluster is steady, "
                    "and see whether the mechanism brings nodes down"
                )
        self.queue.extendleft(reversed(task.pending))
        return []

    def _bury(self, task: _Task) -> list[TrialRecord]:
        """A worker process died, and nothing else. Its trial is tried once more, or has failed."""
        if len(task.pending) > 1:
            # Which of the batch did it? Each is run alone now; nobody is charged yet.
            self.alone.update(task.pending)
            self.queue.extendleft(reversed(task.pending))
            return []
        (lost,) = task.pending
        self.deaths[lost] = self.deaths.get(lost, 0) + 1
        if self.options.retry and self.deaths[lost] == 1:
            self.alone.add(lost)
            self.queue.appendleft(lost)
            return []
        reason, attempts = "the worker process died", self.deaths[lost]
        return [self.setup.lost_record(lost, reason, seconds=task.seconds(), attempts=attempts)]

    def _overdue(self) -> list[TrialRecord]:
        limit = self.options.time_limit
        found: list[TrialRecord] = []
        if limit is None:
            return found
        for stream, task in list(self.tasks.items()):
            seconds = task.seconds()
            if seconds > limit and not self.ray.wait([stream], timeout=0)[0]:
                self._cancel(stream)
                del self.tasks[stream]
                attempts = self.deaths.get(task.pending[0], 0) + 1
                reason = f"passed the time limit of {limit:g} s"
                found.append(self.setup.lost_record(task.pending[0], reason, seconds=seconds, attempts=attempts))
        return found

    def _patience(self) -> float:
        """Seconds until something is to be done even if nobody says anything."""
        ends = [task.died + _ASIDE_SECONDS for task in self.aside]
        if self.options.time_limit is not None:
            ends += [task.since + self.options.time_limit for task in self.tasks.values() if task.since is not None]
        return min([_YIELD_SECONDS, *(max(0.0, end - time.monotonic()) + 0.01 for end in ends)])

    def _cancel(self, stream: Any) -> None:
        # It may have ended by itself, or the cluster may be gone.
        with contextlib.suppress(self.ray.exceptions.RayError, ValueError, RuntimeError):
            self.ray.cancel(stream, force=True)


def _lost(errors: Any) -> tuple[type[Exception], ...]:
    """What Ray says when a node takes tasks or their results with it."""
    return (errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError)


def _failure(cause: BaseException) -> AuditFailed:
    if isinstance(cause, AuditFailed):
        return AuditFailed(str(cause))
    reason = (str(cause).strip() or "no reason given").splitlines()[-1]
    return AuditFailed(
        f"the cluster cannot run trials: {type(cause).__name__}: {reason}; every node needs lidp and what the target imports"
    )
