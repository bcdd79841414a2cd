"""Stores: what is recorded stays, what is damaged is named, and nobody else's code runs."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

import lidp
from lidp import AuditFailed, StoreError, Target
from lidp.audits import resume
from lidp.cli import trust
from lidp.cli.app import run as lidp_command
from lidp.store import Store, is_store
from lidp.store_marks import is_own, own_mark
from lidp.streams import draw_coins
from lidp.trials.trial import TrialRecord
from tests.engine import Numbers, closeness, finished, leaky, run
from tests.pages import ROOT
from tests.waiting import PATIENCE, wait_until

READ_AND_CLOSE = "import sys; from lidp.store import Store; s = Store.read(sys.argv[1]); print(len(s.trials())); s.close()"


def trial(index, seed=3, canaries=6):
    coins = draw_coins(seed, trial=index, size=canaries).astype(float)
    return TrialRecord(index, {"scores": coins + index, "coins": coins})


@pytest.fixture
def store(tmp_path):
    """An empty store of an audit of 40 trials with 6 canaries, open to write."""
    run(trials=40, store=tmp_path / "whole.db")
    with Store.read(tmp_path / "whole.db") as whole:
        configuration = whole.configuration
    with Store.create(tmp_path / "a.db", configuration) as opened:
        yield opened


def edit(path, statement, *values):
    with sqlite3.connect(path) as connection:
        changed = connection.execute(statement, values).rowcount
    connection.close()
    assert changed


# Reading while writing.


@pytest.mark.parametrize(
    "touch", [is_store, lambda path: Store.read(path).close(), finished], ids=["is_store", "read", "count"]
)
def test_reading_in_the_writing_process_does_not_let_others_delete_the_log(store, touch):
    store.keep_trials([trial(0)])
    touch(store.path)
    for index in range(1, 6):
        told = subprocess.run(
            [sys.executable, "-c", READ_AND_CLOSE, store.path], capture_output=True, text=True, check=True
        )
        assert int(told.stdout) == index
        store.keep_trials([trial(index)])
    store.close()
    assert finished(store.path) == 6


def test_a_refused_second_writer_does_not_let_others_delete_the_log(store):
    store.keep_trials([trial(0)])
    with pytest.raises(StoreError, match="being written to by another audit"):
        Store.open(store.path)
    subprocess.run([sys.executable, "-c", READ_AND_CLOSE, store.path], capture_output=True, check=True)
    store.keep_trials([trial(1)])
    store.close()
    assert finished(store.path) == 2


def test_report_during_resume_loses_no_trial(tmp_path):
    """`lidp resume` once read its own store as a plain file, and every reader then deleted the log."""
    path, gate = tmp_path / "a.db", tmp_path / "gate"
    (tmp_path / "gated.py").write_text(GATED.format(gate=str(gate)))
    command = [sys.executable, "-m", "lidp"]
    arguments = [
        "gated.py:target",
        "--epsilon",
        "9",
        "--trials",
        "40",
        "--canaries",
        "2",
        "--stop-when",
        "never",
        "--quiet",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    options = {"cwd": tmp_path, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    gate.write_text("10")
    first = subprocess.Popen([*command, "audit", *arguments, "--store", str(path)], **options)
    wait_until(lambda: finished(path) == 10, "10 trials are kept")
    first.kill()
    first.wait()
    second = subprocess.Popen([*command, "resume", str(path), "--quiet"], **options)
    for reached in (20, 30, 40):
        gate.write_text(str(reached))
        wait_until(lambda reached=reached: finished(path) >= reached, f"{reached} trials are kept")
        subprocess.run([*command, "report", str(path), "-o", str(tmp_path / "r.html")], check=True, **options)
    assert second.wait(timeout=PATIENCE) == 0
    assert finished(path) == 40


GATED = """
import time
from pathlib import Path
import lidp
from tests.engine import Numbers, closeness

def mechanism(dataset, rng):
    while rng.bit_generator.seed_seq.spawn_key[0] >= int(Path({gate!r}).read_text() or 0):
        time.sleep(0.01)
    return list(dataset)

