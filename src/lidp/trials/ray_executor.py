"""Run trials on a Ray cluster.

Ray only runs tasks and reports what becomes of them. Which trials run again and which have failed is decided on the machine that
runs the audit, by the same dispatcher as for local processes.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from lidp import checks
from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed, InvalidArgument
from lidp.trials.dispatcher import Batch, Dispatcher, DispatchPolicy, LostTrial
from lidp.trials.executor import Executor
from lidp.trials.ray_cluster import Cluster, connected
from lidp.trials.ray_journal import JournalReader
from lidp.trials.ray_task import BatchOrder, pack_setup, pickle_for_nodes, run_batch, run_once
from lidp.trials.setup import Setup

_BATCH_TRIALS = 2048
_BATCH_SECONDS = 2.0
_REPORT_SECONDS = 0.3  # how long a finished trial of a batch may wait before its record is sent; a lost node costs no more
_TASKS_PER_SLOT = 2  # so that no slot waits for the driver
_COUNT_SECONDS = 2.0  # how often the slots of the cluster are counted
_YIELD_SECONDS = 0.2  # how often control is returned to the caller while nothing is finished
_NO_SLOT_SECONDS = 300.0  # how long a cluster may be without a node that can run a trial
_MOST_NODE_LOSSES = 20
_NODE_CHECK_SECONDS = 5.0  # processes of a machine that is taken away die one after the other: see whether the node follows
_STALL_SECONDS = 20.0


@dataclass(frozen=True)
class Ray(Executor):
    """Runs trials as tasks of a Ray cluster, each with its share of processors and graphics cards.

    Without an ``address`` Ray is started on this machine for as long as the trials take, reachable from this machine only. If this
    process is connected to Ray already, that connection is used and kept.

    If a node is lost, the trials that were running there run again with the same coins and streams, and no trial is charged. If a
    worker process dies on a node that stays alive, its trial is recorded as failed; with ``retry`` it is run once more first. A
    trial that exceeds ``time_limit`` seconds, counted from its start, is recorded as failed.

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
    separate_processes: ClassVar[bool] = True

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
        return True

    def session(self) -> AbstractContextManager[Any]:
        """Return a context in which several calls of :meth:`run_work` and :meth:`run` share one connection."""
        return connected(self.address)

    def run_work(self, work: Callable[[], Any], time_limit: float | None = None) -> Any:
        """Return ``work()``, called as a task in a process that runs nothing else.

        Raises:
            AuditFailed: if the work fails, its process dies, it exceeds the time limit (in seconds), or no node is left to run it.
        """
        with connected(self.address) as ray:
            cluster = Cluster(ray, self.cpus_per_trial, self.gpus_per_trial)
            cluster.require_slots()
            # A process ends after max_calls: what one piece of work leaves behind does not reach the next.
            options = {"num_cpus": self.cpus_per_trial, "num_gpus": self.gpus_per_trial, "max_retries": 0, "max_calls": 1}
            task = ray.remote(**options)(run_once).remote(ray.put(pickle_for_nodes(ray, work)))
            try:
                _wait_for(ray, cluster, task, math.inf if time_limit is None else time_limit)
                result, error = ray.get(task)
            except ray.exceptions.RayError as failure:
                raise AuditFailed(f"work on the cluster failed: {type(failure).__name__}: {failure}") from None
            finally:
                # Only a task that still runs: Ray ends this process if it is asked to cancel a task that has just finished.
                if not ray.wait([task], timeout=0)[0]:
                    _cancel(ray, task)
        if error is not None:
            raise AuditFailed(error)
        return result

    def run(self, setup: Setup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        with connected(self.address) as ray:
            scheduler = _RayScheduler(self, Cluster(ray, self.cpus_per_trial, self.gpus_per_trial), ray, setup, indices)
            try:
                yield from scheduler.results()
            finally:
                scheduler.close()


class _RayScheduler:
    """Submits batches of trials to Ray as tasks, and reports to the dispatcher what becomes of them."""

    def __init__(self, options: Ray, cluster: Cluster, ray: Any, setup: Setup, indices: Sequence[int]) -> None:
        self.options = options
        self.cluster = cluster
        self.ray = ray
        self.setup = setup
        self.slots = cluster.require_slots()
        self.counted_at = self.had_slots_at = time.monotonic()
        policy = DispatchPolicy(
            retry=options.retry,
            time_limit_seconds=options.time_limit,
            batch_trials=_BATCH_TRIALS,
            batch_seconds=_BATCH_SECONDS,
            keeps_each_record=True,  # in a journal
            may_run_together=hasattr(setup.target.mechanism, "run_many"),
            report_seconds=_REPORT_SECONDS,
            node_check_seconds=_NODE_CHECK_SECONDS,
            most_node_losses=_MOST_NODE_LOSSES,
            stall_seconds=_STALL_SECONDS,
        )
        self.dispatcher = Dispatcher(indices, policy, capacity=self._capacity(), now=self.counted_at)
        self.batches: dict[Any, Batch] = {}  # by the stream of messages from the task that runs them
        self.packed = pack_setup(ray, setup)
        self.journals = JournalReader(ray, self.packed.key)
        self.nodes: set[str] = set()  # that have run batches, and may have journals
        self.remote = self._make_remote()

    def results(self) -> Iterator[list[TrialRecord]]:
        """Yield the records of all trials, and an empty list now and then."""
        yielded_at = time.monotonic()
        while not self.dispatcher.done:
            self._count_slots()
            self._submit_batches()
            ready = self._wait()
            records = [record for stream in ready for record in self._receive(stream)]
            records.extend(self._give_up_overdue())
            records.extend(self._check_nodes())
            if ready:
                self.dispatcher.note_message(now=time.monotonic())
            else:
                self._resubmit_waiting()
            if records or time.monotonic() - yielded_at >= _YIELD_SECONDS:
                yield records
                yielded_at = time.monotonic()

    def close(self) -> None:
        """Cancel all tasks."""
        for stream in self.batches:
            _cancel(self.ray, stream)
        self.batches.clear()
        with contextlib.suppress(self.ray.exceptions.RayError, ValueError, RuntimeError):  # the cluster may be gone
            self.journals.remove([node for node in self.cluster.nodes() if node in self.nodes])

    def _make_remote(self) -> Any:
        return self.ray.remote(run_batch).options(
            num_cpus=self.options.cpus_per_trial,
            num_gpus=self.options.gpus_per_trial,
            num_returns="streaming",  # first on which node the task is and that it starts, then its records
            max_retries=0,  # the dispatcher decides what runs again
            name="lidp trials",
        )

    def _capacity(self) -> int:
        return _TASKS_PER_SLOT * max(1, self.slots)

    def _count_slots(self) -> None:
        """Count the slots again every few seconds: nodes come and go."""
        now = time.monotonic()
        if now - self.counted_at < _COUNT_SECONDS:
            return
        self.counted_at = now
        self.slots = self.cluster.slots()
        self.dispatcher.capacity = self._capacity()
        if self.slots:
            self.had_slots_at = now
        elif now - self.had_slots_at > _NO_SLOT_SECONDS:
            raise AuditFailed(
                f"the cluster has had no node that can run a trial for {_NO_SLOT_SECONDS:.0f} s; resume when it has one"
            )

    def _submit_batches(self) -> None:
        while (batch := self.dispatcher.next_batch()) is not None:
            order = BatchOrder(
                batch.number,
                tuple(batch.pending),
                batch.together,
                self.options.time_limit,
                self.dispatcher.policy.report_seconds,
            )
            self.batches[self.remote.remote(self.packed, order)] = batch

    def _wait(self) -> list[Any]:
        """Wait for messages until something else is to be done; return the streams that have one."""
        streams = list(self.batches)
        patience = min(_YIELD_SECONDS, max(0.0, self.dispatcher.next_deadline() - time.monotonic()) + 0.01)
        if not streams:
            time.sleep(patience)
            return []
        ready: list[Any] = self.ray.wait(streams, num_returns=len(streams), timeout=0)[0]
        return ready or self.ray.wait(streams, num_returns=1, timeout=patience)[0]

    def _receive(self, stream: Any) -> list[TrialRecord]:
        """Take the next message of a task, and return the records in it."""
        errors = self.ray.exceptions
        batch = self.batches[stream]
        try:
            message = self.ray.get(next(stream))
        except StopIteration:  # the task ended without its records, which none of ours does by itself
            return self._defer_until_node_checked(stream)
        except errors.RayTaskError as error:
            if not isinstance(error.cause, _node_loss_errors(errors)):
                raise _failure(error.cause) from None
            return self._handle_lost_node(stream)
        except _node_loss_errors(errors):
            return self._handle_lost_node(stream)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.TaskCancelledError):
            return self._defer_until_node_checked(stream)
        except errors.RayError as error:
            raise _failure(error) from None
        if isinstance(message, tuple):
            node, starts = message
            self.dispatcher.note_node(batch, node)
            if batch.size > 1:
                self.nodes.add(node)
            if starts:
                self.dispatcher.note_start(batch, now=time.monotonic())
            return []
        records = self.dispatcher.take_records(batch, message, now=time.monotonic())
        if not batch.pending:
            del self.batches[stream]
        return records

    def _handle_lost_node(self, stream: Any) -> list[TrialRecord]:
        self.dispatcher.handle_lost_node(self.batches.pop(stream))
        return []

    def _defer_until_node_checked(self, stream: Any) -> list[TrialRecord]:
        self.dispatcher.defer_until_node_checked(self.batches.pop(stream), now=time.monotonic())
        return []

    def _check_nodes(self) -> list[TrialRecord]:
        """Decide for each worker process that died a while ago whether it died by itself or with its node."""
        due = self.dispatcher.due_node_checks(now=time.monotonic())
        gone = {node for node in {batch.node for batch in due} if node is not None and self.cluster.is_gone(node)}
        records: list[TrialRecord] = []
        for batch in due:
            if batch.node in gone:
                self.journals.forget(batch.number)
                self.dispatcher.handle_lost_node(batch)
            elif batch.size == 1:
                records += self._charge(batch)
            elif self.journals.ready(batch.number, self._nodes_of(batch), now=time.monotonic()):
                records += self._recover(batch, self.journals.take(batch.number))
        return records

    def _nodes_of(self, batch: Batch) -> list[str]:
        """Return the node of a batch; all nodes if it died before it was heard of."""
        return self.cluster.nodes() if batch.node is None else [batch.node]

    def _recover(self, batch: Batch, journal: list[TrialRecord] | None) -> list[TrialRecord]:
        """Return the records of a batch whose worker process has ended: those in its journal, and that of the running trial."""
        now = time.monotonic()
        if journal is None and batch.running_since is not None:
            reason = "the worker process died, and the records of its trials are lost"
            return [self._failed_record(trial) for trial in self.dispatcher.handle_lost_records(batch, reason, now=now)]
        records = self.dispatcher.take_records(batch, journal or [], now=now)
        return records + (self._charge(batch) if batch.pending else [])

    def _charge(self, batch: Batch) -> list[TrialRecord]:
        lost = self.dispatcher.handle_dead_worker(batch, "the worker process died", now=time.monotonic())
        return [self._failed_record(trial) for trial in lost]

    def _give_up_overdue(self) -> list[TrialRecord]:
        """Cancel the tasks whose trials exceed the time limit; return the records of these trials.

        Which trial of a batch it is shows in its journal, a moment later.
        """
        records = []
        streams = {batch: stream for stream, batch in self.batches.items()}
        for batch in self.dispatcher.overdue(now=time.monotonic()):
            stream = streams[batch]
            if self.ray.wait([stream], timeout=0)[0]:  # its record has arrived meanwhile
                continue
            batch.overdue = True
            if batch.size == 1:
                records.append(self._failed_record(self.dispatcher.give_up(batch, now=time.monotonic())))
            else:
                self.dispatcher.defer_until_node_checked(batch, now=time.monotonic())
            _cancel(self.ray, stream)
            del self.batches[stream]
        return records

    def _resubmit_waiting(self) -> None:
        """Submit tasks again that Ray seems to have forgotten.

        Ray has been seen, rarely, to forget tasks that were waiting when a worker process died: nodes are idle, and it asks for
        none. The tasks of another remote function have another queue, which is not stuck.
        """
        stalled = self.dispatcher.take_back_stalled(slots=self.slots, now=time.monotonic())
        if not stalled:
            return
        self.remote = self._make_remote()
        for stream in [stream for stream, batch in self.batches.items() if batch in stalled]:
            _cancel(self.ray, stream)
            del self.batches[stream]

    def _failed_record(self, lost: LostTrial) -> TrialRecord:
        return self.setup.lost_record(lost.index, lost.reason, seconds=lost.seconds, attempts=lost.attempts)


