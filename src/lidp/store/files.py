"""Open, create and name the SQLite files of stores: without trusting what they say, and on read-only media too."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import sqlite3
import tempfile
from pathlib import Path
from urllib.parse import quote

from lidp.errors import StoreError

# What file systems report that cannot link: FAT, some network and container mounts.
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
SIDE_FILES = ("-wal", "-shm", "-journal")
_DRAFT = ".new"
LARGEST_VALUE = 2**29
"""How many bytes a text or an array of a store may have."""


def connect(path: Path, mode: str, options: str = "") -> sqlite3.Connection:
    """Connect to an existing file, trusting nothing that it says about functions, and reading no value beyond a size."""
    # Quoted as bytes: names need not be UTF-8. Two slashes at the beginning would name another machine.
    address = f"file:/{quote(os.fsencode(path).lstrip(b'/'))}?mode={mode}{options}"
    connection = sqlite3.connect(address, uri=True, timeout=10, check_same_thread=False)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
        connection.execute("SELECT count(*) FROM sqlite_schema")  # opens the file, which connecting does not
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Connect without ever writing to the file; where not even SQLite's side files can be made, read it as it lies there."""
    try:
        return connect(path, "ro")
    except sqlite3.OperationalError:
        if os.access(path.parent, os.W_OK) and not _on_read_only_file_system(path):
            raise
    log = path.with_name(path.name + "-wal")
    if not log.is_file() or not log.stat().st_size:
        return connect(path, "ro", "&immutable=1")
    # Nobody writes there: trials that wait in the log are read from a copy.
    with tempfile.TemporaryDirectory(prefix="lidp-") as folder:
        copy = Path(folder, "store.db")
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
        on_disk = connect(copy, "rw")
        try:
            in_memory = sqlite3.connect(":memory:", check_same_thread=False)
            on_disk.backup(in_memory)
        finally:
            on_disk.close()
    in_memory.execute("PRAGMA trusted_schema = OFF")
    in_memory.execute("PRAGMA query_only = ON")
    return in_memory


def _on_read_only_file_system(path: Path) -> bool:
    statvfs = getattr(os, "statvfs", None)
    return statvfs is not None and bool(statvfs(path.parent).f_flag & os.ST_RDONLY)


def not_readable(path: Path, error: sqlite3.Error) -> StoreError:
    """Say in one line why a file cannot be opened."""
    if isinstance(error, sqlite3.OperationalError):
        return StoreError(f"{path}: cannot be opened: {error}")
    if "not a database" in str(error):
        return StoreError(f"{path} is not a store of an audit")
    return StoreError(f"{path} is damaged: {error}")


def refuse_side_files(path: Path) -> None:
    """Refuse files that a deleted store left behind: SQLite would replay its log into the new one.

    An empty log, which readers leave, is removed instead.

    Raises:
        StoreError: if there are any others.
    """
    if path.exists():
        return
    log, index, journal = (path.with_name(path.name + suffix) for suffix in SIDE_FILES)
    if log.is_file() and not log.stat().st_size:
        index.unlink(missing_ok=True)
        log.unlink()
    for leftover in (log, index, journal):
        if os.path.lexists(leftover):
            raise StoreError(
                f"{leftover} is left over from another store, and its trials would be mixed into the new audit; delete it, or "
                f"choose another name than {path}"
            )


def only_name(path: Path) -> Path:
    """Return the path of a store with symbolic links followed: side files stand beside the file itself.

    Raises:
        StoreError: if the file has other names (hard links), for which SQLite would keep other side files.
    """
    path = path.resolve()
    try:
        names = path.stat().st_nlink
    except OSError:
        return path
    if names > 1:
        names -= _remove_drafts(path)
    if names > 1:
        raise StoreError(
            f"{path} has {names} names (hard links), and trials written under one would be missing under another; copy it to a "
            "file of its own, together with its -wal file"
        )
    return path


def draft_of(path: Path) -> Path:
    """Return a new name for a store that is being made."""
    return path.with_name(f"{path.name}.{secrets.token_hex(8)}{_DRAFT}")


def _remove_drafts(path: Path) -> int:
    """Remove names that a killed process left when it was making this store; return how many."""
    drafts = [
        draft for draft in path.parent.glob(f"{glob.escape(path.name)}.*{_DRAFT}") if identity(draft) == identity(path)
    ]
    for draft in drafts:
        draft.unlink(missing_ok=True)
    return len(drafts)


def settle(draft: Path, path: Path) -> None:
    """Give a finished draft its name, if that is free."""
    try:
        os.link(draft, path)
    except OSError as error:
        if path.exists() or error.errno not in _NO_HARD_LINKS:
            raise
        draft.rename(path)  # two writers that begin within the same moment are not told apart on such file systems


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one of the same name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
