"""An audit ends with an error if its store or its lock file is deleted."""

import os
import random
import shutil

import pytest

from tests.faults import targets
from tests.faults.auditing import MOMENTS, assert_one_line, audit_words, end_of, running, wait_for_trials

pytestmark = pytest.mark.slow


def _delete_file(folder):
    (folder / "a.db").unlink()


def _delete_all_files(folder):
    for path in folder.iterdir():
        path.unlink()


def _delete_lock_file(folder):
    (folder / "a.db-lock").unlink()


def _replace_file(folder):
    other = folder / "other"
    other.write_text("something else")
    other.replace(folder / "a.db")


def _move_file(folder):
    (folder / "a.db").rename(folder / "b.db")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "delete",
    [_delete_file, _delete_all_files, _delete_lock_file, _replace_file, _move_file, shutil.rmtree],
    ids=lambda delete: delete.__name__,
)
def test_deleting_files_of_a_store_ends_the_audit(delete, workers, tmp_path):
    """The next write fails with one line. The mechanism waits for the deletion, so that the audit cannot end before it."""
    moments = random.Random(workers)  # noqa: S311
    for moment in range(MOMENTS // 10):
        folder, gate = tmp_path / str(moment), tmp_path / f"gate{moment}"
        folder.mkdir()
        store = folder / "a.db"
        words = audit_words(store, "GATED", 400, workers)
        with running(words, env=os.environ | {targets.GATE: str(gate)}) as process:
            wait_for_trials(store, 1 + moments.randrange(20), process)
            delete(folder)
            gate.touch()
            code, out, err = end_of(process)
        assert_one_line(code, err, store)
        assert not out
