"""Exit codes are a contract: 0 not refuted, 1 refuted and nothing else, 2 bad input or no audit, 130 interrupted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lidp.cli.app import run

TARGET = """
import asyncio, atexit, os, signal, sys
from lidp import Target
from tests.sample_targets import Numbers, closeness, leaky, silent

{before}

def mechanism(dataset, rng):
    {within}
    return silent(dataset, rng)

target = Target(mechanism, Numbers(), closeness, dataset=[0.5])
pair = (lambda data, rng: mechanism([], rng)[0], 0, 1)
"""
AUDIT = ("--epsilon", "1", "--trials", "20", "--canaries", "4", "--quiet")
PAIR = ("--epsilon", "1", "--runs", "40", "--quiet")
RAISED = [
    "SystemExit(1)",
    "SystemExit(0)",
    "KeyboardInterrupt",
    "GeneratorExit",
    "asyncio.CancelledError",
    "BaseException('odd')",
]


def lidp(*arguments, first_on_path="", stdout=subprocess.PIPE):
    """Run the command as a program, and return its exit code and what it wrote to stderr."""
    path = os.pathsep.join([str(first_on_path), *sys.path, str(Path.cwd())])
    words = [sys.executable, "-m", "lidp", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(words, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def write(tmp_path):
    def write(before="", within="pass"):
        path = tmp_path / "mine.py"
        path.write_text(TARGET.format(before=before, within=within))
        return path

    return write


def in_process(capsys, *arguments):
    return run(list(map(str, arguments))), capsys.readouterr().err


@pytest.mark.parametrize("raised", RAISED)
def test_a_module_that_raises_exits_with_2(write, capsys, raised):
    path = write(before=f"raise {raised}")
    for command, name, options in (("audit", "target", AUDIT), ("audit-pair", "pair", PAIR)):
        code, complaint = in_process(capsys, command, f"{path}:{name}", *options)
        assert code == 2, complaint
        assert complaint.startswith("lidp: running ")
        assert complaint.count("\n") == 1


@pytest.mark.parametrize("raised", RAISED)
def test_a_mechanism_that_always_raises_exits_with_2(write, capsys, raised):
    path = write(within=f"raise {raised}")
    for command, name, options in (("audit", "target", AUDIT), ("audit-pair", "pair", PAIR)):
        code, complaint = in_process(capsys, command, f"{path}:{name}", *options)
        assert code == 2, complaint
        *traceback, last = complaint.splitlines()
        assert last.startswith("lidp: ")
        assert f"{path}:" in last
        assert not any(line.startswith("lidp: ") for line in traceback)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("before", "within", "expected"),
    [
        ("atexit.register(sys.exit, 1)", "pass", 0),
        ("atexit.register(os._exit, 1)", "pass", 0),
        ("", "os._exit(1)", 2),
        ("", "os._exit(0)", 2),
        ("os._exit(1)", "pass", 2),
        ("from os import _exit; _exit(1)", "pass", 2),
        ("sys.exit(1)", "pass", 2),
        ("sys.__stdout__.close()", "pass", 0),
        ("", "sys.__stdout__.close()", 0),
        ("sys.stdout.close()", "pass", 0),
        ("sys.stdout = sys.stderr = None", "pass", 0),
        ("os.closerange(0, 3)", "pass", 0),
        ("", "signal.raise_signal(signal.SIGINT)", 130),
        ("", "signal.raise_signal(signal.SIGTERM)", 130),
        ("signal.raise_signal(signal.SIGINT)", "pass", 130),
    ],
)
def test_whatever_a_target_does_to_its_process(write, before, within, expected):
    code, complaint = lidp("audit", f"{write(before, within)}:target", *AUDIT)
    assert code == expected, complaint
    assert "Traceback (most recent call last):\n  File" not in complaint.split("Exception ignored")[0]


def test_a_leak_that_is_refuted_exits_with_1_whoever_reads(tmp_path):
    words = ("audit", "tests.sample_targets:LEAKY", "--epsilon", "1", "--delta", "1e-5", "--trials", "60", "--quiet")
    assert lidp(*words)[0] == 1
    reader, writer = os.pipe()
    os.close(reader)  # nobody reads what it prints
    code, complaint = lidp(*words, stdout=writer)
    os.close(writer)
    assert (code, complaint) == (1, "")


LEAK = "audit tests.sample_targets:LEAKY --epsilon 1 --delta 1e-5 --trials 60 --quiet"
CLOSED = [">&-", "2>&-", "<&- >&- 2>&-"]
COMMANDS = [
    ("--help", 0),
    ("bound a.npz --delta 0 --json", 0),
    ("resume a.db --quiet", 0),
    (LEAK, 1),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with scores and a store."""
    folder = tmp_path_factory.mktemp("closed")
    audit = ["audit", "gaussian", "--epsilon", "1", "--delta", "1e-5", "--trials", "2", "--stop-when", "never", "--quiet"]
    assert run([*audit, "--store", str(folder / "a.db")]) == 0
    assert run(["simulate", "gaussian", "-o", str(folder / "a.npz"), "--trials", "4"]) == 0
    return folder


