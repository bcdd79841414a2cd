"""Files of stores: side files of other stores, damage, read-only media."""

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
from lidp.store import Store, files, is_store, schema
from tests.sample_targets import finished, run
from tests.stores import edit, trial
from tests.waiting import PATIENCE

# Side files of other stores.


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_create_refuses_leftover_side_files(tmp_path, suffix):
    (tmp_path / f"a.db{suffix}").write_bytes(b"left over")
    with pytest.raises(StoreError, match=f"a.db{suffix} is left over"):
        run(trials=5, store=tmp_path / "a.db")
    assert not (tmp_path / "a.db").exists()


def test_create_refuses_the_log_of_a_deleted_store(store):
    """Regression: SQLite replayed the log, and a repaired mechanism was refuted with the trials of the faulty one."""
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


def test_opening_a_store_beside_the_log_of_a_killed_audit_is_refused(store, tmp_path):
    """Regression: a store that was moved to the path of a deleted one showed the trials and the audit id of that one."""
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


def test_create_removes_an_empty_log_left_by_a_reader(tmp_path):
    path = tmp_path / "a.db"
    run(trials=3, store=path)
    Store.read(path).close()
    assert Path(f"{path}-wal").exists()
    path.unlink()
    assert run(trials=3, store=path).bound.trials == 3


def test_a_draft_that_its_writer_removes_meanwhile_is_no_hard_link(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    Store.create(path, {}).close()
    draft = files.new_draft_path(path)
    os.link(path, draft)
    # The writer is faster than the reader that has just seen two names.
    monkeypatch.setattr(files, "_remove_drafts", lambda _path: draft.unlink())
    with Store.read(path) as opened:
        assert opened.finished() == []


def test_opening_a_store_with_hard_links_is_refused(tmp_path):
    run(trials=3, store=tmp_path / "a.db")
    os.link(tmp_path / "a.db", tmp_path / "b.db")
    for opening in (Store.open, Store.read):
        with pytest.raises(StoreError, match="2 names"):
            opening(tmp_path / "b.db")


def test_opening_a_store_removes_the_draft_of_a_killed_process(tmp_path):
    run(trials=3, store=tmp_path / "a.db")
    draft = tmp_path / "a.db.0123456789abcdef.new"
    os.link(tmp_path / "a.db", draft)
    assert lidp.result_of(tmp_path / "a.db").bound.trials == 3
    assert not draft.exists()


def test_a_symbolic_link_opens_the_store_that_it_points_to(tmp_path, store):
    link = tmp_path / "link.db"
    link.symlink_to(store.path)
    store.keep_trials([trial(0)])
    assert finished(link) == 1
    with pytest.raises(StoreError, match="being written to by another audit"):
        Store.open(link)


@pytest.mark.parametrize("name", ["a b.db", "50%.db", "a?b#c.db", "ε.db", b"\xff.db"])
def test_special_characters_in_file_names(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    run(trials=3, store=path)
    assert lidp.result_of(path).bound.trials == 3
    assert lidp.result_of(f"/{path}").bound.trials == 3


def test_threads_creating_the_same_store_leave_exactly_one(tmp_path):
    messages = []

    def create():
        try:
            Store.create(tmp_path / "a.db", {"trials": 1}).close()
        except StoreError as error:
            messages.append(str(error))

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert is_store(tmp_path / "a.db")
    assert all("exists already" in message or "another audit" in message for message in messages)
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
def test_edited_rows_are_reported_as_damage(tmp_path, statement, values):
    run(trials=10, store=tmp_path / "a.db")
    edit(tmp_path / "a.db", statement, *values)
    with pytest.raises(StoreError, match="is damaged"):
        lidp.result_of(tmp_path / "a.db")


def test_an_edited_preparation_is_reported_as_damage(store):
    store.keep_preparation({"centre": np.ones(3)}, 2)
    store.close()
    edit(store.path, "UPDATE arrays SET data = zeroblob(24)")
    with Store.read(store.path) as again, pytest.raises(StoreError, match="its preparation cannot be read"):
        again.preparation()


@pytest.mark.parametrize(
    "fields",
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
def test_implausible_trial_metadata_is_reported_as_damage(store, fields):
    store.keep_trials([TrialRecord(0, trial(0).arrays, **fields)])
    with pytest.raises(StoreError, match="is damaged"):
        lidp.result_of(store.path)


@pytest.mark.parametrize("change", ["attempts = 'many'", "seconds = 'long'", "failures = 'null'", "metadata = '[]'"])
def test_trial_columns_of_another_type_are_reported_as_damage(tmp_path, change):
    run(trials=3, store=tmp_path / "a.db")
    edit(tmp_path / "a.db", f"UPDATE trials SET {change}")  # noqa: S608  # one of the above
    with pytest.raises(StoreError, match="is damaged"):
        lidp.result_of(tmp_path / "a.db")


def test_reading_stops_at_the_number_of_rows_that_fit_into_the_file(tmp_path, monkeypatch):
    run(trials=10, store=tmp_path / "a.db")
    monkeypatch.setattr("lidp.store.audit_store._SMALLEST_ROW_BYTES", 10**6)
    with pytest.raises(StoreError, match="is damaged"):
        lidp.result_of(tmp_path / "a.db")


def test_values_above_the_size_limit_are_not_read(store, monkeypatch):
    monkeypatch.setattr("lidp.store.files.MAX_VALUE_BYTES", 10_000)
    store.keep_fact("large", "x" * 9_000)
    store.keep_fact("too large", "x" * 11_000)
    with Store.read(store.path) as reader:
        assert len(reader.fact("large")) == 9_000
        with pytest.raises(StoreError, match="too large cannot be read"):
            reader.fact("too large")


@pytest.mark.parametrize("where", ["coins", "shape", "number"])
def test_trials_that_contradict_the_plan_are_refused(store, where):
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
def test_an_invalid_configuration_is_reported_as_damage(store, change):
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


def test_a_truncated_store_is_reported_as_damaged_or_reads_as_before(tmp_path, capsys):
    path, cut = tmp_path / "a.db", tmp_path / "cut.db"
    expected = run(trials=30, store=path).bound
    whole = path.read_bytes()
    for size in np.random.default_rng(0).integers(0, len(whole), 20):
        cut.write_bytes(whole[:size])
        try:
            message = ""
            assert lidp.result_of(cut).bound == expected
        except StoreError as error:
            message = str(error)
        assert not message or any(word in message for word in ("is damaged", "is not a store", "cannot be opened"))
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
        except BaseException as error:  # noqa: BLE001  # reported by the parent
            queue.put(repr(error))

    context = get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    result = queue.get(timeout=PATIENCE)
    child.join()
    return result


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
        result = as_nobody(
            lambda readable: (lidp.result_of(readable).bound.trials, Store.read(readable).versions), target / "a.db"
        )
        assert result == (10, {"lidp": "new"} if log else lidp.result_of(path).versions)
    finally:
        (folder / "target").chmod(0o755)
        shutil.rmtree(folder)


def test_a_store_is_in_write_ahead_mode_before_it_has_its_name(tmp_path):
    """A kill while the mode of a store changes would leave a journal behind, and no reader could open the store."""
    schema.write_new_file(tmp_path / "a.db", b"0" * 16, {})
    assert (tmp_path / "a.db").read_bytes()[18:20] == b"\2\2"  # of the header: write-ahead log, to write and to read
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]
