"""The store: one SQLite file per audit. Finished trials are never lost, and reading a store runs no code.

Trials are written in transactions: the file of a killed audit holds whole trials only. Each row has a checksum that covers the
random id of its audit (:mod:`lidp.store.rows`), so that reading detects damaged rows and rows of another audit. One process
writes (:mod:`lidp.store.writer_lock`); any number of others read.

While a store is open, this process accesses its file through SQLite only: closing any other handle of the file would drop
SQLite's locks.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from lidp.designs.trial_record import TrialRecord
from lidp.errors import StoreError
from lidp.store.files import (
    connect,
    connect_to_read,
    file_identity,
    new_draft_path,
    opening_error,
    publish_draft,
    refuse_leftover_side_files,
    resolve_only_name,
)
from lidp.store.rows import (
    DECODING_ERRORS,
    TrialRow,
    decode_array,
    decode_fact,
    decode_trials,
    encode_array,
    encode_fact,
    encode_trial,
)
from lidp.store.schema import AUDIT_ID, check_schema, has_store_header, pragma, write_new_file
from lidp.store.writer_lock import WriterLock

MARK = "made_by"
"""Name of the fact that identifies the user who made the store; see :mod:`lidp.store.marks`."""
_PREPARATION = "preparation"
_PREDICTIONS = "predictions"
_MAX_DIGITS = 18  # of the number of a trial
_SMALLEST_ROW_BYTES = 16
_LEAST_NUMBER, _LARGEST_NUMBER = -(2**63), 2**63 - 1  # a crafted file may hold any of them, and none may be overlooked


class Store:
    """An open store. Use ``Store.create``, ``Store.open`` or ``Store.read``."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriterLock | None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
        self._process_id = os.getpid()
        self._file_identity = file_identity(path)
        self._mutex = threading.RLock()  # the audit and the recorder's timer write through one connection
        self._audit_id = b""

    # Opening and closing.

    @classmethod
    def create(
        cls,
        path: str | Path,
        configuration: Mapping[str, Any],
        versions: Mapping[str, str] | None = None,
        mark: Callable[[bytes], Any] | None = None,
    ) -> Store:
        """Create a store for an audit of this configuration, and open it to write. Only its owner may read the file.

        ``mark(audit_id)`` returns the value of the fact ``MARK``.

        Raises:
            StoreError: if the file exists or cannot be written.
        """
        path = Path(path).resolve()  # a mechanism may change the current folder
        # Written under a temporary name and then linked to its final name: a kill leaves a complete store or none.
        draft = new_draft_path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            refuse_leftover_side_files(path)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            audit_id = secrets.token_bytes(16)
            facts = {"configuration": configuration} | ({"versions": dict(versions)} if versions else {})
            write_new_file(draft, audit_id, facts | ({MARK: mark(audit_id)} if mark is not None else {}))
            publish_draft(draft, path)
        except OSError as error:
            if path.exists():
                raise StoreError(f"{path} exists already; resume it, or choose another name") from None
            raise StoreError(f"{path}: cannot be opened: {error.strerror}") from None
        except sqlite3.Error as error:
            raise StoreError(f"{path}: cannot be opened: {error}") from None
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """Open an existing store to write to it.

        Raises:
            StoreError: if there is none, another process writes to it, or it is damaged.
        """
        path = _resolve_existing(Path(path))
        try:
            lock = WriterLock(path)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written to: {error.strerror}") from None
        try:
            with cls.read(path) as reader:  # before writing, which would merge a foreign write-ahead log into the file
                reader._refuse_foreign_trials()
            return cls._connect(path, lambda: connect(path, "rw"), lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def read(cls, path: str | Path) -> Store:
        """Open an existing store to read it, also while an audit writes to it, and on read-only media.

        Raises:
            StoreError: if there is none, or it is damaged.
        """
        path = _resolve_existing(Path(path))
        return cls._connect(path, lambda: connect_to_read(path), None)

    @classmethod
    def _connect(cls, path: Path, make_connection: Callable[[], sqlite3.Connection], lock: WriterLock | None) -> Store:
        try:
            connection = make_connection()
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened: {error.strerror}") from None
        except sqlite3.Error as error:
            raise opening_error(path, error) from None
        store = cls(path, connection, lock)
        try:
            check_schema(connection, path)
            if lock is not None:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
            store._audit_id = store._read_audit_id()
        except sqlite3.Error as error:
            connection.close()
            raise opening_error(path, error) from None
        except BaseException:
            connection.close()
            raise
        return store

    def close(self) -> None:
        """Close the file and release the lock."""
        with self._mutex:
            self._connection.close()
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Facts and preparation.

    @property
    def writable(self) -> bool:
        """Whether this process has opened the store to write to it."""
        return self._lock is not None

    @property
    def audit_id(self) -> bytes:
        """The random id of the audit."""
        return self._audit_id

    def _read_audit_id(self) -> bytes:
        text = self._read_fact(AUDIT_ID, b"")
        try:
            return bytes.fromhex(text)
        except (TypeError, ValueError):
            raise StoreError(f"{self.path} is damaged: the id of its audit cannot be read") from None

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration of the audit."""
        value = self.fact("configuration")
        if not isinstance(value, dict):
            raise StoreError(f"{self.path} is damaged: it has no configuration")
        return value

    @property
    def versions(self) -> dict[str, str]:
        """The versions of Python and of the packages with which the audit was begun."""
        value = self.fact("versions") or {}
        if not isinstance(value, dict):
            raise StoreError(f"{self.path} is damaged: versions cannot be read (a {type(value).__name__})")
        return {str(name): str(version) for name, version in value.items()}

    def fact(self, name: str) -> Any:
        """Return the JSON value of this name, None if there is none."""
        return self._read_fact(name, self._audit_id)

    def _read_fact(self, name: str, audit_id: bytes) -> Any:
        try:
            row = self._connection.execute("SELECT value, checksum FROM facts WHERE name = ?", [name]).fetchone()
            return None if row is None else decode_fact(audit_id, name, *row)
        except DECODING_ERRORS as error:
            raise StoreError(f"{self.path} is damaged: {name} cannot be read ({error})") from None

    def keep_fact(self, name: str, value: Any) -> None:
        """Save a JSON value under this name, in place of the value that it had."""
        with self._transaction(f"{name} cannot be saved") as connection:
            connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", encode_fact(self._audit_id, name, value))
        self._empty_log()

    def keep_preparation(self, arrays: Mapping[str, NDArray[Any]], models: int) -> None:
        """Save the arrays of the preparation step and the number of models that it trained, in one transaction."""
        with self._transaction("the preparation cannot be saved") as connection:
            for name, array in arrays.items():
                row = encode_array(self._audit_id, _PREPARATION, name, array)
                connection.execute("INSERT OR REPLACE INTO arrays VALUES (?, ?, ?, ?, ?)", row)
            row = encode_fact(self._audit_id, "preparation_models", models)
            connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", row)
        self._empty_log()

    def preparation(self) -> tuple[dict[str, NDArray[Any]], int] | None:
        """Return the arrays and the number of models of the preparation step, None if it was not saved."""
        models = self.fact("preparation_models")
        if models is None:
            return None
        try:
            return self._read_arrays(_PREPARATION), int(models)
        except (TypeError, ValueError, OverflowError) as error:
            raise StoreError(f"{self.path} is damaged: its preparation cannot be read ({error})") from None

    def keep_predictions(self, predictions: Mapping[int, NDArray[Any]]) -> None:
        """Save the predictions that were bet on, by trial, in one transaction."""
        with self._transaction("predictions cannot be saved") as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO arrays VALUES (?, ?, ?, ?, ?)",
                [encode_array(self._audit_id, _PREDICTIONS, str(trial), array) for trial, array in predictions.items()],
            )

    def predictions(self) -> dict[int, NDArray[Any]]:
        """Return the predictions that were bet on, by trial."""
        arrays = self._read_arrays(_PREDICTIONS)
        if not all(name.isascii() and name.isdigit() and len(name) < _MAX_DIGITS for name in arrays):
            raise StoreError(f"{self.path} is damaged: its predictions belong to no trial")
        return {int(name): array for name, array in arrays.items()}

    def _read_arrays(self, owner: str) -> dict[str, NDArray[Any]]:
        try:
            query = "SELECT name, shape, data, checksum FROM arrays WHERE owner = ?"
            rows = self._connection.execute(query, [owner])
            return {name: decode_array(self._audit_id, owner, name, *values) for name, *values in rows}
        except DECODING_ERRORS as error:
            raise StoreError(f"{self.path} is damaged: its {owner} cannot be read ({error})") from None

    # Trials.

    def keep_trials(self, records: Iterable[TrialRecord]) -> None:
        """Save finished trials, all of them or none.

        Raises:
            StoreError: if a trial of the same number is saved already, or they cannot be written.
        """
        with self._transaction("trials cannot be saved") as connection:
            for record in records:
                row, array_rows = encode_trial(self._audit_id, record)
                connection.execute("INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                connection.executemany("INSERT INTO scores VALUES (?, ?, ?)", array_rows)

    def count_trials(self) -> int:
        """Return the number of saved trials, without reading them."""
        try:
            return int(self._connection.execute("SELECT count(*) FROM trials").fetchone()[0])
        except DECODING_ERRORS as error:
            raise StoreError(f"{self.path} is damaged: its trials cannot be counted ({error})") from None

    def finished(self, first: int = _LEAST_NUMBER, most: int = -1) -> list[int]:
        """Return the numbers of the saved trials from ``first`` on, in increasing order; with ``most``, at most as many."""
        query = "SELECT number FROM trials WHERE number >= ? ORDER BY number LIMIT ?"
        try:
            return [int(row[0]) for row in self._select(self._connection, query, [first, most])]
        except DECODING_ERRORS as error:
            raise StoreError(f"{self.path} is damaged: its trials cannot be counted ({error})") from None

    def iterate(self, most: int = 4096) -> Iterator[list[TrialRecord]]:
        """Yield all saved trials by number, at most ``most`` at a time.

        Trials that another process saves meanwhile are among them if their numbers are still to come.

        Raises:
            StoreError: if any of them is damaged, or belongs to another audit.
        """
        first = _LEAST_NUMBER
        while len(numbers := self.finished(first, most)) == most and numbers[-1] < _LARGEST_NUMBER:
            if numbers != sorted(numbers) or numbers[0] < first:  # or a crafted file would be read forever
                raise StoreError(f"{self.path} is damaged: its trials are not in order")
            yield self.trials(first, numbers[-1])
            first = numbers[-1] + 1
        yield self.trials(first)

    def trials(self, first: int | None = None, last: int | None = None) -> list[TrialRecord]:
        """Return the saved trials with numbers from ``first`` to ``last``, all of them by default, by number.

        Raises:
            StoreError: if any of them is damaged, or belongs to another audit.
        """
        trial_query = (
            "SELECT number, audit, seconds, attempts, failures, metadata, checksum FROM trials "
            "WHERE number BETWEEN ? AND ? ORDER BY number"
        )
        array_query = "SELECT trial, name, data FROM scores WHERE trial BETWEEN ? AND ? ORDER BY trial, name"
        limits = [_LEAST_NUMBER if first is None else first, _LARGEST_NUMBER if last is None else last]
        try:
            with self._snapshot() as connection:
                rows = [TrialRow(*row) for row in self._select(connection, trial_query, limits)]
                for row in rows:
                    if row.audit_id != self._audit_id:
                        raise self._foreign_trial_error(row.number)
                return list(decode_trials(rows, self._select(connection, array_query, limits)))
        except DECODING_ERRORS as error:
            raise StoreError(
                f"{self.path} is damaged: its trials cannot be read ({type(error).__name__}: {error})"
            ) from None

    def _select(
        self, connection: sqlite3.Connection, query: str, parameters: Sequence[int] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, at most as many as fit into the file: a crafted file may refer to one page many times."""
        file_bytes = pragma(connection, "page_count") * pragma(connection, "page_size")
        for count, row in enumerate(connection.execute(query, parameters)):
            if count >= file_bytes // _SMALLEST_ROW_BYTES:
                raise ValueError("it refers to more rows than it can hold")
            yield row

    def _refuse_foreign_trials(self) -> None:
        try:
            query = "SELECT number FROM trials WHERE audit IS NOT ? LIMIT 1"
            row = self._connection.execute(query, [self._audit_id]).fetchone()
        except DECODING_ERRORS as error:
            raise StoreError(f"{self.path} is damaged: its trials cannot be read ({error})") from None
        if row is not None:
            raise self._foreign_trial_error(row[0])

    def _foreign_trial_error(self, number: int) -> StoreError:
        return StoreError(
            f"{self.path} holds trials of another audit (trial {number}); if {self.path.name}-wal is left over from a deleted "
            "store, move that file away: the trials of this store are still in its file"
        )

    # Transactions.

    def _empty_log(self) -> None:
        """Move the contents of the write-ahead log to the file.

        The log then holds trials only, never the audit's id: a log that is replayed into another store cannot change its id.
        """
        with suppress(sqlite3.Error):  # a reader prevents it for now
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Let all queries of the block see the same state, whatever another process writes meanwhile."""
        with self._mutex:
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.rollback()

    @contextmanager
    def _transaction(self, failure: str) -> Iterator[sqlite3.Connection]:
        """Commit everything that the block writes, or nothing; ``failure`` is the summary of a failed write.

        Raises:
            StoreError: if the write fails, the file or its lock was deleted or replaced, or another process opened the store.
        """
        if os.getpid() != self._process_id:
            raise StoreError(f"{self.path}: a forked copy of the process that opened it may not write to it")
        with self._mutex:
            self._refuse_replaced_files()
            try:
                with self._connection as connection:
                    yield connection
                    # Again, just before the commit: while this transaction lasts, no other process can write.
                    self._refuse_replaced_files()
            except sqlite3.Error as error:
                raise StoreError(f"{self.path}: {failure}: {error}; everything saved before is safe") from None

    def _refuse_replaced_files(self) -> None:
        if file_identity(self.path) != self._file_identity:
            raise StoreError(
                f"{self.path} was deleted or replaced while the audit ran, and trials since then cannot be saved; begin the "
                "audit again, and leave its store in place"
            )
        if self._lock is not None and not self._lock.is_held():
            raise StoreError(
                f"{self._lock.path} was deleted or replaced while the audit ran, so that another audit may write to the store; "
                "trials since then cannot be saved; resume the audit, and leave that file in place while it runs"
            )


def is_store(path: str | Path) -> bool:
    """Return whether a file is a store of an audit."""
    try:
        connection = connect_to_read(Path(path).resolve())
    except (OSError, ValueError, sqlite3.Error):
        return False
    try:
        return has_store_header(connection)
    except sqlite3.Error:
        return False
    finally:
        connection.close()


def _resolve_existing(path: Path) -> Path:
    if not os.path.isfile(path):  # noqa: PTH113  # unlike Path.is_file, it returns False for impossible names
        raise StoreError(f"{path}: there is no such store")
    return resolve_only_name(path)
