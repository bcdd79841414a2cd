"""Stores: one SQLite file per audit, written by one process at a time; reading one runs no code."""

from lidp.store.audit_store import MARK, Store, is_store
from lidp.store.schema import SCHEMA_VERSION, has_store_bytes
from lidp.store.writer_lock import is_locked

__all__ = ["MARK", "SCHEMA_VERSION", "Store", "has_store_bytes", "is_locked", "is_store"]
