"""Run audits in separate processes, so that tests can kill and disturb them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import lidp
from lidp import Claim, CoinFlip
from lidp.cli.app import run as run_command
from lidp.store import Store
from tests.faults import targets
from tests.sample_targets import finished, same
from tests.waiting import PATIENCE, wait_until

ROOT = Path(__file__).parent.parent.parent
MOMENTS = 20
"""Number of random moments, or positions, per fault."""
CANARIES = 4
CLAIM = Claim(9.0)
DURATIONS = ("seconds", "trial_seconds")


def audit_words(store, target="SLOW", trials=400, workers=1, *options):
    """Return the command of an audit."""
    return [
        "audit", f"tests.faults.targets:{target}", "--epsilon", "9", "--trials", str(trials), "--canaries", str(CANARIES),
        "--workers", str(workers), "--store", str(store), "--stop-when", "never", "--quiet", *options,
    ]  # fmt: skip


def start(words, **options):
    """Start lidp in a new process group, in which SIGHUP is not ignored, as it is if nohup started the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", "lidp", *words], cwd=ROOT, start_new_session=True, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        **{"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL), **options},
    )  # fmt: skip


def begin_or_resume(store, words):
    """Return the command that resumes a store, or the one that begins it if there is none."""
    return ["resume", str(store), "--workers", words[words.index("--workers") + 1], "--quiet"] if store.exists() else words


def end_of(process):
    """Wait for a process; return its exit code, stdout and stderr."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def assert_one_line(code, err, *parts):
    """Check that a command ended with code 2 and one line on stderr that contains these parts."""
    assert (code, err.count("\n"), err[:6]) == (2, 1, "lidp: "), (code, err)
    assert all(str(part) in err for part in parts), err
    assert "should not have happened" not in err


def trials_in(store):
    """Return the numbers of the trials in a store."""
    with Store.read(store) as opened:
        return set(opened.finished())


def wait_for_trials(store, number, process):
    """Wait until a store has ``number`` trials, or the process that writes it has ended."""
    wait_until(lambda: finished(store) >= number or process.poll() is not None, f"{store} has {number} trials")


def assert_like_undisturbed(store, trials):
    """Check that a store has all of its trials, and the result of an undisturbed audit."""
    assert trials_in(store) == set(range(trials))
    undisturbed = lidp.audit(targets.LEAKY, claim=CLAIM, design=CoinFlip(CANARIES), trials=trials, stop_when="never")
    same(lidp.result_of(store), undisturbed)


def alive_children(pid):
    """Return the ids of the running child processes of a process."""
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it has ended meanwhile
            continue
        if int(parent) == pid and state != "Z":
            children.append(int(status.parent.name))
    return sorted(children)


def lidp_here(capsys, *words):
    """Run lidp in this process; return its exit code, stdout and stderr."""
    code = run_command([str(word) for word in words])
    return code, *capsys.readouterr()


def without_time(text):
    """Return the JSON of a result without its durations."""
    result = json.loads(
        text, object_pairs_hook=lambda pairs: {name: value for name, value in pairs if name not in DURATIONS}
    )
    return json.dumps(result, sort_keys=True)


@contextlib.contextmanager
def running(words, **options):
    """Start lidp, and kill whatever is left of its process group after the block."""
    process = start(words, **options)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
