"""The driver of an audit on a cluster is killed or interrupted: what is finished is kept, and the audit can be resumed."""

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="Ray is missing: pip install 'lidp[ray]'")

import lidp
from lidp import Target
from lidp.cli.app import run as run_command
from lidp.result import AuditInterrupted
from lidp.store import Store
from lidp.trials.ray_executor import Ray
from tests import sample_targets
from tests.sample_targets import Numbers, closeness, run, same
from tests.trials.nodes import LONGEST_TEST_SECONDS, Located
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster
TARGET = """
import time
import helper
from lidp import Target
from dataclasses import dataclass

@dataclass(frozen=True)
class Normal:
    def draw(self, rng, size):
        return rng.standard_normal(size)

def slow(dataset, rng):
    time.sleep(0.05)
    return helper.noisy(dataset, rng)

def closeness(output, canary):
    return -min((abs(canary - value) for value in output), default=10.0)

target = Target(slow, Normal(), closeness, dataset=[0.5])
"""
HELPER = """
SCALE = 0.01

def noisy(dataset, rng):
    return [value + SCALE * rng.standard_normal() for value in dataset]
"""


@pytest.fixture
def file(tmp_path):
    """A target in a file, with a neighbour that it imports: the nodes have neither."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "target.py").write_text(TARGET)
    (folder / "helper.py").write_text(HELPER)
    return f"{folder / 'target.py'}:target"


def command(file, store, address, trials):
    return [
        "audit", file, "--epsilon", "9", "--canaries", "4", "--trials", str(trials), "--stop-when", "never", "--store", str(store),
        "--quiet", "--executor", "ray", "--ray-address", address, "--cpus-per-trial", "1",
    ]  # fmt: skip


# Shells start background jobs with interrupts ignored, and that is inherited. It is not set right by a function between fork and
# exec: in this process there are threads of Ray's, whose locks nobody would unlock.
DRIVER = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from lidp.cli import main; main()"


def start(arguments, folder):
    words = [sys.executable, "-c", DRIVER, *arguments]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_an_audit_whose_driver_and_node_were_killed_is_resumed(nodes, file, tmp_path):
    """On the same cluster: every trial once, the result that of one process."""
    store = tmp_path / "a.db"
    driver = start(command(file, store, nodes.address, 300), tmp_path)
    sample_targets.wait_for_more(store, 20)
    driver.kill()
    driver.communicate(timeout=LONGEST_TEST_SECONDS)
    nodes.kill()
    before = sample_targets.finished(store)
    assert 20 < before < 300
    resume = ["resume", str(store), "--quiet", "--executor", "ray", "--ray-address", nodes.address]
    again = start(resume, tmp_path)
    complaint = again.communicate(timeout=LONGEST_TEST_SECONDS)[1]
    assert again.returncode == 0, complaint
    with Store.read(store) as opened:
        assert opened.finished() == list(range(300))
    serial = tmp_path / "b.db"
    plain = command(file, serial, "", 300)[:-6]
    assert run_command(plain) == 0
    same(lidp.result_of(store), lidp.result_of(serial))


def test_an_interrupt_keeps_finished_trials_and_names_the_command_to_resume(nodes, file, tmp_path):
    for how, name in ((signal.SIGINT, "a.db"), (signal.SIGTERM, "b.db")):
        store = tmp_path / name
        driver = start(command(file, store, nodes.address, 2000), tmp_path)
        sample_targets.wait_for_more(store, 5)
        os.kill(driver.pid, how)
        complaint = driver.communicate(timeout=LONGEST_TEST_SECONDS)[1]
        assert driver.returncode == 130, complaint
        assert f"lidp resume {store} --executor ray --ray-address {nodes.address} --cpus-per-trial 1\n" in complaint
        assert "Traceback" not in complaint
        assert 5 < sample_targets.finished(store) < 2000


def test_closing_cancels_running_tasks(ray, tmp_path):
    def interrupt(progress):
        if progress.done >= 5:
            raise KeyboardInterrupt

    slow = Target(Located(), Numbers(), closeness, dataset=[0.5])
    with pytest.raises(AuditInterrupted) as caught:
        run(slow, trials=500, store=tmp_path / "a.db", watch=interrupt, executor=Ray())
    assert caught.value.result is not None
    wait_until(lambda: ray.available_resources().get("CPU", 0) == 2, "both nodes are idle")
