"""Stores: one SQLite file per audit, written by one process at a time; reading one runs no code."""

from lidp.store.audit_store import MARK, SCHEMA_VERSION, Store, is_store

__all__ = ["MARK", "SCHEMA_VERSION", "Store", "is_store"]
