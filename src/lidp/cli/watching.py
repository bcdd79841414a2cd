"""Watching an audit: a live line on a terminal, plain lines elsewhere, nothing if asked to be quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from lidp.audits import Progress

_PLAIN_SECONDS = 5.0


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


def told(progress: Progress) -> str:
    """Progress in words."""
    rate = progress.done / progress.seconds if progress.seconds > 0 else 0.0
    left = (progress.planned - progress.done) / rate if rate else 0.0
    bound = "" if progress.epsilon is None else f", ε ≥ {progress.epsilon:.2f} (claim {progress.claim:g})"
    failed = f", {progress.failed:,} failed" if progress.failed else ""
    return f"{progress.done:,}/{progress.planned:,} trials, {rate:,.1f}/s, at most {left:,.0f} s left{bound}{failed}"


class _Plain:
    """A line every few seconds."""

    def __init__(self) -> None:
        self.last = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.seconds - self.last >= _PLAIN_SECONDS:
            self.last = progress.seconds
            sys.stderr.write(told(progress) + "\n")
            sys.stderr.flush()


class _Live:
    """A bar with the live bound. Refreshed by hand: a thread of its own would not survive the forking of workers."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(BarColumn(), TextColumn("{task.description}"), console=Console(stderr=True), auto_refresh=False)
        self.task = self.bar.add_task("starting", total=None)
        self.bar.start()

    def __call__(self, progress: Progress) -> None:
        self.bar.update(self.task, total=progress.planned, completed=progress.done, description=told(progress))
        self.bar.refresh()

    def close(self) -> None:
        self.bar.stop()
