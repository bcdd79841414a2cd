"""Files of stores: what does not belong together, is damaged or lies on read-only media."""

import os
import shutil
import sqlite3
import tempfile
import threading
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import lidp
from lidp import StoreError
from lidp.cli.app import run as lidp_command
from lidp.designs.trial_record import TrialRecord
from lidp.store import Store, is_store
from tests.engine import finished, run
from tests.stores import edit, trial
from tests.waiting import PATIENCE

# Files that do not belong together.


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_store_is_not_created_beside_what_another_left_behind(tmp_path, suffix):
    (tmp_path / f"a.db{suffix}").write_bytes(b"left over")
    with pytest.raises(StoreError, match=f"a.db{suffix} is left over"):
        run(trials=5, store=tmp_path / "a.db")
    assert not (tmp_path / "a.db").exists()


def test_the_log_of_a_deleted_store_is_not_replayed_into_the_next_audit(store):
    """A repaired mechanism was refuted with its predecessor's trials."""
    store.keep_trials([trial(index) for index in range(5)])
    path = store.path
    log = Path(f"{path}-wal").read_bytes()
    store.close()
    path.unlink()
    Path(f"{path}-wal").write_bytes(log)
    with pytest.raises(StoreError, match="left over"):
        run(trials=40, store=path)


def test_trials_of_another_audit_are_refused(tmp_path):
    for name in ("a.db", "b.db"):
        run(trials=5, store=tmp_path / name)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("ATTACH ? AS other", [str(tmp_path / "b.db")])
        connection.execute("DELETE FROM trials")
        connection.execute("INSERT INTO trials SELECT * FROM other.trials")
    connection.close()
    with pytest.raises(StoreError, match="holds trials of another audit"):
        lidp.result_of(tmp_path / "a.db")


def test_the_log_of_a_killed_audit_is_not_taken_for_that_of_a_store_moved_beside_it(store, tmp_path):
    """A store that was moved to where another had been deleted showed the other's trials, audit id and all."""
    store.keep_fact("note", "written in WAL mode")
    store.keep_trials([trial(index) for index in range(5)])
    log = Path(f"{store.path}-wal").read_bytes()
    moved = tmp_path / "moved.db"
    expected = run(trials=10, store=moved).bound
    Path(f"{moved}-wal").write_bytes(log)
    before = moved.read_bytes()
    for reading in (lidp.result_of, Store.open):
        with pytest.raises(StoreError, match="of another audit|is damaged"):
            reading(moved)
    assert moved.read_bytes() == before
    for suffix in ("-wal", "-shm"):
        Path(f"{moved}{suffix}").unlink(missing_ok=True)
    assert lidp.result_of(moved).bound == expected


def test_an_empty_log_that_a_reader_left_is_no_obstacle(tmp_path):
    path = tmp_path / "a.db"
    run(trials=3, store=path)
    Store.read(path).close()
    assert Path(f"{path}-wal").exists()
    path.unlink()
    assert run(trials=3, store=path).bound.trials == 3


def test_a_store_with_several_names_is_refused(tmp_path):
    run(trials=3, store=tmp_path / "a.db")
    os.link(tmp_path / "a.db", tmp_path / "b.db")
    for opening in (Store.open, Store.read):
        with pytest.raises(StoreError, match="2 names"):
            opening(tmp_path / "b.db")


def test_a_draft_that_a_killed_process_left_is_removed(tmp_path):
    run(trials=3, store=tmp_path / "a.db")
    draft = tmp_path / "a.db.0123456789abcdef.new"
    os.link(tmp_path / "a.db", draft)
    assert lidp.result_of(tmp_path / "a.db").bound.trials == 3
    assert not draft.exists()


def test_a_symbolic_link_is_the_store_itself(tmp_path, store):
    link = tmp_path / "link.db"
    link.symlink_to(store.path)
    store.keep_trials([trial(0)])
    assert finished(link) == 1
    with pytest.raises(StoreError, match="being written to by another audit"):
        Store.open(link)


@pytest.mark.parametrize("name", ["a b.db", "50%.db", "a?b#c.db", "ε.db", b"\xff.db"])
def test_odd_names(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    run(trials=3, store=path)
    assert lidp.result_of(path).bound.trials == 3
    assert lidp.result_of(f"/{path}").bound.trials == 3


def test_threads_that_create_one_store_at_once_leave_one(tmp_path):
    told = []

    def create():
        try:
            Store.create(tmp_path / "a.db", {"trials": 1}).close()
        except StoreError as error:
            told.append(str(error))

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert is_store(tmp_path / "a.db")
    assert all("exists already" in message or "another audit" in message for message in told)
    assert not list(tmp_path.glob("*.new"))


# Damage.


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("UPDATE scores SET data = zeroblob(48) WHERE trial = 3 AND name = 'scores'", ()),
        ("UPDATE scores SET data = zeroblob(48) WHERE trial = 3 AND name = 'coins'", ()),
        ("DELETE FROM scores WHERE trial = 3", ()),
        ("DELETE FROM scores WHERE trial = 3 AND name = 'coins'", ()),
        ("DELETE FROM trials WHERE number = 3", ()),
        ("UPDATE trials SET failures = ? WHERE number = 3", ('{"scores": "failed"}',)),
        ("UPDATE trials SET number = 1000 WHERE number = 3", ()),
        ("UPDATE facts SET value = replace(value, '\"trials\": 10', '\"trials\": 12') WHERE name = 'configuration'", ()),
        ("UPDATE facts SET value = replace(value, '0.05', '0.06') WHERE name = 'configuration'", ()),
        ("DELETE FROM facts WHERE name = 'audit'", ()),
        ("DELETE FROM facts WHERE name = 'configuration'", ()),
    ],
    ids=str,
)
def test_what_was_changed_is_damaged(tmp_path, statement, values):
    run(trials=10, store=tmp_path / "a.db")
    edit(tmp_path / "a.db", statement, *values)
    with pytest.raises(StoreError, match="is damaged"):
        lidp.result_of(tmp_path / "a.db")


def test_a_damaged_preparation_is_found(store):
    store.keep_preparation({"centre": np.ones(3)}, 2)
    store.close()
    edit(store.path, "UPDATE arrays SET data = zeroblob(24)")
    with Store.read(store.path) as again, pytest.raises(StoreError, match="its preparation cannot be read"):
        again.preparation()


@pytest.mark.parametrize(
    "odd",
    [
        {"failures": {"nowhere": "x"}},
        {"failures": {"scores": 5}},
        {"metadata": {"scores_unscored": "many"}},
        {"metadata": {"scores_unscored": None}},
        {"seconds": float("inf")},
        {"attempts": 0},
    ],
    ids=str,
)
def test_odd_notes_are_damage(store, odd):
    store.keep_trials([TrialRecord(0, trial(0).arrays, **odd)])
    with pytest.raises(StoreError, match="is damaged"):
        lidp.result_of(store.path)


@pytest.mark.parametrize("change", ["attempts = 'many'", "seconds = 'long'", "failures = 'null'", "metadata = '[]'"])
def test_notes_of_another_type_are_damage(tmp_path, change):
    run(trials=3, store=tmp_path / "a.db")
    edit(tmp_path / "a.db", f"UPDATE trials SET {change}")  # noqa: S608  # one of the above
    with pytest.raises(StoreError, match="is damaged"):
        lidp.result_of(tmp_path / "a.db")


def test_no_more_rows_are_read_than_the_file_has_room_for(tmp_path, monkeypatch):
    run(trials=10, store=tmp_path / "a.db")
    monkeypatch.setattr("lidp.store.audit_store._LEAST_ROW", 10**6)
    with pytest.raises(StoreError, match="is damaged"):
        lidp.result_of(tmp_path / "a.db")


@pytest.mark.parametrize("where", ["coins", "shape", "number"])
def test_trials_that_the_plan_cannot_have_made_are_refused(store, where):
    honest = trial(0)
    wrong = {
        "coins": TrialRecord(0, {**honest.arrays, "coins": 1 - honest.arrays["coins"]}),
        "shape": trial(0, canaries=5),
        "number": trial(40),
    }[where]
    store.keep_trials([wrong])
    with pytest.raises(StoreError, match="not those of seed 3" if where == "coins" else "does not belong to"):
        lidp.result_of(store.path)


@pytest.mark.parametrize(
    "change",
    [{"trials": "many"}, {"trials": 10**11}, {"seed": -1}, {"method": 3}, {"design": {"kind": "Odd"}}, {"claim": []}],
)
def test_an_odd_configuration_is_damage_too(store, change):
    store.keep_fact("configuration", {**store.configuration, **change})
    with pytest.raises(StoreError, match="its configuration cannot be read"):
        lidp.result_of(store.path)


@pytest.mark.parametrize(
    "addition",
    [
        "CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM trials; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more (a)",
        "CREATE INDEX i ON trials (seconds)",
    ],
)
def test_triggers_views_and_other_tables_are_refused(store, addition):
    store.close()
    with sqlite3.connect(store.path) as connection:
        connection.execute(addition)
    connection.close()
    for opening in (Store.open, Store.read):
        with pytest.raises(StoreError, match="its tables are not those of a store"):
            opening(store.path)
    assert not Path(f"{store.path}-lock").exists()


def test_truncated_stores_are_damaged_or_as_before(tmp_path, capsys):
    path, cut = tmp_path / "a.db", tmp_path / "cut.db"
    expected = run(trials=30, store=path).bound
    whole = path.read_bytes()
    for size in np.random.default_rng(0).integers(0, len(whole), 20):
        cut.write_bytes(whole[:size])
        try:
            told = ""
            assert lidp.result_of(cut).bound == expected
        except StoreError as error:
            told = str(error)
        assert not told or any(word in told for word in ("is damaged", "is not a store", "cannot be opened"))
        assert lidp_command(["report", str(cut), "-o", str(tmp_path / "r.html")]) in (0, 2)
        assert "this should not have happened" not in capsys.readouterr().err


# Read-only media.


def as_nobody(read, path):
    """Read a store in a child process that may not write to its folder."""

    def work(queue):
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        try:
            with pytest.raises(OSError, match="ermission"):
                (path.parent / "new").touch()
            queue.put(read(path))
        except BaseException as error:  # noqa: BLE001  # told in the parent
            queue.put(repr(error))

    context = get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    found = queue.get(timeout=PATIENCE)
    child.join()
    return found


@pytest.mark.parametrize("log", [False, True], ids=["closed", "killed"])
def test_a_store_in_a_read_only_folder_can_be_read(log):
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "source" / "a.db"
        run(trials=10, store=path)
        target = folder / "target"
        target.mkdir()
        if log:
            with Store.open(path) as writer:
                writer.keep_fact("versions", {"lidp": "new"})
                for name in ("a.db", "a.db-wal"):
                    shutil.copy(path.with_name(name), target / name)
        else:
            shutil.copy(path, target / "a.db")
        for file in target.iterdir():
            file.chmod(0o444)
        target.chmod(0o555)
        folder.chmod(0o755)
        result = as_nobody(lambda place: (lidp.result_of(place).bound.trials, Store.read(place).versions), target / "a.db")
        assert result == (10, {"lidp": "new"} if log else lidp.result_of(path).versions)
    finally:
        (folder / "target").chmod(0o755)
        shutil.rmtree(folder)
