"""Allow one writer per store: an exclusive lock on a file beside the store, which the kernel releases when its process dies.

The lock is never taken on the store itself. Closing any handle of an SQLite file drops all POSIX locks of this process on that
file, including those of SQLite's connections; another process would then delete the write-ahead log of a running audit.

If the lock file is deleted, another process can create and lock a new one. The first process no longer holds the lock then
(:meth:`WriterLock.is_held`), and the store refuses its writes.
"""

from __future__ import annotations

import os
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from lidp.errors import StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows has no flock; there only SQLite's locks protect the store
    fcntl = None  # type: ignore[assignment]

_SUFFIX = "-lock"
_ATTEMPTS, _PAUSE_SECONDS = 6, 0.02  # while somebody may be looking whether a store is locked
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)

_ALL_LOCKS: weakref.WeakSet[WriterLock] = weakref.WeakSet()


class WriterLock:
    """The exclusive right to write to a store, until :meth:`release` or the end of this process.

    Raises:
        StoreError: if another process holds it.
        OSError: if the lock file cannot be created.
    """

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(store.name + _SUFFIX)
        self._handle = self._acquire(store)
        _ALL_LOCKS.add(self)

    def _acquire(self, store: Path) -> IO[Any]:
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
            handle = os.fdopen(descriptor, "rb+")
            try:
                _lock_exclusively(handle)
            except OSError:
                handle.close()
                raise StoreError(
                    f"{store} is being written to by another audit; wait for it, or use another store"
                ) from None
            if self._is_lock_file(handle):
                return handle
            handle.close()  # the previous holder deleted the file after we opened it and before we locked it

    def _is_lock_file(self, handle: IO[Any]) -> bool:
        try:
            return os.path.samestat(os.fstat(handle.fileno()), self.path.stat())
        except OSError:
            return False

    def is_held(self) -> bool:
        """Return whether this lock still excludes other writers: it does not if its file was deleted or replaced."""
        return not self._handle.closed and self._is_lock_file(self._handle)

    def release(self) -> None:
        """Release the lock and delete its file, unless the file is that of another lock by now."""
        if not self._handle.closed:
            if self.is_held():
                with suppress(OSError):  # the folder may be gone
                    self.path.unlink()
            self._handle.close()

    def abandon(self) -> None:
        """Close the handle and leave the file: a forked child's copy of it would keep the lock after the parent has ended."""
        self._handle.close()


def is_locked(store: Path) -> bool:
    """Return whether a process is writing to a store. This creates no file and keeps nobody from writing."""
    try:
        descriptor = os.open(store.with_name(store.name + _SUFFIX), os.O_RDONLY | _FLAGS)
    except OSError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # for a moment, which _lock_exclusively waits for
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return fcntl is None


def _lock_exclusively(handle: IO[Any]) -> None:
    """Lock the file, or raise ``OSError`` if another process holds it for longer than :func:`is_locked` does."""
    for attempt in range(_ATTEMPTS):
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_PAUSE_SECONDS)


def _abandon_inherited_locks() -> None:
    for lock in list(_ALL_LOCKS):
        lock.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_inherited_locks)