def in_shell(folder, arguments, redirection):
    """Run the command with redirected streams, and return its exit code and all that it printed."""
    path = os.pathsep.join([*sys.path, str(Path.cwd())])
    words = ["bash", "-c", f"{sys.executable} -m lidp {arguments} {redirection}"]
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.slow_after_first
@pytest.mark.parametrize(("arguments", "expected"), COMMANDS)
def test_closed_streams_do_not_change_the_exit_code(folder, arguments, expected):
    for redirection in CLOSED:
        code, printed = in_shell(folder, arguments, redirection)
        assert code == expected, (redirection, printed)
        assert "Traceback" not in printed
        assert "should not have happened" not in printed


@pytest.mark.slow_after_first
@pytest.mark.parametrize(("arguments", "expected"), COMMANDS)
def test_a_reader_that_has_gone_does_not_change_the_exit_code(folder, arguments, expected):
    reader, writer = os.pipe()
    os.close(reader)
    path = os.pathsep.join([*sys.path, str(Path.cwd())])
    done = subprocess.run(
        [sys.executable, "-m", "lidp", *arguments.split()], cwd=folder, env={**os.environ, "PYTHONPATH": path},
        stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writer)
    assert done.returncode == expected
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("arguments", ["--help", LEAK])
def test_a_result_that_cannot_be_written_exits_with_2(folder, arguments):
    assert in_shell(folder, arguments, ">/dev/full") == (2, "lidp: cannot write the result: No space left on device\n")


def test_a_page_is_written_though_nobody_reads_the_result(folder):
    assert in_shell(folder, f"{LEAK} --report page.html", ">/dev/full")[0] == 2
    assert "refuted" in (folder / "page.html").read_text()


def test_a_store_never_gets_the_descriptor_of_a_closed_stream(write, tmp_path):
    path = write(within="os.write(1, b'x' * 100)")
    code, printed = in_shell(tmp_path, f"audit {path}:target {' '.join(AUDIT)} --store b.db", "<&- >&- 2>&-")
    assert code == 0, printed
    assert run(["report", str(tmp_path / "b.db")]) == 0


def test_a_worker_that_exits_with_1_is_a_failed_run(write):
    path = write(within="os._exit(1) if rng.random() < 0.2 else None")
    code, complaint = lidp("audit", f"{path}:target", *AUDIT, "--workers", "2")
    assert code == 0, complaint


def test_an_unexpected_error_exits_with_2(capsys, monkeypatch):
    for error in (ZeroDivisionError("odd"), SystemExit(1), GeneratorExit(), BaseException("odd")):

        def fail(*_args, error=error, **_options):
            raise error

        monkeypatch.setattr("lidp.cli.bound.read_scores", fail)
        code, complaint = in_process(capsys, "bound", "a.npz", "--delta", "0")
        assert code == 2
        assert "should not have happened" in complaint


def test_an_installation_that_cannot_be_imported_exits_with_2(tmp_path):
    (tmp_path / "typer.py").write_text("raise ImportError('broken')")
    code, complaint = lidp("--version", first_on_path=tmp_path)
    assert code == 2
    assert complaint == "lidp: this should not have happened: ImportError: broken\n"
