"""Keep stdout for results: what else is written there, by whatever means, goes to stderr."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress


@contextmanager
def stdout_kept_for_results() -> Iterator[None]:
    """Send to stderr what a mechanism prints: by Python, by the file descriptor, from C, or from processes that it starts."""
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
    """Send to stderr what is written to stdout from now on: by threads that are left, or by functions registered with atexit."""
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
    """Write what is in buffers, Python's and those of C, to where it was meant to go."""
    for stream in (sys.stdout, sys.__stdout__):
        with suppress(OSError, ValueError):  # closed, or nobody reads any more: that is for those who write results
            if stream is not None:
                stream.flush()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
