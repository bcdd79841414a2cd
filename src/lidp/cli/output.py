"""Keep stdout for results: redirect all other output to stderr."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress


@contextmanager
def stdout_kept_for_results() -> Iterator[None]:
    """Send to stderr what a mechanism writes to stdout, be it from Python, from C, or from processes that it starts."""
    saved = _point_stdout_to_stderr()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _flush()
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)


def end_of_results() -> None:
    """Redirect stdout to stderr from now on, for remaining threads and for functions registered with atexit."""
    saved = _point_stdout_to_stderr()
    sys.stdout = sys.stderr
    if saved is not None:
        os.close(saved)


def _point_stdout_to_stderr() -> int | None:
    """Redirect file descriptor 1 to stderr, and return a copy of what it was; None, and no redirection, if it is closed."""
    _flush()
    try:
        saved = os.dup(1)
    except OSError:
        return None
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    return saved


def _flush() -> None:
    """Flush the buffers of Python and C, so that their text goes where stdout pointed when it was written."""
    for stream in (sys.stdout, sys.__stdout__):
        with suppress(OSError, ValueError):  # closed, or nobody reads it: writing the result will report that
            if stream is not None:
                stream.flush()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
