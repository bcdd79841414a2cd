"""Call code that the user supplies: mechanisms, scores, canaries, preparation steps, the modules of targets.

Two things hold for every such call, on every executor:

- Whatever the code raises by itself is its own failure, ``SystemExit``, ``KeyboardInterrupt``, ``GeneratorExit`` and
  ``asyncio.CancelledError`` included. :func:`must_propagate` names the exceptions that are not its own.
- A child process that the code forks must not return from the call: it would go on as a second driver or a second worker.
  :class:`user_code` ends such a child.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lidp._runtime.interrupts import ENDING, Interrupted, is_own_handler
from lidp._runtime.workers import Dismissed
from lidp.errors import AuditFailed


class user_code:  # noqa: N801  # reads as what it surrounds: with user_code(): ...
    """Surround a call of user code; a child process that the call has forked ends here, however it leaves the call."""

    __slots__ = ("_pid",)

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # at once: buffers, exit handlers, stores and pipes belong to the parent


@contextmanager
def auditors_own(doing: str) -> Iterator[None]:
    """Surround user code whose failure is the auditor's own trouble, and no outcome of the mechanism; it may follow the coins.

    Raises:
        AuditFailed: if the code raises anything of its own.
    """
    try:
        with user_code():
            yield
    except BaseException as error:
        if must_propagate(error):
            raise
        raise AuditFailed(f"{doing} failed: {type(error).__name__}: {error}") from error


def must_propagate(error: BaseException) -> bool:
    """Return whether an exception that came out of user code is not that code's own failure.

    It is not if the audit itself has failed, if a worker is dismissed, or if an interrupt arrived. Where a signal handler of
    the user's is installed, a ``KeyboardInterrupt`` may come from it and counts as an interrupt.
    """
    if isinstance(error, (AuditFailed, Interrupted, Dismissed)):
        return True
    return isinstance(error, KeyboardInterrupt) and _may_be_a_signal()


def _may_be_a_signal() -> bool:
    """Return whether a signal may raise a plain ``KeyboardInterrupt`` here: handlers run in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handlers = [signal.getsignal(number) for number in ENDING]
    return any(callable(handler) and not is_own_handler(handler) for handler in handlers)
