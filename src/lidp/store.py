"""The store: one SQLite file an audit. What is recorded is never lost, and reading it runs no code.

Arrays are raw little-endian float64 with their shape, everything else is JSON. A trial is written in one transaction, so
that a file on which an audit was killed holds whole trials only. One writer at a time, held by a lock that dies with its
process; any number of readers.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lidp.errors import StoreError
from lidp.trials.trial import TrialRecord

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows has no flock; there SQLite's own locks must do
    fcntl = None  # type: ignore[assignment]

# What file systems say that cannot link: FAT, some network and container mounts.
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
SCHEMA_VERSION = 1
_APPLICATION_ID = 0x6C696470  # "lidp"
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE arrays (owner TEXT NOT NULL, name TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL,
                     PRIMARY KEY (owner, name)) WITHOUT ROWID;
CREATE TABLE trials (number INTEGER PRIMARY KEY, seconds REAL NOT NULL, attempts INTEGER NOT NULL,
                     failures TEXT NOT NULL, metadata TEXT NOT NULL);
CREATE TABLE scores (trial INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,
                     PRIMARY KEY (trial, name)) WITHOUT ROWID;
"""


_HELD: weakref.WeakSet[Any] = weakref.WeakSet()


def _let_go() -> None:
    """In a forked child: give up the locks of the parent, or they would outlive it."""
    for handle in list(_HELD):
        handle.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class Store:
    """An open store. Use ``Store.create``, ``Store.open`` or ``Store.read``."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: Any) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock

    @classmethod
    def create(cls, path: str | Path, configuration: Mapping[str, Any], versions: Mapping[str, str] | None = None) -> Store:
        """A new store for an audit of this configuration, begun with these versions; the file must not exist."""
        path = Path(path)
        # Made under another name and then linked to its own, so that a kill leaves a whole store or none.
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            connection = sqlite3.connect(draft)
            with connection:
                connection.executescript(_SCHEMA)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                known = {"configuration": configuration} | ({"versions": dict(versions)} if versions else {})
                connection.executemany(
                    "INSERT INTO facts VALUES (?, ?)", [(name, json.dumps(value)) for name, value in known.items()]
                )
            connection.close()
            _settle(draft, path)
        except OSError as error:
            if path.exists():
                raise StoreError(f"{path} exists already; resume it, or choose another name") from None
            raise StoreError(f"{path}: cannot be opened: {error.strerror}") from None
        except sqlite3.Error as error:
            raise StoreError(f"{path}: cannot be opened: {error}") from None
        finally:
            if path.parent.is_dir():
                draft.unlink(missing_ok=True)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """An existing store, to go on writing to it."""
        return cls._existing(Path(path), writable=True)

    @classmethod
    def read(cls, path: str | Path) -> Store:
        """An existing store, to look at it; also while an audit is writing to it."""
        return cls._existing(Path(path), writable=False)

    @classmethod
    def _existing(cls, path: Path, *, writable: bool) -> Store:
        if not path.is_file():
            raise StoreError(f"{path}: there is no such store")
        if not is_store(path):
            raise StoreError(f"{path} is not a store of an audit")
        store = cls._connect(path, writable=writable)
        version = store._connection.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            store.close()
            raise StoreError(f"{path} has schema version {version}, this version of lidp reads {SCHEMA_VERSION}")
        return store

    @classmethod
    def _connect(cls, path: Path, *, writable: bool) -> Store:
        lock = None
        try:
            if writable:
                lock = _exclusive(path)
                connection = sqlite3.connect(path, timeout=10)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
            else:
                connection = sqlite3.connect(path, timeout=10)
                connection.execute("PRAGMA query_only = ON")
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened: {error.strerror}") from None
        except sqlite3.Error as error:
            raise StoreError(f"{path}: cannot be opened: {error}") from None
        return cls(path, connection, lock)

    def close(self) -> None:
        """Close the file and release the lock."""
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What is kept.

    @property
    def configuration(self) -> dict[str, Any]:
        """What the audit was asked to do."""
        found: dict[str, Any] = self.fact("configuration")
        return found

    @property
    def versions(self) -> dict[str, str]:
        """The versions with which the audit was begun; empty for stores from before they were kept."""
        found = self.fact("versions") or {}
        if not isinstance(found, dict):
            raise StoreError(f"{self.path} is damaged: versions cannot be read (a {type(found).__name__})")
        return {str(name): str(version) for name, version in found.items()}

    def fact(self, name: str) -> Any:
        """A JSON value by name, None if there is none."""
        try:
            row = self._connection.execute("SELECT value FROM facts WHERE name = ?", [name]).fetchone()
            return None if row is None else json.loads(row[0])
        except (sqlite3.Error, ValueError) as error:
            raise StoreError(f"{self.path} is damaged: {name} cannot be read ({error})") from None

    def keep_fact(self, name: str, value: Any) -> None:
        """Keep a JSON value by name."""
        with self._connection as connection:
            connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", [name, json.dumps(value)])

    def keep_preparation(self, arrays: Mapping[str, NDArray[Any]], models: int) -> None:
        """Keep what the preparation step found, in one transaction."""
        with self._connection as connection:
            for name, array in arrays.items():
                plain = np.ascontiguousarray(array, dtype="<f8")
                connection.execute(
                    "INSERT OR REPLACE INTO arrays VALUES ('preparation', ?, ?, ?)",
                    [name, json.dumps(plain.shape), plain.tobytes()],
                )
            connection.execute("INSERT OR REPLACE INTO facts VALUES ('preparation_models', ?)", [json.dumps(models)])

    def preparation(self) -> tuple[dict[str, NDArray[Any]], int] | None:
        """The arrays and the number of models of the preparation step, None if it has not been kept."""
        models = self.fact("preparation_models")
        if models is None:
            return None
        rows = self._connection.execute("SELECT name, shape, data FROM arrays WHERE owner = 'preparation'")
        return {name: np.frombuffer(data, "<f8").reshape(json.loads(shape)) for name, shape, data in rows}, int(models)

    def keep_trials(self, records: Iterable[TrialRecord]) -> None:
        """Keep finished trials, all of them or none."""
        try:
            self._keep_trials(records)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: trials cannot be kept: {error}; what was kept before is safe") from None

    def _keep_trials(self, records: Iterable[TrialRecord]) -> None:
        with self._connection as connection:
            for record in records:
                connection.execute(
                    "INSERT INTO trials VALUES (?, ?, ?, ?, ?)",
                    [
                        record.index,
                        record.seconds,
                        record.attempts,
                        json.dumps(dict(record.failures)),
                        json.dumps(dict(record.metadata), default=str),
                    ],
                )
                connection.executemany(
                    "INSERT INTO scores VALUES (?, ?, ?)",
                    [(record.index, name, np.asarray(a, dtype="<f8").tobytes()) for name, a in record.arrays.items()],
                )

    def finished(self) -> list[int]:
        """The numbers of the trials that are kept."""
        return [row[0] for row in self._connection.execute("SELECT number FROM trials ORDER BY number")]

    def trials(self) -> list[TrialRecord]:
        """All kept trials, by number."""
        try:
            return self._trials()
        except (sqlite3.Error, KeyError, ValueError, TypeError) as error:
            raise StoreError(
                f"{self.path} is damaged: its trials cannot be read ({type(error).__name__}: {error})"
            ) from None

    def _trials(self) -> list[TrialRecord]:
        arrays: dict[int, dict[str, NDArray[np.float64]]] = {}
        for number, name, data in self._connection.execute("SELECT trial, name, data FROM scores"):
            arrays.setdefault(number, {})[name] = np.frombuffer(data, "<f8")
        query = "SELECT number, seconds, attempts, failures, metadata FROM trials ORDER BY number"
        rows = self._connection.execute(query).fetchall()
        failures, metadata = _parsed([row[3] for row in rows]), _parsed([row[4] for row in rows])
        return [
            TrialRecord(number, arrays[number], failed, seconds, known, attempts)
            for (number, seconds, attempts, _, _), failed, known in zip(rows, failures, metadata, strict=True)
        ]


def _parsed(texts: list[str]) -> list[Any]:
    """The values of many JSON texts, parsed as one list: far faster than one by one."""
    found: list[Any] = json.loads(f"[{','.join(texts)}]")
    if len(found) != len(texts):
        raise ValueError(f"{len(texts)} JSON texts hold {len(found)} values")
    return found


def is_store(path: str | Path) -> bool:
    """Whether a file is a store of an audit, by its header."""
    with Path(path).open("rb") as file:
        header = file.read(72)
    return header[:15] == b"SQLite format 3" and int.from_bytes(header[68:72], "big") == _APPLICATION_ID


def _exclusive(path: Path) -> Any:
    """A lock on the file that is ours until closed or until this process dies."""
    handle = path.open("ab")
    _HELD.add(handle)
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.close()
            raise StoreError(f"{path} is being written to by another audit; wait for it, or use another store") from None
    return handle


def _settle(draft: Path, path: Path) -> None:
    """Give a finished draft its name, if that is free."""
    try:
        os.link(draft, path)
    except OSError as error:
        if path.exists() or error.errno not in _NO_HARD_LINKS:
            raise
        draft.rename(path)  # two writers that begin within the same moment are not told apart on such file systems
