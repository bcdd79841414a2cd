"""Manners of worker processes."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

from lidp._runtime.interrupts import ENDING, held_signals, own_handler

_GRACE_SECONDS = 5.0
# Looked up here: the loader's locks may be held, by a thread that is no more, in a process that was just forked.
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def die_with_the_parent() -> None:
    """Ask Linux to end this process when its parent ends, however that comes about. Elsewhere a closed pipe must do."""
    if _PRCTL is not None:
        _PRCTL(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def leave_interrupts_to_the_parent() -> None:
    """Ctrl-C reaches the whole group of processes; what to do about it is the parent's business."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Dismissed(BaseException):
    """A worker is no longer needed. No error: what it was doing is cleaned up on the way out."""


def go_when_dismissed() -> None:
    """Let SIGTERM raise :class:`Dismissed`, so that temporary files and programs do not outlive this process."""
    signal.signal(signal.SIGTERM, _go)


@own_handler
def _go(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, _stay)  # once: a second one would interrupt the cleaning up
    raise Dismissed


@own_handler
def _stay(_number: int, _frame: FrameType | None) -> None:
    pass


def dismiss(processes: Sequence[Any]) -> None:
    """End processes: by asking, and after a moment by force.

    An interrupt waits until they have ended: Python would wait at its own end for those that are left, forever.
    """
    with held_signals():
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _GRACE_SECONDS
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()


class use_one_core:  # noqa: N801  # reads as what it does: a call, or a context
    """Keep linear algebra to one thread, from now on or, as a context, for a while.

    Several processes with several threads each only get in one another's way; and with as many threads everywhere, sums are
    rounded alike everywhere.
    """

    def __init__(self) -> None:
        from threadpoolctl import threadpool_limits

        # Libraries that are loaded already are told; those that are loaded later (scipy's, by the first compiled matrix product)
        # look at the environment.
        self._limits = threadpool_limits(1)
        self._before = {name: os.environ.get(name) for name in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, "1"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._limits.restore_original_limits()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
