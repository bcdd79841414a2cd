"""Set up signals, threads and shutdown in worker processes."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

from lidp._runtime.interrupts import STOP_SIGNALS, defer_signals, lidp_handler

_GRACE_SECONDS = 5.0
# Looked up on import: in a forked process, a thread that no longer exists may hold the locks of the loader.
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def die_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends for any reason. Elsewhere, workers notice a closed pipe."""
    if _PRCTL is not None:
        _PRCTL(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def ignore_interrupts() -> None:
    """Ignore Ctrl-C, which reaches the whole process group: the parent decides when workers end, by SIGTERM."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Dismissed(BaseException):
    """Raised in a worker that is no longer needed, so that it cleans up. This is not an error."""


def raise_dismissed_on_sigterm() -> None:
    """Let SIGTERM raise :class:`Dismissed`, so that temporary files and programs do not outlive this process."""
    signal.signal(signal.SIGTERM, _raise_dismissed)


@lidp_handler
def _raise_dismissed(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, _ignore)  # a second SIGTERM would interrupt the cleanup
    raise Dismissed


@lidp_handler
def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass


def dismiss(processes: Sequence[Any]) -> None:
    """Terminate processes; kill those that have not ended after a grace period.

    Interrupts are deferred until all have ended: Python waits forever at its exit for any process that is left.
    """
    with defer_signals():
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _GRACE_SECONDS
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()


class use_one_core:  # noqa: N801  # used like a function, or as a context
    """Restrict linear algebra to one thread, from now on or, as a context, within the block.

    Several processes with several threads each slow one another down. With the same number of threads everywhere, sums are
    rounded in the same way everywhere.
    """

    def __init__(self) -> None:
        from threadpoolctl import threadpool_limits

        # The call limits libraries that are loaded already. Those that are loaded later (scipy's, by the first compiled matrix
        # product) read the environment.
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
