"""Signals that ask for an end: what is finished is kept, and nothing is taken for a failure of the mechanism."""

import os
import signal
import subprocess
import sys

import pytest

import lidp
from tests.engine import finished, wait_for_more
from tests.pages import ROOT
from tests.waiting import PATIENCE

AUDIT = [
    sys.executable, "-m", "lidp", "audit", "tests.engine:SLOW", "--epsilon", "9", "--trials", "3000", "--canaries", "4",
    "--stop-when", "never", "--quiet",
]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_a_signal_to_the_whole_group_keeps_what_is_finished(tmp_path, how, workers):
    """SIGHUP once killed the driver at once, and told its workers to raise."""
    path = tmp_path / "a.db"
    command = [*AUDIT, "--store", str(path), "--workers", str(workers)]
    process = subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    before = wait_for_more(path)
    os.killpg(process.pid, how)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, told
    assert told.splitlines()[-1].startswith("lidp: interrupted; to resume: lidp resume")
    assert finished(path) >= before
    assert lidp.result_of(path).failed_runs == 0


def test_sighup_is_ignored_if_it_was_ignored_before(tmp_path):
    """As nohup does."""
    path = tmp_path / "a.db"
    command = [*AUDIT, "--store", str(path)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=ROOT, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), **quiet)
    before = wait_for_more(path)
    process.send_signal(signal.SIGHUP)
    wait_for_more(path, before)
    assert process.poll() is None
    process.terminate()
    assert process.wait(timeout=PATIENCE) == 130
