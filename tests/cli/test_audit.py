"""``lidp audit``."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.invoke import lidp
from tests.pages import ROOT
from tests.sample_targets import wait_for_more
from tests.waiting import PATIENCE


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_a_leak_by_module_and_by_file(capsys, tmp_path):
    common = ("--epsilon", 1, "--delta", "1e-5", "--canaries", 8, "--trials", 60, "--json")
    code, out, _ = lidp(capsys, "audit", "tests.sample_targets:LEAKY", *common, "--report", tmp_path / "r.json")
    assert code == 1
    assert json.loads(out)["verdict"] == "refuted"
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "refuted"
    target = tmp_path / "mine.py"
    target.write_text("from tests.sample_targets import SILENT as target\n")
    code, out, _ = lidp(capsys, "audit", f"{target}:target", *common)
    assert code == 0
    assert json.loads(out)["verdict"] == "not refuted"


@pytest.mark.parametrize("design", ["coin-flip", "leave-one-out", "replace-one"])
def test_designs_by_name(capsys, design):
    code, out, _ = lidp(
        capsys, "audit", "tests.sample_targets:LEAKY", "--epsilon", 1, "--canaries", 4, "--trials", 90, "--design", design
    )
    assert code == 1
    assert out.startswith("refuted: leaky claims")


def test_the_built_in_target(capsys):
    code, out, _ = lidp(capsys, "audit", "gaussian", "--epsilon", 1, "--delta", "1e-5", "--trials", 20)
    assert code == 0
    assert "not refuted" in out or "inconclusive" in out


def test_an_interrupt_prints_the_bound_and_the_command_to_resume(tmp_path):
    store = tmp_path / "a.db"
    process = subprocess.Popen(
        [
            sys.executable, "-m", "lidp", "audit", "tests.sample_targets:SLOW", "--epsilon", "9", "--trials", "2000",
            "--canaries", "4", "--store", str(store), "--workers", "2",
        ],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # Shells start background jobs with interrupts ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    wait_for_more(store, 20)  # the first one finished need not be the first one, and then there is no bound yet
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "of 2,000 trials" in out
    assert f"lidp resume {store}" in err
    assert "Traceback" not in err


BAD = [
    (["audit"], "Missing argument"),
    (["audit", "tests.sample_targets:LEAKY"], "--epsilon"),
    (["audit", "nonsense", "--epsilon", "1"], "the target must be"),
    (["audit", "no.such.module:x", "--epsilon", "1"], "there is no module"),
    (["audit", "none.py:x", "--epsilon", "1"], "no such file"),
    (["audit", "tests.sample_targets:NOTHING", "--epsilon", "1"], "has no 'NOTHING'"),
    (["audit", "tests.sample_targets:NOT_A_TARGET", "--epsilon", "1"], "is a int, not a lidp.Target"),
    (["audit", "tests.sample_targets:LEAKY", "--epsilon", "-1"], "epsilon must be"),
    (["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--delta", "1"], "delta must be"),
    (["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--design", "x"], "design must be"),
    (["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--canaries", "0"], "canaries must be"),
    (["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--workers", "0"], "workers must be"),
    (["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--stop-when", "x"], "stop_when must be"),
    (
        ["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--method", "one-run", "--stop-when", "refuted"],
        "not anytime-valid",
    ),
    (["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--neighbours", "x"], "neighbours must be"),
    (["audit", "gaussian", "--epsilon", "1"], "delta above 0"),
    (["audit", "gaussian", "--epsilon", "1e6", "--delta", "1e-5"], "at most 500"),
    (
        ["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--report", "README.md/r.json"],
        "its folder cannot be created",
    ),
    (
        ["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--report", "r.pdf"],
        "r.pdf: a report is a page (.html), Markdown (.md), JSON (.json), JUnit XML (.xml) or a badge (.svg), not .pdf",
    ),
    (["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--report", "r.csv"], "not .csv"),
    (["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--report", "r"], "the name has no ending"),
    (["audit", "tests.sample_targets:LEAKX", "--epsilon", "1"], "has no 'LEAKX'; did you mean LEAKY?"),
    (["audit", "tests.sample_targets:BROKEN", "--epsilon", "1", "--trials", "4"], "all 4 trials failed"),
    (
        ["audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--design", "replace-one", "--neighbours", "replace-one"],
        "--neighbours is for --design coin-flip",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, message):
    code, out, err = lidp(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("lidp: ")
    assert message in err


def test_a_target_that_cannot_be_loaded_exits_with_2(capsys, tmp_path):
    broken = tmp_path / "broken_target.py"
    for text in ("raise RuntimeError('not today')", "raise SystemExit('not today')"):
        broken.write_text(text)
        code, _, err = lidp(capsys, "audit", f"{broken}:x", "--epsilon", 1)
        assert code == 2
        assert "not today" in err


@pytest.mark.slow
def test_progress_is_plain_off_a_terminal_and_absent_when_quiet(tmp_path):
    command = [
        sys.executable, "-m", "lidp", "audit", "tests.sample_targets:SLOW", "--epsilon", "9", "--trials", "400", "--canaries", "2",
    ]  # fmt: skip
    loud = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "trials," in loud.stderr
    assert "claim 9" in loud.stderr
    silent = subprocess.run([*command, "--quiet", "--json"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert silent.stderr == ""
    assert json.loads(silent.stdout)["bound"]["trials"] == 400


def test_an_audit_whose_first_trials_all_fail_ends_with_the_traceback_and_one_line(capsys):
    code, out, err = lidp(capsys, "audit", "tests.sample_targets:BROKEN", "--epsilon", "1", "--trials", "4000")
    assert code == 2
    assert out == ""
    *traceback, last = err.splitlines()
    assert traceback[0].startswith("Traceback")
    assert last.startswith("lidp: the first 8 trials all failed, so the audit stopped without a verdict")
    assert "sample_targets.py:" in last