target = lidp.Target(mechanism, Numbers(), closeness)
"""


def test_a_reader_sees_whole_trials_only(store):
    """Scores and trials are read from one state: a trial that is written between two queries is not half there."""
    store.keep_trials([trial(0)])
    with Store.read(store.path) as reader, reader._snapshot() as connection:
        first = connection.execute("SELECT count(*) FROM scores").fetchone()
        store.keep_trials([trial(1)])
        assert connection.execute("SELECT count(*) FROM scores").fetchone() == first
        assert connection.execute("SELECT count(*) FROM trials").fetchone() == (1,)


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


# Writing.


def test_a_finished_trial_is_written_while_the_next_one_runs(tmp_path):
    """Finished trials once waited for the next one before they were written."""
    path = tmp_path / "a.db"
    seen = []

    def waits_until_all_before_are_kept(dataset, rng):
        wait_until(lambda: finished(path) == len(seen), "the trials before are kept")
        seen.append(finished(path))
        return leaky(dataset, rng)

    run(Target(waits_until_all_before_are_kept, Numbers(), closeness), trials=4, store=path)
    assert seen == [0, 1, 2, 3]


def test_workers_let_the_driver_write_while_they_run(tmp_path):
    path = tmp_path / "a.db"

    def last_trial_waits_for_the_others(dataset, rng):
        if rng.bit_generator.seed_seq.spawn_key[0] == 3:
            wait_until(lambda: finished(path) == 3, "the trials before are kept")
        return leaky(dataset, rng)

    result = run(Target(last_trial_waits_for_the_others, Numbers(), closeness), trials=4, store=path, workers=2)
    assert result.failed_runs == 0


def test_trials_that_finished_before_an_audit_failed_are_kept(tmp_path):
    class Canaries:
        drawn = 0

        def draw(self, rng, size):
            Canaries.drawn += 1
            if Canaries.drawn == 8:
                raise RuntimeError("out of canaries")
            return rng.standard_normal(size)

    with pytest.raises(AuditFailed, match="out of canaries"):
        run(Target(leaky, Canaries(), closeness), trials=40, store=tmp_path / "a.db")
    assert finished(tmp_path / "a.db") == 5


@pytest.mark.parametrize("delete", ["file", "folder"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_store_that_is_deleted_ends_the_audit_with_a_word(tmp_path, delete, workers):
    folder = tmp_path / "folder"
    path = folder / "a.db"

    def deletes(dataset, rng):
        if rng.bit_generator.seed_seq.spawn_key[0] == 5:
            wait_until(lambda: finished(path) >= 4, "the trials before are kept")
            path.unlink() if delete == "file" else shutil.rmtree(folder, ignore_errors=True)
        return leaky(dataset, rng)

    with pytest.raises(StoreError, match="was deleted or replaced while the audit ran"):
        run(Target(deletes, Numbers(), closeness), trials=12, store=path, workers=workers)


def test_a_mechanism_that_changes_the_folder_does_not_move_the_store(tmp_path, monkeypatch):
    def moves(dataset, rng):
        os.chdir("/")
        return leaky(dataset, rng)

    monkeypatch.chdir(tmp_path)
    run(Target(moves, Numbers(), closeness), trials=5, store="a.db")
    assert finished(tmp_path / "a.db") == 5


def test_a_forked_child_may_not_write(store):
    def write(queue):
        try:
            store.keep_trials([trial(1)])
        except StoreError as error:
            queue.put(str(error))

    context = get_context("fork")
    queue = context.Queue()
    child = context.Process(target=write, args=(queue,))
    child.start()
    assert "forked copy" in queue.get(timeout=PATIENCE)
    child.join()
    store.keep_trials([trial(1)])
    assert finished(store.path) == 1


def test_a_store_is_readable_by_its_owner_only(store):
    store.keep_trials([trial(0)])
    for path in store.path.parent.glob("a.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_closed_store_leaves_no_lock_behind(store):
    assert Path(f"{store.path}-lock").exists()
    store.close()
    assert not Path(f"{store.path}-lock").exists()


def test_progress_counts_each_trial_once(monkeypatch):
    """Counting all failed trials anew at each progress made long audits quadratic."""
    looks = []

    class Failures(dict):
        def __bool__(self):
            looks.append(1)
            return len(self) > 0

    class Fast:
        def run(self, setup, indices):
            for index in indices:
                yield [TrialRecord(index, trial(index).arrays, Failures({"scores": "x"} if index == 7 else {}))]

    monkeypatch.setattr("lidp.audits.WRITE_SECONDS", -1.0)
    told = []
    run(executor=Fast(), trials=300, watch=told.append)
    assert told[-1].failed == 1
    assert len(told) > 300
    assert len(looks) <= 600


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
    monkeypatch.setattr("lidp.store._LEAST_ROW", 10**6)
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


# Strangers.

TELLTALE = """
from pathlib import Path
import lidp
from tests.engine import Numbers, closeness, leaky
Path(__file__).with_name("was-run").touch()
target = lidp.Target(leaky, Numbers(), closeness)
"""


@pytest.fixture
def unfinished(tmp_path, monkeypatch):
    """An audit of telltale.py that stopped half-way; its code leaves a file when it is loaded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    Path("telltale.py").write_text(TELLTALE)
    assert lidp_command([*AUDIT, "--store", "a.db"]) == 0
    edit("a.db", "DELETE FROM scores WHERE trial = 3")
    edit("a.db", "DELETE FROM trials WHERE number = 3")
    Path("was-run").unlink()
    return Path("a.db")


