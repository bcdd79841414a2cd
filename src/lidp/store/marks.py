"""Distinguish stores that this user made on this machine from stores of other origin.

Resuming an audit runs the code that its store names. A store therefore carries a mark: a message authentication code over the
audit's id, its configuration and the folder in which it was begun, under a random key that only this user can read. Without that
key, nobody can make a store that this user would resume without being asked.
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


def user_mark(configuration: Mapping[str, Any]) -> Callable[[bytes], Any]:
    """Return a function that maps the id of a new audit to the mark of its store.

    The mark is None if there is no home folder in which a key can be kept.
    """

    def mark(audit_id: bytes) -> Any:
        key, folder = _load_key(create=True), _current_folder()
        return (
            None if key is None else {"folder": folder, "mark": _authentication_code(key, audit_id, configuration, folder)}
        )

    return mark


def made_by_this_user(store: Store, *, in_current_folder: bool) -> bool:
    """Return whether this user made the store on this machine; with ``in_current_folder``, also in this folder."""
    mark = store.fact(MARK)
    key = _load_key(create=False)
    if key is None or not isinstance(mark, dict):
        return False
    folder, code = mark.get("folder"), mark.get("mark")
    if not isinstance(folder, str) or not isinstance(code, str):
        return False
    expected = _authentication_code(key, store.audit_id, store.configuration, folder)
    authentic = hmac.compare_digest(expected.encode(), code.encode())
    return authentic and (not in_current_folder or folder == _current_folder())


def _current_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return ""


def _authentication_code(key: bytes, audit_id: bytes, configuration: Mapping[str, Any], folder: str) -> str:
    message = json.dumps([audit_id.hex(), configuration, folder], sort_keys=True)
    return hmac.new(key, message.encode(), hashlib.sha256).hexdigest()


def _load_key(*, create: bool) -> bytes | None:
    """Return this user's key, None if there is none. With ``create``, create a missing key."""
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
    """Write a new key, completely or not at all. If two processes write one at the same time, the first one wins."""
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
