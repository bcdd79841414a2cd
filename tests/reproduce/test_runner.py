"""``lidp reproduce``: what it writes, what it keeps, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lidp import InvalidArgument
from lidp.cli.app import run
from lidp.errors import InvalidData, StoreError
from lidp.reproduce import EXPERIMENTS, reproduce
from lidp.reproduce.experiment import key_of
from lidp.store import Store
from tests.reproduce.outputs import files_in
from tests.waiting import PATIENCE, wait_until, wait_until_gone

ROOT = Path(__file__).parents[2]
QUICK = "gaussian-dimension"


def lidp(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def keys_of_cells():
    return [key_of(cell) for cell in EXPERIMENTS[QUICK].sources[0].cells("smoke")]


def finished_cells(path):
    """Return the number of finished cells in a store that another process may be writing."""
    if not path.exists():
        return 0
    with Store.read(path) as store:
        return sum(store.fact(key) is not None for key in keys_of_cells())


def test_reproduce_writes_table_figure_and_summary(tmp_path, capsys):
    code, out, _ = lidp(capsys, "reproduce", "binomial-intervals", "--out", tmp_path, "--quiet")
    assert code == 0
    assert out.startswith("binomial-intervals (smoke) -> ")
    written = files_in(tmp_path / "binomial-intervals")
    assert sorted(written) == ["binomial-intervals.csv", "binomial-intervals.svg", "summary.json"]
    assert b"<svg" in written["binomial-intervals.svg"]
    summary = json.loads(written["summary.json"])
    assert summary["scale"] == "smoke"
    assert {"statement", "paper", "ours", "tolerance", "holds"} <= set(summary["findings"][0])
    assert all(finding["holds"] is None for finding in summary["findings"])  # too small to judge


@pytest.mark.slow
def test_reproduce_gives_the_same_files_for_any_number_of_workers(tmp_path):
    one = reproduce(QUICK, out=tmp_path / "one", workers=1)
    two = reproduce(QUICK, out=tmp_path / "two", workers=2)
    assert files_in(one.folder) == files_in(two.folder)
    from_store = reproduce(QUICK, out=tmp_path / "two", workers=1)
    assert files_in(from_store.folder) == files_in(one.folder)


def test_reproduce_resumes_after_sigkill_without_computing_finished_cells_again(tmp_path, monkeypatch):
    whole = reproduce(QUICK, out=tmp_path / "whole")
    command = [sys.executable, "-m", "lidp", "reproduce", QUICK, "--out", str(tmp_path / "a"), "--quiet"]
    cells = tmp_path / "a" / QUICK / "cells.db"
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    wait_until(lambda: finished_cells(cells) >= 4, "some cells are kept")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until_gone(str(tmp_path / "a"))
    kept = finished_cells(cells)
    assert kept >= 4
    written = []
    monkeypatch.setattr(
        Store, "keep_fact", lambda self, *fact, usual=Store.keep_fact: (written.append(fact), usual(self, *fact))
    )
    resumed = reproduce(QUICK, out=tmp_path / "a")
    assert files_in(resumed.folder) == files_in(whole.folder)
    assert len({key for key, _ in written}) == len(written) == len(keys_of_cells()) - kept


INTERRUPTED = """
import os, signal
from lidp.cli import main
from lidp.store import Store

def keep_fact(self, name, value, usual=Store.keep_fact):
    usual(self, name, value)
    os.kill(os.getpid(), signal.SIGTERM)

Store.keep_fact = keep_fact
main()
"""


@pytest.mark.slow
def test_reproduce_exits_130_on_sigterm_and_resumes(tmp_path):
    """The process sends the signal to itself after its first cell: from outside it might come too late."""
    command = [sys.executable, "-c", INTERRUPTED, "reproduce", QUICK, "--out", str(tmp_path), "--quiet"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    _, message = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert message.strip().endswith("lidp: interrupted; the same command resumes")
    wait_until_gone(str(tmp_path))
    resumed = reproduce(QUICK, out=tmp_path)
    assert files_in(resumed.folder) == files_in(reproduce(QUICK, out=tmp_path / "whole").folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-figure"], "there is no experiment 'no-such-figure'"),
        ([QUICK, "all"], "there is no experiment 'all'"),
        ([QUICK, "--scale", "huge"], "scale must be one of smoke, reduced, paper, got 'huge'"),
        ([QUICK, "--workers", "0"], "workers must be a whole number of at least 1, got 0"),
        ([QUICK, "--minutes", "0"], "minutes must be"),
        ([QUICK, "--out", "{file}"], "cannot be written to"),
        ([QUICK, "--out", "/proc/nowhere"], "cannot be written to"),
        ([], "Missing argument"),
    ],
)
def test_reproduce_exits_2_with_one_line_on_bad_arguments(capsys, tmp_path, arguments, message):
    file = tmp_path / "file"
    file.touch()
    code, out, err = lidp(capsys, "reproduce", *(str(argument).format(file=file) for argument in arguments))
    assert code == 2
    assert not out
    assert message in err
    assert err.count("\n") == 1


def test_reproduce_refuses_a_scale_that_the_experiment_does_not_have(tmp_path):
    with pytest.raises(InvalidArgument, match="gaussian-trials has no scale reduced; it has smoke and paper"):
        reproduce("gaussian-trials", scale="reduced", out=tmp_path)


def test_reproduce_asks_for_matplotlib_before_it_computes_anything(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InvalidArgument, match="plotting needs matplotlib; install lidp"):
        reproduce("binomial-intervals", out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_reproduce_refuses_a_folder_of_another_scale(tmp_path):
    reproduce("binomial-intervals", out=tmp_path)
    with pytest.raises(InvalidArgument, match="cells of another scale; choose another folder"):
        reproduce("binomial-intervals", out=tmp_path, scale="paper")


def test_reproduce_refuses_a_folder_of_other_code(tmp_path, monkeypatch):
    reproduce("binomial-intervals", out=tmp_path)
    monkeypatch.setattr("lidp.reproduce.runner.digest_code", lambda sources: "changed")
    with pytest.raises(InvalidArgument, match="cells of another code"):
        reproduce("binomial-intervals", out=tmp_path)


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b"\xff\xfe\n", b'{"experiment": 1}\n'])
def test_reproduce_refuses_cells_that_it_cannot_read(tmp_path, content):
    (tmp_path / "binomial-intervals").mkdir()
    (tmp_path / "binomial-intervals" / "cells.db").write_bytes(content)
    with pytest.raises(StoreError, match="not a store"):
        reproduce("binomial-intervals", out=tmp_path)


def test_reproduce_refuses_a_folder_that_another_run_writes_to(tmp_path):
    reproduce("binomial-intervals", out=tmp_path)
    with (
        Store.open(tmp_path / "binomial-intervals" / "cells.db"),
        pytest.raises(StoreError, match="is being written to by another"),
    ):
        reproduce("binomial-intervals", out=tmp_path)
    reproduce("binomial-intervals", out=tmp_path)


def test_reproduce_list_shows_all_experiments(capsys):
    code, out, _ = lidp(capsys, "reproduce", "LIST")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(EXPERIMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_at_scale_smoke(name, tmp_path):
    try:
        result = reproduce(name, out=tmp_path)
    except InvalidData as error:
        if name.startswith("cifar10") and "npm pack" in str(error):
            pytest.skip(str(error))
        raise
    assert result.findings
    assert all(finding.ours is None or np.isfinite(finding.ours) for finding in result.findings)
    assert len(files_in(result.folder)) == 3
