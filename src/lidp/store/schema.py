"""The tables of a store, and the header that identifies its file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lidp.errors import StoreError
from lidp.store.rows import encode_fact

SCHEMA_VERSION = 2
AUDIT_ID = "audit"
"""Name of the fact that holds the id of the audit. It is the only fact whose checksum does not cover that id."""
_APPLICATION_ID = 0x6C696470  # "lidp"
_SQLITE, _HEADER_BYTES, _ID_AT = b"SQLite format 3\0", 100, 68  # https://sqlite.org/fileformat.html
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE arrays (owner TEXT NOT NULL, name TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL, checksum BLOB NOT NULL,
                     PRIMARY KEY (owner, name)) WITHOUT ROWID;
CREATE TABLE trials (number INTEGER PRIMARY KEY, audit BLOB NOT NULL, seconds REAL NOT NULL, attempts INTEGER NOT NULL,
                     failures TEXT NOT NULL, metadata TEXT NOT NULL, checksum BLOB NOT NULL);
CREATE TABLE scores (trial INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,
                     PRIMARY KEY (trial, name)) WITHOUT ROWID;
"""


def write_new_file(path: Path, audit_id: bytes, facts: Mapping[str, Any]) -> None:
    """Write the header, the empty tables and the given facts to an empty file."""
    connection = sqlite3.connect(path)
    try:
        # Set here, before the file has its name: a kill while the mode of a store changes would leave a journal, and a store that
        # cannot be opened for reading.
        connection.execute("PRAGMA journal_mode = WAL")
        with connection:
            connection.executescript(_TABLES)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            rows = [
                encode_fact(b"", AUDIT_ID, audit_id.hex()),
                *(encode_fact(audit_id, name, value) for name, value in facts.items()),
            ]
            connection.executemany("INSERT INTO facts VALUES (?, ?, ?)", rows)
    finally:
        connection.close()


def has_store_header(connection: sqlite3.Connection) -> bool:
    """Return whether the header of a file says that it is a store."""
    return bool(pragma(connection, "application_id") == _APPLICATION_ID)


def has_store_bytes(path: Path) -> bool:
    """Return whether the first bytes of a file are those of a store; SQLite does not open it.

    Never call this for a file that this process may have opened as a store: closing it would drop SQLite's locks.
    """
    with path.open("rb") as file:
        start = file.read(_HEADER_BYTES)
    return start.startswith(_SQLITE) and start[_ID_AT : _ID_AT + 4] == _APPLICATION_ID.to_bytes(4, "big")


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a file has the header and exactly the tables of a store.

    Call this before reading anything else: a crafted file may have triggers or views, which run SQL when they are used.

    Raises:
        StoreError: if the header, the schema version or the tables differ.
    """
    if not has_store_header(connection):
        raise StoreError(f"{path} is not a store of an audit")
    version = pragma(connection, "user_version")
    if version != SCHEMA_VERSION:
        raise StoreError(f"{path} has schema version {version}, this version of lidp reads {SCHEMA_VERSION}")
    query = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
    pristine = sqlite3.connect(":memory:")
    try:
        pristine.executescript(_TABLES)
        expected = pristine.execute(query).fetchall()
    finally:
        pristine.close()
    if connection.execute(query).fetchmany(len(expected) + 1) != expected:
        raise StoreError(f"{path} is damaged: its tables are not those of a store")


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    """Return the value of an SQLite pragma."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
