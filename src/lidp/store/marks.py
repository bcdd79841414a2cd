"""Tell stores that this user made on this machine from those that came from elsewhere.

Resuming an audit runs the code that its store names. A store therefore carries a keyed mark: a message authentication code over the
audit's id, its configuration and the folder in which it was begun, under a random key that only this user can read. Nobody without
that key can make a store that passes for one's own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lidp.store import MARK, Store

_KEY_BYTES = 32


def own_mark(configuration: Mapping[str, Any]) -> Callable[[bytes], Any]:
    """Return what makes the mark of a new store from the id of its audit: None without a home folder to keep a key in."""

    def mark(audit: bytes) -> Any:
        key, folder = _key(create=True), _current_folder()
        return None if key is None else {"folder": folder, "mark": _mark(key, audit, configuration, folder)}

    return mark


def is_own(store: Store, *, here: bool) -> bool:
    """Return whether this user made the store on this machine; with ``here``, also in the current folder."""
    made = store.fact(MARK)
    key = _key(create=False)
    if key is None or not isinstance(made, dict):
        return False
    folder, mark = made.get("folder"), made.get("mark")
    if not isinstance(folder, str) or not isinstance(mark, str):
        return False
    authentic = hmac.compare_digest(_mark(key, store.audit_id, store.configuration, folder).encode(), mark.encode())
    return authentic and (not here or folder == _current_folder())


def _current_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return ""


def _mark(key: bytes, audit: bytes, configuration: Mapping[str, Any], folder: str) -> str:
    told = json.dumps([audit.hex(), configuration, folder], sort_keys=True)
    return hmac.new(key, told.encode(), hashlib.sha256).hexdigest()


def _key(*, create: bool) -> bytes | None:
    """Return this user's key; create it if there is none and that is asked for."""
    path = _key_path()
    if path is None:
        return None
    key = _read_key(path)
    if key is None and create:
        with suppress(OSError):
            _write_key(path)
        key = _read_key(path)
    return key


def _key_path() -> Path | None:
    try:
        home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    except RuntimeError:  # no home folder
        return None
    return home / "lidp" / "store.key"


def _read_key(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _write_key(path: Path) -> None:
    """Write a new key, whole or not at all; of two processes that do so at once, the first one wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
