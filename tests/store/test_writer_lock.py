"""A store has one writer at a time, also if somebody deletes its lock file."""

import fcntl
from pathlib import Path

import pytest

from lidp import StoreError
from lidp.store import Store
from lidp.store.writer_lock import WriterLock, is_locked
from tests.sample_targets import finished
from tests.stores import trial


def test_closing_a_store_deletes_its_lock_file(store):
    assert Path(f"{store.path}-lock").exists()
    store.close()
    assert not Path(f"{store.path}-lock").exists()


def test_a_writer_whose_lock_file_was_deleted_cannot_write(store):
    store.keep_trials([trial(0)])
    Path(f"{store.path}-lock").unlink()
    with pytest.raises(StoreError, match="a.db-lock was deleted or replaced while the audit ran"):
        store.keep_trials([trial(1)])
    store.close()
    assert finished(store.path) == 1


def test_deleting_the_lock_file_never_lets_two_processes_write(store):
    """Regression: after the deletion, both the first and the second writer wrote to the store."""
    store.keep_trials([trial(0)])
    lock = Path(f"{store.path}-lock")
    lock.unlink()
    with Store.open(store.path) as second:
        with pytest.raises(StoreError, match="so that another audit may write to the store"):
            store.keep_trials([trial(1)])
        store.close()
        assert lock.exists()  # the second writer's lock file is not deleted with the first store
        with pytest.raises(StoreError, match="being written to by another audit"):
            Store.open(store.path)
        second.keep_trials([trial(1)])
    assert finished(store.path) == 2
    assert not lock.exists()


def test_a_lock_file_that_is_replaced_during_a_write_discards_that_write(store):
    def records():
        yield trial(0)
        Path(f"{store.path}-lock").unlink()

    with pytest.raises(StoreError, match="a.db-lock was deleted or replaced"):
        store.keep_trials(records())
    assert store.finished() == []


def test_a_released_lock_is_not_held(tmp_path):
    lock = WriterLock(tmp_path / "a.db")
    assert lock.is_held()
    lock.release()
    assert not lock.is_held()


def test_looking_whether_a_store_is_locked_finds_its_writer(store):
    assert is_locked(store.path)
    store.close()
    assert not is_locked(store.path)


def test_looking_whether_a_store_is_locked_creates_no_file(tmp_path):
    assert not is_locked(tmp_path / "a.db")
    assert list(tmp_path.iterdir()) == []


def test_the_lock_file_of_a_killed_audit_is_not_locked(tmp_path):
    (tmp_path / "a.db-lock").touch()
    assert not is_locked(tmp_path / "a.db")


def test_a_look_does_not_keep_an_audit_from_starting(store, monkeypatch):
    path = store.path
    store.close()
    looker = (path.parent / "a.db-lock").open("wb")
    fcntl.flock(looker, fcntl.LOCK_SH)
    monkeypatch.setattr("lidp.store.writer_lock.time.sleep", lambda _: looker.close())
    WriterLock(path).release()
    assert looker.closed
