"""Forked child processes: set them up, run one piece of work in a fresh one, describe how one ended."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

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
from lidp.errors import AuditFailed, LidpError

POLL_SECONDS = 0.2
"""How often it is checked whether child processes are alive, and control is returned to the caller."""


def can_fork() -> bool:
    """Return whether this system can fork processes."""
    return "fork" in multiprocessing.get_all_start_methods()


def describe_exit(code: int | None) -> str:
    """Return an exit code in words: the name of the signal, if a signal ended the process."""
    if code is None or code >= 0:
        return f"exit code {code}"
    names = {int(number): number.name for number in signal.Signals}
    return names.get(-code, f"signal {-code}")


def run_in_fresh_process(work: Callable[[], Any], time_limit: float | None = None, *, name: str = "the probe") -> Any:
    """Return ``work()``, called in a process that is forked for it; in this process where processes cannot be forked.

    Raises:
        AuditFailed: if the process dies or exceeds the time limit (in seconds); the message calls it the process of ``name``.
    """
    if not can_fork():
        return work()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()
    process = context.Process(target=_run_and_send, args=(work, sender, receiver))
    end = math.inf if time_limit is None else time.monotonic() + time_limit
    try:
        with defer_signals():  # an interrupt between the two calls would leave a process that is never ended
            process.start()
            sender.close()
        # A process that the child has forked may hold the child's end of the pipe, which then never closes: check the child too.
        while not receiver.poll(POLL_SECONDS) and process.exitcode is None:
            if time.monotonic() > end:
                raise AuditFailed(f"the process of {name} passed the time limit of {time_limit:g} s")
        if not receiver.poll():
            raise EOFError
        result, error = receiver.recv()
    except (EOFError, OSError):
        process.join()
        raise AuditFailed(f"the process of {name} died ({describe_exit(process.exitcode)})") from None
    except AuditFailed:
        raise
    except Exception as failure:  # noqa: BLE001  # what user code wrote to the pipe may fail in any way
        raise AuditFailed(f"the process of {name} sent what cannot be read: {type(failure).__name__}") from None
    finally:
        if process.pid is not None:
            dismiss([process])
        receiver.close()
    if error is not None:
        raise error
    return result


def run_as_worker(do: Callable[[], None], inherited: Sequence[Connection]) -> None:
    """Set up a process that was started for ``do``, call ``do`` and end the process.

    ``inherited`` are copies of the parent's ends of pipes, which a forked process gets. They are closed here: while a child holds
    them, no process notices that the parent is gone.
    """
    try:
        try:
            die_with_parent()
            for connection in inherited:
                connection.close()
            ignore_interrupts()
            raise_dismissed_on_sigterm()
            use_one_core()
            do()
        except (EOFError, OSError, Dismissed, KeyboardInterrupt):
            pass
        _exit_at_once()
    except Dismissed:  # it may arrive during the exit; it is raised once only
        _exit_at_once()


def _run_and_send(work: Callable[[], Any], sender: Connection, receiver: Connection) -> None:
    run_as_worker(partial(_send_result, work, sender), [receiver])


def _send_result(work: Callable[[], Any], sender: Connection) -> None:
    """Send the result of some work and None, or None and the error that the parent is to raise."""
    try:
        with user_code():
            result = work()
        sender.send((result, None))
    except BaseException as error:
        if isinstance(error, Dismissed):
            raise
        known = isinstance(error, LidpError)
        sender.send((None, AuditFailed(str(error)) if known else RuntimeError(f"{type(error).__name__}: {error}")))


def _exit_at_once() -> None:
    """End this process without running exit handlers, which belong to the parent; flush what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)
