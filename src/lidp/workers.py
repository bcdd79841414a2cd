"""Manners of worker processes."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
from contextlib import AbstractContextManager
from typing import Any


def die_with_the_parent() -> None:
    """Ask Linux to end this process when its parent ends, however that comes about. Elsewhere a closed pipe must do."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def leave_interrupts_to_the_parent() -> None:
    """Ctrl-C reaches the whole group of processes; what to do about it is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def use_one_core() -> AbstractContextManager[Any]:
    """Keep linear algebra to one thread, from now on or, as a context, for a while.

    Several processes with several threads each only get in one another's way; and with as many threads everywhere, sums are
    rounded alike everywhere.
    """
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits
