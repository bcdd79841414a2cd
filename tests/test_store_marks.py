"""Marks of stores: which ones this user made, on this machine and in this folder."""

import os
import stat
from pathlib import Path

import pytest

from lidp import StoreError
from lidp.store import Store
from lidp.store.marks import is_own, own_mark
from tests.engine import run


def test_a_mark_needs_the_key_the_audit_and_the_folder(store, monkeypatch, tmp_path):
    assert not is_own(store, here=False)
    configuration = store.configuration
    with Store.create(tmp_path / "b.db", configuration, mark=own_mark(configuration)) as own:
        assert is_own(own, here=True)
        made = own.fact("made_by")
        store.keep_fact("made_by", made)
        assert not is_own(store, here=False)  # of another audit
        monkeypatch.chdir("/")
        assert is_own(own, here=False)
        assert not is_own(own, here=True)
        key = Path(os.environ["XDG_DATA_HOME"], "lidp", "store.key")
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        kept = key.read_bytes()
        key.write_bytes(bytes(32))
        assert not is_own(own, here=False)
        key.write_bytes(kept)


def test_a_store_without_a_key_is_made_and_belongs_to_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", os.devnull)
    run(trials=3, store=tmp_path / "a.db")
    with Store.read(tmp_path / "a.db") as opened:
        assert not is_own(opened, here=False)


def test_values_beyond_a_size_are_not_read(store, monkeypatch):
    monkeypatch.setattr("lidp.store.files.LARGEST_VALUE", 10_000)
    store.keep_fact("large", "x" * 9_000)
    store.keep_fact("too large", "x" * 11_000)
    with Store.read(store.path) as reader:
        assert len(reader.fact("large")) == 9_000
        with pytest.raises(StoreError, match="too large cannot be read"):
            reader.fact("too large")