AUDIT = ["audit", "telltale.py:target", "--epsilon", "9", "--trials", "4", "--stop-when", "never", "--quiet"]


def test_ones_own_store_is_resumed_without_a_question(unfinished):
    assert lidp_command(["resume", str(unfinished), "--quiet"]) == 0
    assert Path("was-run").exists()


@pytest.mark.parametrize("origin", ["elsewhere", "edited", "moved"])
def test_a_strangers_store_runs_nothing_unless_trusted(unfinished, origin, monkeypatch, tmp_path, capsys):
    if origin == "elsewhere":  # another user, or another machine: another key
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody-else"))
    elif origin == "edited":
        with Store.open(unfinished) as store:
            store.keep_fact("configuration", {**store.configuration, "seed": 5})
    else:
        (tmp_path / "other").mkdir()
        for name in ("a.db", "telltale.py"):
            shutil.copy(name, tmp_path / "other" / name)
        monkeypatch.chdir(tmp_path / "other")
    assert lidp_command(["resume", "a.db", "--quiet"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "telltale.py" in told
    assert "--trust" in told
    assert not Path("was-run").exists()
    if origin != "edited":
        assert lidp_command(["resume", "a.db", "--quiet", "--trust"]) == 0
        assert Path("was-run").exists()


def test_a_strangers_command_is_shown_before_it_is_run(store, capsys):
    origin = "command?command=touch+%1B%5B2Jpwned+%7Bdata%7D+%7Bout%7D&data=x.npz&folder=%2Ftmp"
    store.keep_fact("configuration", {**store.configuration, "origin": origin})
    store.close()
    assert lidp_command(["resume", str(store.path)]) == 2
    told = capsys.readouterr().err
    assert "touch" in told
    assert "\x1b" not in told


GIVEN = {"command": "true {data} {out}", "data": "x.npz", "folder": "/somewhere"}
REFUSED = {  # an origin, and a word of the complaint
    "dpsgd?foo=1": "'foo'",
    "dpsgd?claim=1": "'claim'",
    "dpsgd?measure-accuracy=1": "'measure-accuracy'",
    "dpsgd?scale=x": "'scale'",
    "dpsgd?records=x": "records must be a whole number, got 'x'",
    "dpsgd?epochs=x": "epochs must be a number, got 'x'",
    "dpsgd?clip-norm=x": "clip-norm must be a number, got 'x'",
    "dpsgd?canaries=4&canaries=5": "canaries once",
    "dpsgd?canary=": "canary of dpsgd is empty",
    "dpsgd?canaries": "cannot be read",
    f"dpsgd?canaries={'1' * 5000}": "canaries must be a whole number",
    f"dpsgd?canaries={'1' * 4000}": "canaries must be",
    f"dpsgd?hidden={'1' * 5000}": "hidden must be",
    "dpsgd?epochs=1e308": "is damaged: its origin cannot be read",
    "command?command=true": "needs the option data",
    "command?data=x.npz&folder=/tmp": "needs the option command",
    f"command?{urlencode([*GIVEN.items(), ('command', 'false {data} {out}')])}": "command once",
    f"command?{urlencode([*GIVEN.items(), ('shell', '1')])}": "'shell'",
    f"command?{urlencode([*GIVEN.items(), ('folder', '')])}": "folder once",
    f"command?{urlencode({**GIVEN, 'command': ''})}": "command of command is empty",
}


@pytest.mark.parametrize("origin", REFUSED, ids=range(len(REFUSED)))
@pytest.mark.parametrize("trusted", [[], ["--trust"]], ids=["asked", "trusted"])
def test_an_origin_with_options_that_mean_nothing_is_refused_in_one_line(store, capsys, origin, trusted):
    store.keep_fact("configuration", {**store.configuration, "origin": origin})
    store.close()
    assert lidp_command(["resume", str(store.path), "--quiet", *trusted]) == 2
    told = capsys.readouterr().err
    assert REFUSED[origin] in told
    assert "should not have happened" not in told
    assert told.count("\n") == 1
    assert len(told) < 6000


@pytest.mark.parametrize("option", ["pilots", "time_limit"])
def test_a_number_of_a_strangers_command_that_is_none_is_refused(store, capsys, option, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones((20, 2)), y=np.arange(20) % 2)
    origin = f"command?{urlencode({**GIVEN, 'data': tmp_path / 'x.npz', option: 'x'})}"
    store.keep_fact("configuration", {**store.configuration, "origin": origin})
    store.close()
    assert lidp_command(["resume", str(store.path), "--quiet", "--trust"]) == 2
    assert f"{option} must be a" in capsys.readouterr().err


@pytest.mark.parametrize("origin", [7, True, ["dpsgd"], {"dpsgd": 1}], ids=str)
def test_an_origin_that_is_no_text_is_called_damaged(store, capsys, origin):
    store.keep_fact("configuration", {**store.configuration, "origin": origin})
    store.close()
    assert lidp_command(["resume", str(store.path), "--quiet", "--trust"]) == 2
    assert "is damaged: its origin cannot be read" in capsys.readouterr().err


def test_the_question_shows_what_would_be_run_and_no_control_characters(monkeypatch, capsys):
    given = {**GIVEN, "command": "touch \x1b[2J", "logs": "/elsewhere"}
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_words, **_options: False)
    with pytest.raises(StoreError, match="not trusted"):
        trust._ask(Path("a\nwas made by you\x1b[2J.db"), f"command?{urlencode(given)}")
    told = capsys.readouterr().err
    assert told.startswith(r"a\nwas made by you\x1b[2J.db was not made by you")
    for shown in (r"touch \x1b[2J", "'/somewhere'", "'x.npz'", "'/elsewhere'"):
        assert shown in told


def test_a_built_in_target_needs_no_trust(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    command = ["gaussian", "--epsilon", "2", "--delta", "1e-5", "--trials", "4", "--stop-when", "never", "--quiet"]
    assert lidp_command(["audit", *command, "--store", str(path)]) == 0
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody-else"))
    assert lidp_command(["resume", str(path), "--quiet"]) == 0


def test_a_store_that_is_swapped_after_the_question_is_not_run(unfinished, monkeypatch):
    def swap(path, *, trust):
        with Store.open(path) as store:
            store.keep_fact("configuration", {**store.configuration, "origin": "os:system"})
        return "telltale.py:target"

    monkeypatch.setattr("lidp.cli.resume.approved_origin", swap)
    assert lidp_command(["resume", str(unfinished), "--quiet"]) == 2


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
    monkeypatch.setattr("lidp.store_files.LARGEST_VALUE", 10_000)
    store.keep_fact("large", "x" * 9_000)
    store.keep_fact("too large", "x" * 11_000)
    with Store.read(store.path) as reader:
        assert len(reader.fact("large")) == 9_000
        with pytest.raises(StoreError, match="too large cannot be read"):
            reader.fact("too large")


def test_resuming_in_python_takes_what_the_caller_loads(unfinished):
    result = resume(unfinished, lambda origin, claim: {"telltale.py:target": Target(leaky, Numbers(), closeness)}[origin])
    assert result.bound.trials == 4
