"""When Ctrl-C may come: never in the middle of keeping what is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self


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
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is signal.default_int_handler:
                    self._replaced.append(number)
                    signal.signal(number, self._arrive)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._replaced:
            signal.signal(number, signal.default_int_handler)

    def _arrive(self, _number: int, _frame: FrameType | None) -> None:
        self.seen = True
        self._waiting = self._depth > 0
        if not self._waiting:
            raise KeyboardInterrupt

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
            raise KeyboardInterrupt
