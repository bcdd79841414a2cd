"""Who watches an audit: a function of the caller's, a progress line, or nobody."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, Protocol, TypeAlias

from lidp._runtime.terminal_text import printable
from lidp.engine.progress import Progress
from lidp.errors import InvalidArgument
from lidp.result import AuditInterrupted, AuditResult

Watch: TypeAlias = Callable[[Progress], None]
WatchOption: TypeAlias = Watch | Literal["auto"] | None
"""A function, "auto" for a progress line where somebody can see it, or None for nobody."""


class Watcher(Protocol):
    """A watch that also wants to know how the audit ended; :mod:`lidp.integrations.trackers` has some."""

    def __call__(self, progress: Progress) -> None:
        """Take note of the progress, from time to time."""

    def finish(self, result: AuditResult | None) -> None:
        """Take note of the result; None if there is none, because the audit failed or was interrupted too early."""


def choose_watch(option: WatchOption) -> Watch | None:
    """Return the watch of an option.

    Raises:
        InvalidArgument: if the option is something else.
    """
    if option is None or callable(option):
        return option
    if option != "auto":
        raise InvalidArgument(f'watch must be a function of a Progress, "auto" or None, got {option!r}')
    if _in_notebook():
        return NotebookLine()
    return TerminalLine() if _on_terminal() else None


@contextmanager
def reporting_the_end(watch: Watch | None) -> Iterator[Callable[[AuditResult], None]]:
    """Call ``finish`` of a watch, if it has one, with the result that the block reports, or with that of an interrupt.

    Errors of ``finish`` become warnings: a result must not be lost because somebody could not take note of it.
    """
    results: list[AuditResult | None] = []
    try:
        yield results.append
    except AuditInterrupted as interrupt:
        results.append(interrupt.result)
        raise
    finally:
        finish: Any = getattr(watch, "finish", None)
        if callable(finish):
            try:
                finish(results[-1] if results else None)
            except Exception as error:  # noqa: BLE001  # of other people's code
                warnings.warn(f"the watch of the audit failed at its end: {type(error).__name__}: {error}", stacklevel=2)


def new_warnings(warnings: Iterable[str], shown: set[str]) -> list[str]:
    """Return the warnings that have not been shown yet as lines for a terminal, and add them to ``shown``."""
    lines = [printable(f"warning: {warning}").replace("\n", " ") for warning in warnings if warning not in shown]
    shown.update(warnings)
    return lines


class TerminalLine:
    """Keep one line of stderr up to date."""

    def __init__(self) -> None:
        self._begun = False
        self._warned: set[str] = set()

    def __call__(self, progress: Progress) -> None:
        self._begun = True
        for warning in new_warnings(progress.warnings, self._warned):
            self._write(f"\r{warning}\x1b[K\n")
        room = max(shutil.get_terminal_size().columns - 1, 1)
        self._write(f"\r{printable(str(progress)).replace(chr(10), ' ')[:room]}\x1b[K")

    def finish(self, result: AuditResult | None) -> None:
        """End the line."""
        if self._begun:
            self._write("\n")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError, AttributeError):  # a mechanism may have closed or replaced stderr
            sys.stderr.write(text)
            sys.stderr.flush()


class NotebookLine:
    """Keep one output of a notebook's cell up to date."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, progress: Progress) -> None:
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(progress, display_id=True)
        else:
            self._handle.update(progress)


def _in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")  # a kernel has imported it
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def _on_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no stderr, or it is closed
        return False
