"""Watching work: a live line on a terminal, plain lines elsewhere, nothing if asked to be quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TypeAlias

from lidp._runtime.terminal_text import printable

_PLAIN_SECONDS = 5.0


class Progress(Protocol):
    """How far some work is; as text, it says so in words."""

    @property
    def done(self) -> int:
        """How much is done ..."""

    @property
    def planned(self) -> int:
        """... of how much,"""

    @property
    def seconds(self) -> float:
        """And since when."""


Watch: TypeAlias = Callable[[Progress], None]


@contextmanager
def watching(*, quiet: bool) -> Iterator[Watch | None]:
    """What to call with each progress. Everything goes to stderr."""
    if quiet or not sys.stderr.isatty():
        yield None if quiet else _Plain()
        return
    live = _Live()
    try:
        yield live
    finally:
        live.close()


class _Plain:
    """A line every few seconds."""

    def __init__(self) -> None:
        self.last = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.seconds - self.last >= _PLAIN_SECONDS:
            self.last = progress.seconds
            with suppress(OSError, ValueError):  # a mechanism may have closed it
                sys.stderr.write(printable(str(progress)) + "\n")
                sys.stderr.flush()


class _Live:
    """A bar with the live bound. Refreshed by hand: a thread of its own would not survive the forking of workers."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(
            BarColumn(), TextColumn("{task.description}", markup=False), console=Console(stderr=True), auto_refresh=False
        )
        self.task = self.bar.add_task("starting", total=None)
        self.bar.start()

    def __call__(self, progress: Progress) -> None:
        self.bar.update(self.task, total=progress.planned, completed=progress.done, description=printable(str(progress)))
        self.bar.refresh()

    def close(self) -> None:
        self.bar.stop()
