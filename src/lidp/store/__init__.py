"""Stores: one SQLite file per audit, written by one process at a time; reading one runs no code."""

from lidp.store.audit_store import MARK, Store, is_store
from lidp.store.schema import SCHEMA_VERSION

__all__ = ["MARK", "SCHEMA_VERSION", "Store", "is_store"]
