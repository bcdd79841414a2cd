"""After a stop signal, finished trials are saved and no trial counts as failed."""

import os
import signal
import subprocess
import sys

import pytest

from lidp.store import Store
from tests.pages import ROOT
from tests.sample_targets import finished, wait_for_more
from tests.waiting import PATIENCE

AUDIT = [
    sys.executable, "-m", "lidp", "audit", "tests.sample_targets:SLOW", "--epsilon", "9", "--trials", "3000", "--canaries", "4",
    "--stop-when", "never", "--quiet",
]  # fmt: skip


@pytest.mark.slow_after_first
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "stop_signal", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT], ids=lambda stop_signal: stop_signal.name
)
def test_a_stop_signal_to_the_process_group_keeps_finished_trials(tmp_path, stop_signal, workers):
    """Regression: SIGHUP killed the audit immediately, and its workers raised errors."""
    path = tmp_path / "a.db"
    command = [*AUDIT, "--store", str(path), "--workers", str(workers)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # it is ignored if nohup started the tests
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    before = wait_for_more(path)
    os.killpg(process.pid, stop_signal)
    _, messages = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, messages
    assert messages.splitlines()[-1].startswith("lidp: interrupted; to resume: lidp resume")
    assert finished(path) >= before
    # Trial 1 may finish before trial 0, so there need not be a result yet: look at the records themselves.
    with Store.read(path) as store:
        assert not any(record.failures for record in store.trials())


def test_sighup_stays_ignored_if_the_parent_ignores_it(tmp_path):
    """Nohup starts programs in this way."""
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
