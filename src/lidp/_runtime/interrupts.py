"""Defer Ctrl-C, SIGTERM and SIGHUP while results are being saved or processes are being started."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Self

STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask a process to end."""


class Interrupted(KeyboardInterrupt):
    """A signal interrupted the audit. A mechanism can raise a plain ``KeyboardInterrupt`` by itself, but not this."""


def lidp_handler(handler: Any) -> Any:
    """Mark a signal handler as one of lidp, which never raises a plain ``KeyboardInterrupt``."""
    handler.is_lidp_handler = True
    return handler


def is_lidp_handler(handler: Any) -> bool:
    """Return whether a signal handler was marked by :func:`lidp_handler`."""
    return bool(getattr(handler, "is_lidp_handler", False))


@contextmanager
def defer_signals() -> Iterator[None]:
    """Call the Python handlers of stop signals only after the block, which must not be interrupted half-way.

    In threads other than the main one this does nothing: Python runs signal handlers in the main thread only. Signal masks would
    not suffice, because the kernel may deliver a signal to any other thread.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: handler for number in STOP_SIGNALS if callable(handler := signal.getsignal(number))}
    try:
        with ExitStack() as stack:
            for number, handler in handlers.items():
                stack.callback(signal.signal, number, handler)
                signal.signal(number, lambda which, _frame: received.append(which))
            yield
    finally:
        if received:
            handlers[signal.Signals(received[0])](received[0], None)


class Interrupts:
    """Replaces Python's default interrupt handler while an audit runs.

    An interrupt is raised immediately, except within :meth:`deferred`, where it is raised at the end of the block: stores are not
    left half-written, nor modules half-imported. :attr:`seen` records it, because code that it passes through may turn it into
    another exception; a trial that fails in this way has not failed by itself. Handlers that the user installed, and other
    threads, are not affected.
    """

    def __init__(self) -> None:
        self.seen = False
        self._depth = 0
        self._pending = False
        self._replaced: list[signal.Signals] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                if signal.getsignal(number) is signal.default_int_handler:
                    self._replaced.append(number)
                    signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._replaced:
            if signal.getsignal(number) == self._handle:  # user code may have installed another handler meanwhile
                signal.signal(number, signal.default_int_handler)

    @lidp_handler
    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.seen = True
        self._pending = self._depth > 0
        if not self._pending:
            raise Interrupted

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Finish the block before an interrupt is raised."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            raise_now = self._pending and not self._depth
            self._pending = self._pending and not raise_now  # if the block raised an error, that error propagates instead
        if raise_now:
            raise Interrupted
