"""Who runs the trials: this process, or a pool of others. Never changes what a trial computes."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, ClassVar, Protocol

from lidp import checks
from lidp._runtime.interrupts import defer_signals
from lidp._runtime.user_code import user_code
from lidp._runtime.workers import (
    Dismissed,
    die_with_parent,
    dismiss,
    ignore_interrupts,
    raise_dismissed_on_sigterm,
    use_one_core,
)
from lidp.errors import AuditFailed, InvalidArgument, LidpError
from lidp.target import plain_preparation
from lidp.trials.probe import refuse_replays
from lidp.trials.trial import TrialRecord, TrialSetup, failed_record, run_trials

_BATCH = 64  # trials handed out at once, at most
_CHUNK_SECONDS = 0.05  # ... or about as many as take this long
_RUN_MANY = 64
_LOOK_SECONDS = 0.2  # how often it is looked whether workers are alive, and control returned to the caller


Work = Callable[[], Any]


class Executor(Protocol):
    """Runs trials and yields their records, in any order. Closing the iterator stops what is running.

    An executor that runs trials in other processes may also have ``run_work(work, time_limit=None)``, which returns the result of
    ``work()``, called in a fresh process of the kind that trials run in, and raises :class:`~lidp.errors.AuditFailed` if that
    process dies or passes the limit; and ``several``, whether trials run in more than one process. With both, mechanisms
    are probed for randomness that is the same in every process: see :mod:`lidp.trials.probe`.
    """

    def run(self, setup: TrialSetup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        """Run the trials of these numbers.

        An executor that sets ``yields_while_waiting`` yields an empty list about every 0.2 seconds while it waits for trials to
        finish, so that the caller can save and report what is finished. For one that does not, a thread of the caller's does it.
        """
        ...


@dataclass(frozen=True)
class Serial:
    """One trial after the other, in this process. A mechanism that kills its process kills the audit (which can be resumed).

    As in worker processes, linear algebra uses one core; more cores are used by more workers.
    """

    def run(self, setup: TrialSetup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        step = _RUN_MANY if hasattr(setup.target.mechanism, "run_many") else 1
        with use_one_core():
            for start in range(0, len(indices), step):
                yield run_trials(setup, indices[start : start + step])


@dataclass(frozen=True)
class Processes:
    """A pool of processes on this machine.

    A trial that exceeds ``time_limit`` seconds is recorded as failed. A process that dies costs the trial it was running, which is
    recorded as failed: dying is an outcome like any other. If ``retry`` it is run once more first, with the same coins and streams,
    which is the same run only if the mechanism draws all its randomness from its ``rng``.
    """

    workers: int
    time_limit: float | None = None
    retry: bool = False

    yields_while_waiting: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.count(workers=self.workers)
        if self.time_limit is not None:
            checks.positive(time_limit=self.time_limit)

    @property
    def several(self) -> bool:
        """Whether trials run in more than one process."""
        return self.workers > 1

    def prepare(self, work: Work) -> Any:
        """Return the result of a preparation step, done in a process of its own: workers must be forked from this one.

        Some libraries (JAX, PyTorch with a graphics card) do not work in a process whose parent has used them already.
        """
        return self.run_work(partial(_prepared, work), name="the preparation")

    def run_work(self, work: Work, time_limit: float | None = None, *, name: str = "the probe") -> Any:
        """Return the result of some work, done in a fresh process.

        Raises:
            AuditFailed: if the process dies, or passes the time limit (in seconds).
        """
        if "fork" not in multiprocessing.get_all_start_methods():
            return work()
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work_once, args=(work, theirs, ours))
        end = math.inf if time_limit is None else time.monotonic() + time_limit
        try:
            with defer_signals():
                process.start()
                theirs.close()
            # A process that it has forked may hold its end of the pipe, which then never closes.
            while not ours.poll(_LOOK_SECONDS) and process.exitcode is None:
                if time.monotonic() > end:
                    raise AuditFailed(f"the process of {name} passed the time limit of {time_limit:g} s")
            if not ours.poll():
                raise EOFError
            found, error = ours.recv()
        except (EOFError, OSError):
            process.join()
            raise AuditFailed(f"the process of {name} died ({_told(process.exitcode)})") from None
        except AuditFailed:
            raise
        except Exception as failure:  # noqa: BLE001  # what user code wrote to the pipe may fail in any way
            raise AuditFailed(f"the process of {name} sent what cannot be read: {type(failure).__name__}") from None
        finally:
            if process.pid is not None:
                dismiss([process])
            ours.close()
        if error is not None:
            raise error
        return found

    def run(self, setup: TrialSetup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        pool = _Pool(self, setup, indices)
        try:
            yield from pool.results()
        finally:
            pool.close()


@dataclass
class _Worker:
    """A process, the trials it has been given and not returned, and since when it has been silent."""

    process: Any
    pipe: Connection
    step: int
    pending: deque[int] = field(default_factory=deque)
    since: float = 0.0


class _Pool:
    def __init__(self, options: Processes, setup: TrialSetup, indices: Sequence[int]) -> None:
        self.options = options
        self.setup = setup
        self.queue = deque(indices)
        self.deaths: dict[int, int] = {}
        # Without a second try, a death must be charged to one trial: no batches then, nor with a time limit for each.
        together = options.retry and options.time_limit is None and hasattr(setup.target.mechanism, "run_many")
        self.step = _RUN_MANY if together else 1
        # Forking hands mechanisms to workers as they are; elsewhere they must be picklable.
        methods = multiprocessing.get_all_start_methods()
        self.context = multiprocessing.get_context("fork" if "fork" in methods else None)
        self.workers: list[_Worker] = []
        self.pace: float | None = None
        self.probed = options.several  # before the first trial, by the audit

    def results(self) -> Iterator[list[TrialRecord]]:
        with defer_signals():  # a worker that was started and is not in the list would never be dismissed
            for _ in range(min(self.options.workers, len(self.queue))):
                self.workers.append(self._start())
        for worker in self.workers:
            self._give(worker)
        yielded = time.monotonic()
        while any(worker.pending for worker in self.workers):
            busy = {worker.pipe: worker for worker in self.workers if worker.pending}
            ready = wait(list(busy), timeout=self._patience())
            # A process that a mechanism has forked may hold its worker's end of the pipe, which then never closes.
            gone = [worker for worker in busy.values() if worker.pipe not in ready and worker.process.exitcode is not None]
            found: list[TrialRecord] = []
            for pipe in ready:
                found.extend(self._receive(busy[pipe]))  # type: ignore[index]
            for worker in gone:
                if worker in self.workers and not worker.pipe.poll():
                    found.extend(self._bury(worker))
            found.extend(self._overdue())
            if found or time.monotonic() - yielded >= _LOOK_SECONDS:
                yield found
                yielded = time.monotonic()

    def close(self) -> None:
        dismiss([worker.process for worker in self.workers])
        for worker in self.workers:
            worker.pipe.close()

    def _start(self) -> _Worker:
        ours, theirs = self.context.Pipe()
        # A forked worker gets copies of our ends of all pipes; it must close them to notice when we are gone.
        forked = self.context.get_start_method() == "fork"
        inherited = [ours, *(worker.pipe for worker in self.workers)] if forked else []
        process = self.context.Process(target=_work, args=(self.setup, theirs, self.step, inherited))
        try:
            process.start()
        except (AttributeError, TypeError) as error:
            raise InvalidArgument(f"the target cannot be sent to worker processes ({error}); use workers=1") from None
        theirs.close()
        return _Worker(process, ours, self.step)

    def _give(self, worker: _Worker) -> None:
        """Hand out the next trials: one, or as many as keep the worker busy for a moment."""
        if not self.queue:
            return
        size = 1 if self.pace is None else max(1, min(_BATCH, math.floor(_CHUNK_SECONDS / max(self.pace, 1e-6))))
        size = max(1, min(size, len(self.queue) // len(self.workers)))
        if self.deaths.get(self.queue[0]):
            size = 1
        worker.pending.extend(self.queue.popleft() for _ in range(size))
        worker.since = time.monotonic()
        try:
            worker.pipe.send(list(worker.pending))
        except OSError:  # it died idle: that is no trial's fault
            self.queue.extendleft(reversed(worker.pending))
            worker.pending.clear()
            worker.process.join()
            self._replace(worker)

    def _receive(self, worker: _Worker) -> list[TrialRecord]:
        try:
            said: list[TrialRecord] | str = worker.pipe.recv()
        except (EOFError, OSError):
            return self._bury(worker)
        except Exception:  # noqa: BLE001  # another process has written to the pipe: nothing that follows can be read
            dismiss([worker.process])
            return self._bury(worker)
        if isinstance(said, str):
            raise AuditFailed(said)
        # Only trials that the worker was given and has not returned: a process that it forked may have sent others.
        records = [record for record in said if record.index in worker.pending]
        if not records:
            return []
        now = time.monotonic()
        self.pace = (now - worker.since) / len(records)
        worker.since = now
        found = []
        for record in records:
            worker.pending.remove(record.index)
            deaths = self.deaths.get(record.index, 0)
            found.append(replace(record, attempts=deaths + 1) if deaths else record)
        if not worker.pending:
            self._give(worker)
        return found

    def _bury(self, worker: _Worker) -> list[TrialRecord]:
        """A worker died. What it was running is tried once more, or has failed; what it had not begun goes back."""
        worker.process.join()
        code = worker.process.exitcode
        how = _told(code)
        if worker.step > 1:
            # Which of the batch did it? From now on trials are run one by one; nobody is charged yet.
            self.step = 1
            self.queue.extendleft(reversed(worker.pending))
            self._replace(worker)
            return []
        lost = worker.pending.popleft()
        self.deaths[lost] = self.deaths.get(lost, 0) + 1
        self.queue.extendleft(reversed(worker.pending))
        found = []
        if self.options.retry and self.deaths[lost] == 1:
            self.queue.appendleft(lost)
        else:
            seconds = time.monotonic() - worker.since
            reason = f"the worker process died ({how})"
            found = [failed_record(self.setup, lost, reason, seconds=seconds, attempts=self.deaths[lost])]
        self._replace(worker)
        return found

    def _overdue(self) -> list[TrialRecord]:
        limit = self.options.time_limit
        if limit is None:
            return []
        found = []
        for worker in list(self.workers):
            seconds = time.monotonic() - worker.since
            if worker.pending and seconds > limit and not worker.pipe.poll():
                dismiss([worker.process])
                late = worker.pending.popleft()
                self.queue.extendleft(reversed(worker.pending))
                reason = f"passed the time limit of {limit:g} s"
                found.append(failed_record(self.setup, late, reason, seconds=seconds))
                self._replace(worker)
        return found

    def _replace(self, worker: _Worker) -> None:
        worker.pipe.close()
        if not self.probed:  # a single worker is a second process only now
            self.probed = True
            refuse_replays(self.options, self.setup)
        with defer_signals():
            fresh = self._start()
            self.workers[self.workers.index(worker)] = fresh
        self._give(fresh)

    def _patience(self) -> float:
        if self.options.time_limit is None:
            return _LOOK_SECONDS
        deadlines = [worker.since + self.options.time_limit for worker in self.workers if worker.pending]
        return min(_LOOK_SECONDS, max(0.0, min(deadlines) - time.monotonic()) + 0.01)


def _told(code: int | None) -> str:
    """An exit code in words."""
    if code is None or code >= 0:
        return f"exit code {code}"
    known = {int(number): number.name for number in signal.Signals}
    return known.get(-code, f"signal {-code}")


def _work(setup: TrialSetup, pipe: Connection, step: int, inherited: Sequence[Connection]) -> None:
    """What a worker does until its parent closes the pipe, or dies."""
    _as_a_worker(partial(_serve, setup, pipe, step), inherited)


def _serve(setup: TrialSetup, pipe: Connection, step: int) -> None:
    while True:
        indices = pipe.recv()
        for start in range(0, len(indices), step):
            try:
                pipe.send(run_trials(setup, indices[start : start + step]))
            except AuditFailed as error:
                pipe.send(str(error))


def _prepared(work: Work) -> Any:
    """Return what a preparation step found, as arrays that can be sent."""
    return plain_preparation(work())


def _work_once(work: Work, pipe: Connection, other: Connection) -> None:
    """Do some work and send what comes of it."""
    _as_a_worker(partial(_send_result, work, pipe), [other])


def _send_result(work: Work, pipe: Connection) -> None:
    try:
        with user_code():
            result = work()
        pipe.send((result, None))
    except BaseException as error:  # is raised again in the parent
        if isinstance(error, Dismissed):
            raise
        told = AuditFailed(str(error)) if isinstance(error, LidpError) else RuntimeError(f"{type(error).__name__}: {error}")
        pipe.send((None, told))


def _as_a_worker(do: Callable[[], None], inherited: Sequence[Connection]) -> None:
    """Do something in a process that was forked for it, and end the process."""
    try:
        try:
            die_with_parent()
            for other in inherited:
                other.close()
            ignore_interrupts()
            raise_dismissed_on_sigterm()
            use_one_core()
            do()
        except (EOFError, OSError, Dismissed, KeyboardInterrupt):
            pass
        _leave()
    except Dismissed:  # on the way out; it comes once
        _leave()


def _leave() -> None:
    """End at once, with what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def choose_executor(workers: int, time_limit: float | None, retry: bool) -> Executor:
    """Serial for one worker without a time limit, processes otherwise."""
    workers = checks.count(workers=workers)
    if workers == 1 and time_limit is None:
        return Serial()
    return Processes(workers, time_limit, retry)
