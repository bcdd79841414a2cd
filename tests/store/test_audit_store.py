"""An audit store keeps every saved trial while other processes read it, fork, or delete files."""

import os
import shutil
import stat
import subprocess
import sys
from multiprocessing import get_context

import pytest

from lidp import AuditFailed, StoreError, Target
from lidp.designs.trial_record import TrialRecord
from lidp.store import Store, is_store
from lidp.trials.executor import Executor
from tests.sample_targets import Numbers, closeness, finished, leaky, run
from tests.stores import trial
from tests.waiting import PATIENCE, wait_until

READ_AND_CLOSE = "import sys; from lidp.store import Store; s = Store.read(sys.argv[1]); print(len(s.trials())); s.close()"


# Reading in parts.


@pytest.mark.parametrize("most", [1, 3, 4, 5, 100])
def test_all_trials_are_read_in_parts_by_number(store, most):
    numbers = [0, 1, 5, 6, 7, 20, 21, 22]
    store.keep_trials([trial(number) for number in reversed(numbers)])
    parts = [[record.index for record in part] for part in store.iterate(most)]
    assert [number for part in parts for number in part] == numbers
    assert max(map(len, parts)) <= most


def test_an_empty_store_has_one_empty_part(store):
    assert list(store.iterate()) == [[]]


@pytest.mark.parametrize("number", [-3, 4, 9_999])
def test_scores_without_a_trial_are_found_whichever_part_they_belong_to(store, number):
    store.keep_trials([trial(index) for index in (0, 1, 2, 7, 8)])
    with store._transaction("for the test") as connection:
        connection.execute("INSERT INTO scores VALUES (?, 'scores', x'00')", [number])
    with pytest.raises(StoreError, match="trials and scores do not match"):
        list(store.iterate(2))


# Reading while writing.


@pytest.mark.parametrize(
    "touch", [is_store, lambda path: Store.read(path).close(), finished], ids=["is_store", "read", "count"]
)
def test_reading_in_the_writing_process_preserves_the_write_ahead_log(store, touch):
    store.keep_trials([trial(0)])
    touch(store.path)
    for index in range(1, 6):
        completed = subprocess.run(
            [sys.executable, "-c", READ_AND_CLOSE, store.path], capture_output=True, text=True, check=True
        )
        assert int(completed.stdout) == index
        store.keep_trials([trial(index)])
    store.close()
    assert finished(store.path) == 6


def test_refusing_a_second_writer_preserves_the_write_ahead_log(store):
    store.keep_trials([trial(0)])
    with pytest.raises(StoreError, match="being written to by another audit"):
        Store.open(store.path)
    subprocess.run([sys.executable, "-c", READ_AND_CLOSE, store.path], capture_output=True, check=True)
    store.keep_trials([trial(1)])
    store.close()
    assert finished(store.path) == 2


@pytest.mark.slow
def test_report_during_resume_loses_no_trial(tmp_path):
    """Regression: `lidp resume` read its store as a plain file, and then every reader deleted the log."""
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
    wait_until(lambda: finished(path) == 10, "10 trials are saved")
    first.kill()
    first.wait()
    second = subprocess.Popen([*command, "resume", str(path), "--quiet"], **options)
    for reached in (20, 30, 40):
        gate.write_text(str(reached))
        wait_until(lambda reached=reached: finished(path) >= reached, f"{reached} trials are saved")
        subprocess.run([*command, "report", str(path), "-o", str(tmp_path / "r.html")], check=True, **options)
    assert second.wait(timeout=PATIENCE) == 0
    assert finished(path) == 40


GATED = """
import time
from pathlib import Path
import lidp
from tests.sample_targets import Numbers, closeness

def mechanism(dataset, rng):
    while rng.bit_generator.seed_seq.spawn_key[0] >= int(Path({gate!r}).read_text() or 0):
        time.sleep(0.01)
    return list(dataset)

target = lidp.Target(mechanism, Numbers(), closeness)
"""


def test_a_reader_never_sees_part_of_a_trial(store):
    """Scores and trials are read from one snapshot, also if a trial is written between two queries."""
    store.keep_trials([trial(0)])
    with Store.read(store.path) as reader, reader._snapshot() as connection:
        first = connection.execute("SELECT count(*) FROM scores").fetchone()
        store.keep_trials([trial(1)])
        assert connection.execute("SELECT count(*) FROM scores").fetchone() == first
        assert connection.execute("SELECT count(*) FROM trials").fetchone() == (1,)


# Writing.


def test_a_failed_audit_keeps_the_trials_that_finished_before(tmp_path):
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
def test_deleting_the_store_ends_the_audit_with_an_error(tmp_path, delete, workers):
    folder = tmp_path / "folder"
    path = folder / "a.db"

    def deletes(dataset, rng):
        if rng.bit_generator.seed_seq.spawn_key[0] == 5:
            wait_until(lambda: finished(path) >= 4, "the earlier trials are saved")
            path.unlink() if delete == "file" else shutil.rmtree(folder, ignore_errors=True)
        return leaky(dataset, rng)

    deletes.draws_only_from_rng = True  # or the probe would wait
    with pytest.raises(StoreError, match="was deleted or replaced while the audit ran"):
        run(Target(deletes, Numbers(), closeness), trials=12, store=path, workers=workers)


def test_changing_the_current_folder_does_not_move_the_store(tmp_path, monkeypatch):
    def changes_folder(dataset, rng):
        os.chdir("/")
        return leaky(dataset, rng)

    monkeypatch.chdir(tmp_path)
    run(Target(changes_folder, Numbers(), closeness), trials=5, store="a.db")
    assert finished(tmp_path / "a.db") == 5


def test_a_forked_child_cannot_write(store):
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


def test_only_the_owner_can_read_the_files_of_a_store(store):
    store.keep_trials([trial(0)])
    for path in store.path.parent.glob("a.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_progress_counts_each_trial_once(monkeypatch):
    """Regression: each progress report counted all failed trials again, which made long audits quadratic."""
    checks = []

    class Failures(dict):
        def __bool__(self):
            checks.append(1)
            return len(self) > 0

    class Fast(Executor):
        def run(self, setup, indices):
            for index in indices:
                yield [TrialRecord(index, trial(index).arrays, Failures({"scores": "x"} if index == 7 else {}))]

    monkeypatch.setattr("lidp.engine.loop.WRITE_SECONDS", -1.0)
    progress = []
    run(executor=Fast(), trials=300, watch=progress.append)
    assert progress[-1].failed == 1
    assert len(progress) > 300
    assert len(checks) <= 600
