"""Keep stdout for results: redirect all other output to stderr."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress


@contextmanager
def stdout_kept_for_results() -> Iterator[None]:
    """Redirect what a mechanism prints to stderr: from Python, by file descriptor, from C, and from processes that it starts."""
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
    """Return a copy of the file descriptor 1; None if it is closed."""
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
    """Flush the buffers of Python and C to where their text was meant to go."""
    for stream in (sys.stdout, sys.__stdout__):
        with suppress(OSError, ValueError):  # closed, or without a reader: whoever writes the result reports that
            if stream is not None:
                stream.flush()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
