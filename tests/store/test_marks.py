"""Marks identify the stores that this user made on this machine."""

import os
import stat
from pathlib import Path

from lidp.store import Store
from lidp.store.marks import made_by_this_user, user_mark
from tests.sample_targets import run


def test_a_mark_is_valid_for_one_key_one_audit_and_one_folder(store, monkeypatch, tmp_path):
    assert not made_by_this_user(store, in_current_folder=False)
    configuration = store.configuration
    with Store.create(tmp_path / "b.db", configuration, mark=user_mark(configuration)) as marked:
        assert made_by_this_user(marked, in_current_folder=True)
        mark = marked.fact("made_by")
        store.keep_fact("made_by", mark)
        assert not made_by_this_user(store, in_current_folder=False)  # of another audit
        monkeypatch.chdir("/")
        assert made_by_this_user(marked, in_current_folder=False)
        assert not made_by_this_user(marked, in_current_folder=True)
        key = Path(os.environ["XDG_DATA_HOME"], "lidp", "store.key")
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        kept = key.read_bytes()
        key.write_bytes(bytes(32))
        assert not made_by_this_user(marked, in_current_folder=False)
        key.write_bytes(kept)


def test_a_store_created_without_a_key_has_no_valid_mark(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", os.devnull)
    run(trials=3, store=tmp_path / "a.db")
    with Store.read(tmp_path / "a.db") as opened:
        assert not made_by_this_user(opened, in_current_folder=False)
