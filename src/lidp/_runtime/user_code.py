"""Call code that the user supplies: mechanisms, scores, canaries, preparation steps, the modules of targets.

Two rules hold for every such call, on every executor:

- Any exception that the code raises is a failure of that code, including ``SystemExit``, ``KeyboardInterrupt``,
  ``GeneratorExit`` and ``asyncio.CancelledError``. :func:`must_propagate` identifies the few that are not.
- A child process that the code forks must not return from the call, or it would continue as a second audit or a second worker.
  :class:`user_code` ends such a child.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lidp._runtime.interrupts import STOP_SIGNALS, Interrupted, is_lidp_handler
from lidp._runtime.workers import Dismissed
from lidp.errors import AuditFailed


class user_code:  # noqa: N801  # used like a function: with user_code(): ...
    """Enclose a call of user code. If the call forks, the child process ends here, whether its call returns or raises."""

    __slots__ = ("_pid",)

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # immediately: buffers, exit handlers, stores and pipes belong to the parent


@contextmanager
def fail_audit_on_error(step: str) -> Iterator[None]:
    """Enclose user code whose failure ends the audit and is not counted as a failed run.

    A failure of this code is not an output of the mechanism, and may depend on the coins: counting it could make the bound invalid.
    ``step`` names the step in the error message.

    Raises:
        AuditFailed: if the code fails. Exceptions that :func:`must_propagate` identifies are raised unchanged.
    """
    try:
        with user_code():
            yield
    except BaseException as error:
        if must_propagate(error):
            raise
        raise AuditFailed(f"{step} failed: {type(error).__name__}: {error}") from error


def must_propagate(error: BaseException) -> bool:
    """Return whether an exception that left user code has another cause, and must be raised unchanged.

    Other causes: the audit has failed, a worker was dismissed, an interrupt arrived. If the user has installed a signal handler,
    a ``KeyboardInterrupt`` may come from it and counts as an interrupt.
    """
    if isinstance(error, (AuditFailed, Interrupted, Dismissed)):
        return True
    return isinstance(error, KeyboardInterrupt) and _may_come_from_signal()


def _may_come_from_signal() -> bool:
    """Return whether a signal handler may raise a plain ``KeyboardInterrupt`` here; handlers run in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handlers = [signal.getsignal(number) for number in STOP_SIGNALS]
    return any(callable(handler) and not is_lidp_handler(handler) for handler in handlers)
