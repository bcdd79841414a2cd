"""Show progress: a live bar on a terminal, plain lines elsewhere, nothing if quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TypeAlias

from lidp._runtime.terminal_text import printable
from lidp.engine.watchers import new_warnings

_PLAIN_SECONDS = 5.0


class Progress(Protocol):
    """How far some work has got. Its ``str`` says so in words."""

    @property
    def done(self) -> int:
        """Units completed."""

    @property
    def planned(self) -> int:
        """Units planned."""

    @property
    def seconds(self) -> float:
        """Elapsed seconds."""


Watch: TypeAlias = Callable[[Progress], None]


@contextmanager
def watching(*, quiet: bool) -> Iterator[Watch | None]:
    """Yield a function that writes the progress it is called with to stderr; None if quiet."""
    if quiet or not sys.stderr.isatty():
        yield None if quiet else _Plain()
        return
    live = _Live()
    try:
        yield live
    finally:
        live.close()


class _Plain:
    """Print a line, at most one every few seconds."""

    def __init__(self) -> None:
        self.last = 0.0
        self.warned: set[str] = set()

    def __call__(self, progress: Progress) -> None:
        with suppress(OSError, ValueError):
            for warning in new_warnings(getattr(progress, "warnings", ()), self.warned):
                sys.stderr.write(warning + "\n")
        if progress.seconds - self.last >= _PLAIN_SECONDS:
            self.last = progress.seconds
            with suppress(OSError, ValueError):  # a mechanism may have closed stderr
                sys.stderr.write(printable(str(progress)) + "\n")
                sys.stderr.flush()


class _Live:
    """Show a bar with the live bound. It is refreshed by each call: a refreshing thread would not survive a fork of workers."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(
            BarColumn(), TextColumn("{task.description}", markup=False), console=Console(stderr=True), auto_refresh=False
        )
        self.task = self.bar.add_task("starting", total=None)
        self.bar.start()
        self.warned: set[str] = set()

    def __call__(self, progress: Progress) -> None:
        for warning in new_warnings(getattr(progress, "warnings", ()), self.warned):
            self.bar.console.print(warning, markup=False, highlight=False)
        self.bar.update(self.task, total=progress.planned, completed=progress.done, description=printable(str(progress)))
        self.bar.refresh()

    def close(self) -> None:
        self.bar.stop()
