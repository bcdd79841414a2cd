"""One writer per store: an exclusive lock on a file beside the store, which the kernel releases when its process dies.

The lock is never taken on the store itself. Closing any handle of an SQLite file drops all POSIX locks that this process holds on
it, also those of SQLite's own connections; another process would then delete the write-ahead log under a running audit.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from lidp.errors import StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows has no flock; there SQLite's own locks must do
    fcntl = None  # type: ignore[assignment]

SUFFIX = "-lock"
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)

_HELD: weakref.WeakSet[WriterLock] = weakref.WeakSet()


class WriterLock:
    """The right to write to a store, until :meth:`release` or the death of this process.

    Raises:
        StoreError: if another process has it, or the file beside the store cannot be made.
    """

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(store.name + SUFFIX)
        self._handle = self._acquire(store)
        _HELD.add(self)

    def _acquire(self, store: Path) -> IO[Any]:
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
            handle = os.fdopen(descriptor, "rb+")
            try:
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                handle.close()
                raise StoreError(
                    f"{store} is being written to by another audit; wait for it, or use another store"
                ) from None
            if self._is_current(handle):
                return handle
            handle.close()  # its last owner deleted it between our opening and locking it

    def _is_current(self, handle: IO[Any]) -> bool:
        try:
            return os.path.samestat(os.fstat(handle.fileno()), self.path.stat())
        except OSError:
            return False

    def release(self) -> None:
        """Give up the right to write, and delete the file."""
        if not self._handle.closed:
            with suppress(OSError):  # the folder is gone, say
                self.path.unlink()
            self._handle.close()

    def abandon(self) -> None:
        """Close the handle and leave the file: for forked children, whose copy would keep the lock after the parent's death."""
        self._handle.close()


def _abandon_locks_of_the_parent() -> None:
    for lock in list(_HELD):
        lock.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_locks_of_the_parent)
