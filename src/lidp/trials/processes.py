"""Run trials in a pool of processes on this machine."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, ClassVar

from lidp import checks
from lidp._runtime.interrupts import defer_signals
from lidp._runtime.workers import dismiss
from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed, InvalidArgument
from lidp.target import plain_preparation
from lidp.trials.child_processes import POLL_SECONDS, can_fork, describe_exit, run_as_worker, run_in_fresh_process
from lidp.trials.dispatcher import Batch, Dispatcher, DispatchPolicy, LostTrial
from lidp.trials.executor import Executor, Work, group_trials
from lidp.trials.probe import refuse_replays
from lidp.trials.setup import Setup

_BATCH_TRIALS = 1024
_BATCH_SECONDS = 0.2


@dataclass(frozen=True)
class Processes(Executor):
    """Runs trials in ``workers`` processes on this machine.

    A trial that exceeds ``time_limit`` seconds is recorded as failed. If a process dies, the trial that it was running is recorded
    as failed: dying is an outcome like any other. With ``retry`` that trial is run once more first, with the same coins and
    streams, which is the same run only if the mechanism draws all its randomness from its ``rng``.
    """

    workers: int
    time_limit: float | None = None
    retry: bool = False

    yields_while_waiting: ClassVar[bool] = True
    separate_processes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.count(workers=self.workers)
        if self.time_limit is not None:
            checks.positive(time_limit=self.time_limit)

    @property
    def several(self) -> bool:
        return self.workers > 1

    def prepare(self, work: Work) -> Any:
        """Return the result of a preparation step, run in a process of its own: workers must be forked from this one.

        Some libraries (JAX, PyTorch with a graphics card) do not work in a process whose parent has used them already.
        """
        return run_in_fresh_process(partial(_prepare_plainly, work), name="the preparation")

    def run(self, setup: Setup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        pool = _Pool(self, setup, indices)
        try:
            yield from pool.results()
        finally:
            pool.close()


@dataclass(eq=False)
class _Worker:
    """A worker process, the pipe to it, and the batch that it works on; None if it is idle."""

    process: Any
    pipe: Connection
    batch: Batch | None = None


class _Pool:
    """Starts, feeds, replaces and ends worker processes, as the dispatcher decides."""

    def __init__(self, options: Processes, setup: Setup, indices: Sequence[int]) -> None:
        self.options = options
        self.setup = setup
        policy = DispatchPolicy(
            retry=options.retry,
            time_limit_seconds=options.time_limit,
            batch_trials=_BATCH_TRIALS,
            batch_seconds=_BATCH_SECONDS,
            keeps_each_record=True,
            may_run_together=hasattr(setup.target.mechanism, "run_many"),
        )
        self.size = min(options.workers, len(indices))
        self.dispatcher = Dispatcher(indices, policy, capacity=self.size, now=time.monotonic())
        # A forked worker has the mechanism as it is; elsewhere the mechanism must be picklable.
        self.context = multiprocessing.get_context("fork" if can_fork() else None)
        self.workers: list[_Worker] = []
        self.probed = options.several  # the audit has done so before the first trial

    def results(self) -> Iterator[list[TrialRecord]]:
        """Yield the records of all trials, and an empty list now and then."""
        with defer_signals():  # an interrupt here would leave a worker that is started, not in the list, and never ended
            for _ in range(self.size):
                self.workers.append(self._start())
        for worker in self.workers:
            self._hand_out(worker)
        yielded_at = time.monotonic()
        while not self.dispatcher.done:
            records = self._wait()
            if records or time.monotonic() - yielded_at >= POLL_SECONDS:
                yield records
                yielded_at = time.monotonic()

    def close(self) -> None:
        """End all workers."""
        dismiss([worker.process for worker in self.workers])
        for worker in self.workers:
            worker.pipe.close()

    def _wait(self) -> list[TrialRecord]:
        """Wait until a worker has sent something, has died or is overdue, for a moment at most; return what comes of it."""
        busy = {worker.pipe: worker for worker in self.workers if worker.batch is not None}
        ready = wait(list(busy), timeout=self._patience())
        # A process that a mechanism has forked may hold its worker's end of the pipe, which then never closes: a dead worker is
        # recognised by its exit code too.
        silent = [worker for pipe, worker in busy.items() if pipe not in ready and worker.process.exitcode is not None]
        records: list[TrialRecord] = []
        for pipe in ready:
            records.extend(self._receive(busy[pipe]))  # type: ignore[index]
        for worker in silent:
            if worker in self.workers and not worker.pipe.poll():
                records.extend(self._handle_dead_worker(worker))
        records.extend(self._give_up_overdue())
        return records

    def _start(self) -> _Worker:
        parent_end, worker_end = self.context.Pipe()
        forked = self.context.get_start_method() == "fork"
        inherited = [parent_end, *(worker.pipe for worker in self.workers)] if forked else []
        process = self.context.Process(target=_work, args=(self.setup, worker_end, inherited))
        try:
            process.start()
        except (AttributeError, TypeError) as error:
            raise InvalidArgument(f"the target cannot be sent to worker processes ({error}); use workers=1") from None
        worker_end.close()
        return _Worker(process, parent_end)

    def _hand_out(self, worker: _Worker) -> None:
        """Give an idle worker its next batch, if there is one."""
        batch = self.dispatcher.next_batch()
        if batch is None:
            return
        self.dispatcher.note_start(batch, now=time.monotonic())
        try:
            worker.pipe.send((batch.pending, batch.together))
        except OSError:  # the worker died idle
            self.dispatcher.return_undelivered(batch)
            worker.process.join()
            self._replace(worker)
        else:
            worker.batch = batch

    def _receive(self, worker: _Worker) -> list[TrialRecord]:
        """Take a message from a worker and return the records in it that count."""
        assert worker.batch is not None  # noqa: S101  # for the type checker: only busy workers are listened to
        try:
            message: list[TrialRecord] | str = worker.pipe.recv()
        except (EOFError, OSError):
            return self._handle_dead_worker(worker)
        except Exception:  # noqa: BLE001  # another process has written to the pipe: nothing that follows can be read
            dismiss([worker.process])
            return self._handle_dead_worker(worker)
        if isinstance(message, str):
            raise AuditFailed(message)
        records = self.dispatcher.take_records(worker.batch, message, now=time.monotonic())
        if not worker.batch.pending:
            worker.batch = None
            self._hand_out(worker)
        return records

    def _handle_dead_worker(self, worker: _Worker) -> list[TrialRecord]:
        """Replace a worker that died; return the record of its trial, if that has failed."""
        assert worker.batch is not None  # noqa: S101  # for the type checker: idle workers are not watched
        worker.process.join()
        reason = f"the worker process died ({describe_exit(worker.process.exitcode)})"
        lost = self.dispatcher.handle_dead_worker(worker.batch, reason, now=time.monotonic())
        self._replace(worker)
        return [self._failed_record(trial) for trial in lost]

    def _give_up_overdue(self) -> list[TrialRecord]:
        """End the workers whose trials exceed the time limit; return the records of these trials."""
        lost = []
        by_batch = {worker.batch: worker for worker in self.workers}
        for batch in self.dispatcher.overdue(now=time.monotonic()):
            worker = by_batch[batch]
            if not worker.pipe.poll():  # its record has not arrived meanwhile
                late = self.dispatcher.give_up(batch, now=time.monotonic())
                dismiss([worker.process])
                lost.append(self._failed_record(late))
                self._replace(worker)
        return lost

    def _replace(self, worker: _Worker) -> None:
        """Start a new process in place of one that has ended, and give it a batch."""
        worker.pipe.close()
        if not self.probed:  # a single worker has become a second process only now
            self.probed = True
            refuse_replays(self.options, self.setup)
        with defer_signals():
            fresh = self._start()
            self.workers[self.workers.index(worker)] = fresh
        self._hand_out(fresh)

    def _patience(self) -> float:
        """Return the seconds to wait for messages before something else is to be done."""
        return min(POLL_SECONDS, max(0.0, self.dispatcher.next_deadline() - time.monotonic()) + 0.01)

    def _failed_record(self, lost: LostTrial) -> TrialRecord:
        return self.setup.lost_record(lost.index, lost.reason, seconds=lost.seconds, attempts=lost.attempts)


def _prepare_plainly(work: Work) -> Any:
    """Return the result of a preparation step as arrays that can be sent to another process."""
    return plain_preparation(work())


def _work(setup: Setup, pipe: Connection, inherited: Sequence[Connection]) -> None:
    """Run batches in a worker process until the parent closes the pipe or ends."""
    run_as_worker(partial(_serve, setup, pipe), inherited)


def _serve(setup: Setup, pipe: Connection) -> None:
    while True:
        indices, together = pipe.recv()
        for group in group_trials(setup, indices) if together else ([index] for index in indices):
            try:
                pipe.send(setup.run(group))
            except AuditFailed as error:
                pipe.send(str(error))
