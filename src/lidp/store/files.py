"""Open, create and name the SQLite files of stores: without trusting their contents, and also on read-only media."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from lidp.errors import StoreError

# Error numbers of file systems without hard links: FAT, some network and container mounts.
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_SIDE_FILE_SUFFIXES = ("-wal", "-shm", "-journal")
_DRAFT_SUFFIX = ".new"
MAX_VALUE_BYTES = 2**29
"""Largest size of a text or an array in a store, in bytes."""


def connect(path: Path, mode: str, options: str = "") -> sqlite3.Connection:
    """Connect to an existing file; refuse SQL functions that its schema calls, and values above ``MAX_VALUE_BYTES``."""
    # Quoted as bytes, because names need not be UTF-8. Two leading slashes would name another machine.
    address = f"file:/{quote(os.fsencode(path).lstrip(b'/'))}?mode={mode}{options}"
    connection = sqlite3.connect(address, uri=True, timeout=10, check_same_thread=False)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.execute("SELECT count(*) FROM sqlite_schema")  # opens the file; connecting does not
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Connect without ever writing to the file. Where SQLite cannot create its side files, read the file without them."""
    try:
        return connect(path, "ro")
    except sqlite3.OperationalError:
        if os.access(path.parent, os.W_OK) and not _on_read_only_file_system(path):
            raise
    log = path.with_name(path.name + "-wal")
    if not log.is_file() or not log.stat().st_size:
        return connect(path, "ro", "&immutable=1")
    # Nobody can write to this folder. Trials that are still in the log are read from a copy.
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


def opening_error(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the error that explains in one line why a file cannot be opened."""
    if isinstance(error, sqlite3.OperationalError):
        return StoreError(f"{path}: cannot be opened: {error}")
    if "not a database" in str(error):
        return StoreError(f"{path} is not a store of an audit")
    return StoreError(f"{path} is damaged: {error}")


def refuse_leftover_side_files(path: Path) -> None:
    """Refuse side files of a deleted store, whose log SQLite would replay into a new store at ``path``.

    An empty log, which readers leave behind, is removed instead.

    Raises:
        StoreError: if there is any other side file.
    """
    if path.exists():
        return
    log, index, journal = (path.with_name(path.name + suffix) for suffix in _SIDE_FILE_SUFFIXES)
    if log.is_file() and not log.stat().st_size:
        index.unlink(missing_ok=True)
        log.unlink()
    for leftover in (log, index, journal):
        if os.path.lexists(leftover):
            raise StoreError(
                f"{leftover} is left over from another store, and its trials would be mixed into the new audit; delete it, or "
                f"choose another name than {path}"
            )


def resolve_only_name(path: Path) -> Path:
    """Return the path of a store with symbolic links resolved: SQLite keeps side files beside the file itself.

    Raises:
        StoreError: if the file has several names (hard links), for each of which SQLite would keep its own side files.
    """
    path = path.resolve()
    if _count_names(path) > 1:
        _remove_drafts(path)
    names = _count_names(path)  # again: the process that creates the store may have removed its draft itself
    if names > 1:
        raise StoreError(
            f"{path} has {names} names (hard links), and trials written under one would be missing under another; copy it, "
            "together with its -wal file, to a file that has only one name"
        )
    return path


def new_draft_path(path: Path) -> Path:
    """Return a new temporary path for a store that is being created."""
    return path.with_name(f"{path.name}.{secrets.token_hex(8)}{_DRAFT_SUFFIX}")


def _count_names(path: Path) -> int:
    """Return how many names a file has; 0 if it cannot be looked at."""
    try:
        return path.stat().st_nlink
    except OSError:
        return 0


def _remove_drafts(path: Path) -> None:
    """Remove temporary names that a process left when it was killed while creating this store."""
    drafts = [
        draft
        for draft in path.parent.glob(f"{glob.escape(path.name)}.*{_DRAFT_SUFFIX}")
        if file_identity(draft) == file_identity(path)
    ]
    for draft in drafts:
        with suppress(OSError):  # a folder that this process may not write to
            draft.unlink(missing_ok=True)


def publish_draft(draft: Path, path: Path) -> None:
    """Give a finished draft its final name.

    Raises:
        OSError: if a file of that name exists.
    """
    try:
        os.link(draft, path)
    except OSError as error:
        if path.exists() or error.errno not in _NO_HARD_LINKS:
            raise
        draft.rename(path)  # not exclusive: of two audits that begin at the same moment, the later one wins


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, which change when it is replaced; None if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
