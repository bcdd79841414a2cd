"""Reading a store while an audit writes to it, side files of deleted stores, and read-only folders."""

import random
import shutil
import signal

import pytest

from tests.faults.auditing import (
    MOMENTS,
    assert_like_undisturbed,
    assert_one_line,
    audit_words,
    begin_or_resume,
    end_of,
    lidp_here,
    running,
    trials_in,
    wait_for_trials,
)

pytestmark = pytest.mark.slow
TRIALS = 600


def test_readers_lose_no_trials(tmp_path, capsys):
    """Run report, bound and compare in a loop in this process, while another process begins and resumes the audit."""
    store = tmp_path / "a.db"
    words = audit_words(store, "SLOW", TRIALS, 2)
    moments = random.Random(0)  # noqa: S311
    seen, reads = set(), 0
    for part in range(4):
        with running(begin_or_resume(store, words)) as process:
            wait_for_trials(store, len(seen) + 1, process)
            stop = len(seen) + 40 + moments.randrange(60)
            while process.poll() is None and (part == 3 or len(seen) < stop):
                for command in (["report", store, "-o", tmp_path / "a.html"], ["bound", store], ["compare", store, store]):
                    code, _, err = lidp_here(capsys, *command)
                    # Trial 0 may be the last of the first ones to finish: then there is no result yet.
                    assert code == 0 or "no trial is finished" in err, err
                    reads += 1
                    now = trials_in(store)
                    assert seen <= now
                    seen = now
            process.send_signal(signal.SIGTERM)
            code, _, err = end_of(process)
            assert code == (0 if part == 3 else 130), err
        assert seen <= trials_in(store)
    assert reads >= 3 * 4
    assert_like_undisturbed(store, TRIALS)


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_an_audit_beside_leftover_side_files_is_refused(ending, tmp_path, capsys):
    """SQLite would replay them into the new store."""
    store = tmp_path / "a.db"
    with running(audit_words(store, "SLOW", TRIALS)) as process:
        wait_for_trials(store, 20, process)
        process.kill()
        end_of(process)
    leftover = tmp_path / f"a.db{ending}"
    real = leftover.read_bytes() if leftover.exists() else b""
    contents = random.Random(ending)  # noqa: S311
    for _ in range(MOMENTS // 4):
        for path in tmp_path.iterdir():
            path.unlink()
        for content in (real, contents.randbytes(contents.randrange(5000))):
            leftover.write_bytes(content)
            code, out, err = lidp_here(capsys, *audit_words(store, "LEAKY", 20))
            assert_one_line(code, err, leftover)
            assert not out
            assert not store.exists()
            assert leftover.read_bytes() == content


def test_a_store_in_a_read_only_folder_can_be_read(tmp_path, capsys):
    """``lidp bound`` prints the same for a copy on a read-only disk."""
    store = tmp_path / "a.db"
    assert lidp_here(capsys, *audit_words(store, "LEAKY", 20))[0] == 0
    expected = lidp_here(capsys, "bound", store)
    folder = tmp_path / "locked"
    folder.mkdir()
    copy = shutil.copy(store, folder / "a.db")
    (folder / "a.db").chmod(0o444)
    folder.chmod(0o555)
    try:
        assert lidp_here(capsys, "bound", copy) == expected
    finally:
        folder.chmod(0o755)
