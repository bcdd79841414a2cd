"""An audit whose disk is full ends with an error and loses no saved trial."""

import os
import random
import resource
import subprocess

import pytest

from tests.faults.auditing import (
    MOMENTS,
    assert_like_undisturbed,
    assert_one_line,
    audit_words,
    begin_or_resume,
    end_of,
    running,
    start,
    trials_in,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
TRIALS = 1500


def _run_until_full(store, words, **options):
    """Run an audit to its end; return its exit code, stderr and all trials that were seen in its store."""
    seen = set()

    def ended():
        if store.exists():
            seen.update(trials_in(store))
        return process.poll() is not None

    with running(words, **options) as process:
        wait_until(ended, "the disk is full")
        code, _, err = end_of(process)
    return code, err, seen


def test_a_limit_on_file_sizes_loses_no_saved_trial(tmp_path):
    """The limits range from less than an empty store to nearly a complete one."""
    sizes = random.Random(0)  # noqa: S311
    full = 0
    for moment in range(MOMENTS):
        store = tmp_path / f"{moment}.db"
        words = audit_words(store, "LEAKY", TRIALS)
        limit = sizes.randrange(4_000, 260_000)

        def narrow(limit=limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        code, err, seen = _run_until_full(store, words, preexec_fn=narrow)
        if code != 0:  # the largest limits may suffice
            full += 1
            assert_one_line(code, err, store)
        if store.exists():
            assert seen <= trials_in(store)
    assert full >= MOMENTS // 2
    code, _, err = end_of(start(begin_or_resume(store, words)))  # without a limit
    assert code == 0, err
    assert_like_undisturbed(store, TRIALS)


@pytest.fixture
def small_disk(tmp_path):
    """Return a function that mounts a new disk of a given size in bytes."""
    mounted = []

    def mount(size):
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
            pytest.skip("only root can mount a small disk")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607


def test_a_full_disk_loses_no_saved_trial(small_disk, tmp_path):
    sizes = random.Random(1)  # noqa: S311
    for _ in range(MOMENTS // 4):
        folder = small_disk(sizes.randrange(25, 70) * 4096)
        store = folder / "a.db"
        words = audit_words(store, "LEAKY", TRIALS)
        code, err, seen = _run_until_full(store, words)
        assert_one_line(code, err, store)
        if not store.exists():
            continue
        assert seen <= trials_in(store)
        subprocess.run(["mount", "-o", "remount,size=8m", str(folder)], check=True)  # noqa: S607
        code, _, err = end_of(start(begin_or_resume(store, words)))
        assert code == 0, err
        assert_like_undisturbed(store, TRIALS)