def _wait_for(ray: Any, cluster: Cluster, task: Any, time_limit: float) -> None:
    """Wait for a task, but not without a node that could run it for longer than ``_NO_SLOT_SECONDS``."""
    started_at = had_slots_at = time.monotonic()
    while not ray.wait([task], timeout=_COUNT_SECONDS)[0]:
        now = time.monotonic()
        had_slots_at = now if cluster.slots() else had_slots_at
        if now - started_at > time_limit or now - had_slots_at > _NO_SLOT_SECONDS:
            raise AuditFailed("work on the cluster passed its time limit, or no node was left to run it")


def _cancel(ray: Any, task: Any) -> None:
    # The task may have ended by itself, or the cluster may be gone.
    with contextlib.suppress(ray.exceptions.RayError, ValueError, RuntimeError):
        ray.cancel(task, force=True)


def _node_loss_errors(errors: Any) -> tuple[type[Exception], ...]:
    """Return the errors that Ray raises when tasks or their results are lost together with a node."""
    return (errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError)


def _failure(cause: BaseException) -> AuditFailed:
    if isinstance(cause, AuditFailed):
        return AuditFailed(str(cause))
    reason = (str(cause).strip() or "no reason given").splitlines()[-1]
    return AuditFailed(
        f"the cluster cannot run trials: {type(cause).__name__}: {reason}; every node needs lidp and what the target imports"
    )
