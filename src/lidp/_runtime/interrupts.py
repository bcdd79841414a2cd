"""When Ctrl-C may come: never in the middle of keeping what is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Self

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask for an end."""


class Interrupted(KeyboardInterrupt):
    """A real interrupt, told apart from a ``KeyboardInterrupt`` that a mechanism raises by itself."""


def own_handler(handler: Any) -> Any:
    """Mark a signal handler as one of this library's, which never raises a plain ``KeyboardInterrupt``."""
    handler.is_own_handler = True
    return handler


def is_own_handler(handler: Any) -> bool:
    """Return whether a signal handler is one of this library's."""
    return bool(getattr(handler, "is_own_handler", False))


@contextmanager
def held_signals() -> Iterator[None]:
    """Let handlers of interrupts wait for the end of the block, for work that must not be left half done.

    Only Python's handlers, and only in the main thread, where they run; masks of signals would not do, as any other thread may
    be the one that a signal reaches.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: handler for number in ENDING if callable(handler := signal.getsignal(number))}
    try:
        with ExitStack() as stack:
            for number, handler in handlers.items():
                stack.callback(signal.signal, number, handler)
                signal.signal(number, lambda which, _frame: came.append(which))
            yield
    finally:
        if came:
            handlers[signal.Signals(came[0])](came[0], None)


class Interrupts:
    """Takes the place of Python's own handler of interrupts while an audit runs.

    An interrupt is raised at once, except within :meth:`held`, where it waits for the end: half-written stores and half-imported
    modules are not left behind. It is also remembered (:attr:`seen`), because code it passes through can turn it into
    something else; a trial that "fails" so has not failed. Handlers of the user's own, and other threads, are left alone.
    """

    def __init__(self) -> None:
        self.seen = False
        self._depth = 0
        self._waiting = False
        self._replaced: list[signal.Signals] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if signal.getsignal(number) is signal.default_int_handler:
                    self._replaced.append(number)
                    signal.signal(number, self._arrive)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._replaced:
            if signal.getsignal(number) == self._arrive:  # the code that ran may have installed a handler of its own
                signal.signal(number, signal.default_int_handler)

    @own_handler
    def _arrive(self, _number: int, _frame: FrameType | None) -> None:
        self.seen = True
        self._waiting = self._depth > 0
        if not self._waiting:
            raise Interrupted

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let what is done here come to its end before an interrupt is raised."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            waited = self._waiting and not self._depth
            self._waiting = self._waiting and not waited  # an error on the way out takes its place, and it stays seen
        if waited:
            raise Interrupted
