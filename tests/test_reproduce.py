"""``lidp reproduce``: the same whoever runs it, nothing lost, and its numbers those of the library."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lidp import FixedThreshold, InvalidArgument, LeaveOneOut, Wilson
from lidp.cli.app import run
from lidp.mechanisms.gaussian import simulate_gaussian
from lidp.reproduce import EXPERIMENTS, reproduce, setting
from lidp.reproduce.experiment import Cell, Finding
from lidp.reproduce.gaussian_correlation import slope
from lidp.reproduce.models_needed import WAYS, models_to_reach
from lidp.reproduce.sweeps import models_spent
from tests.waiting import PATIENCE, wait_until, wait_until_gone

ROOT = Path(__file__).parent.parent
QUICK = "gaussian-dimension"


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.name != "cells.jsonl"}


def lidp(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def test_what_is_written(tmp_path, capsys):
    code, out, _ = lidp(capsys, "reproduce", "binomial-intervals", "--out", tmp_path, "--quiet")
    assert code == 0
    assert out.startswith("binomial-intervals (smoke) -> ")
    written = files(tmp_path / "binomial-intervals")
    assert sorted(written) == ["binomial-intervals.csv", "binomial-intervals.png", "binomial-intervals.svg", "summary.json"]
    assert written["binomial-intervals.png"].startswith(b"\x89PNG")
    assert b"<svg" in written["binomial-intervals.svg"]
    summary = json.loads(written["summary.json"])
    assert summary["scale"] == "smoke"
    assert {"statement", "paper", "ours", "tolerance", "holds"} <= set(summary["findings"][0])
    assert all(finding["holds"] is None for finding in summary["findings"])  # too small to judge


def test_the_same_for_any_number_of_workers(tmp_path):
    one = reproduce(QUICK, out=tmp_path / "one", workers=1)
    two = reproduce(QUICK, out=tmp_path / "two", workers=2)
    assert files(one.folder) == files(two.folder)
    again = reproduce(QUICK, out=tmp_path / "two", workers=1)  # from the kept cells
    assert files(again.folder) == files(one.folder)


def test_killed_and_gone_on_with(tmp_path):
    """The last line of the kept cells may be cut short; what is whole is kept, what is not is computed again."""
    whole = reproduce(QUICK, out=tmp_path / "whole")
    command = [sys.executable, "-m", "lidp", "reproduce", QUICK, "--out", str(tmp_path / "a"), "--quiet"]
    cells = tmp_path / "a" / QUICK / "cells.jsonl"
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    wait_until(lambda: cells.exists() and cells.read_text().count("\n") >= 4, "some cells are kept")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until_gone(str(tmp_path / "a"))
    kept = cells.read_text().rpartition("\n")[0] + "\n"
    assert kept.count("\n") >= 4
    cells.write_text(kept + '{"cell": "{\\"step\\": ')
    resumed = reproduce(QUICK, out=tmp_path / "a")
    assert files(resumed.folder) == files(whole.folder)
    assert cells.read_text().startswith(kept)


INTERRUPTED = """
import os, signal, sys
from lidp.cli import main
from lidp.reproduce.kept_cells import KeptCells

def add(self, cell, rows, usual=KeptCells.add):
    usual(self, cell, rows)
    os.kill(os.getpid(), signal.SIGTERM)

KeptCells.add = add
main()
"""


def test_interrupted(tmp_path):
    """After the first cell, by a signal that the process sends to itself: from outside it might come too late."""
    command = [sys.executable, "-c", INTERRUPTED, "reproduce", QUICK, "--out", str(tmp_path), "--quiet"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert complaint.strip().endswith("lidp: interrupted; the same command goes on where it stopped")
    wait_until_gone(str(tmp_path))
    resumed = reproduce(QUICK, out=tmp_path)
    assert files(resumed.folder) == files(reproduce(QUICK, out=tmp_path / "whole").folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-figure"], "there is no experiment 'no-such-figure'"),
        ([QUICK, "all"], "there is no experiment 'all'"),
        ([QUICK, "--scale", "huge"], "scale must be one of smoke, reduced, paper, got 'huge'"),
        ([QUICK, "--workers", "0"], "workers must be a whole number of at least 1, got 0"),
        ([QUICK, "--out", "{file}"], "cannot be written to"),
        ([QUICK, "--out", "/proc/nowhere"], "cannot be written to"),
        ([], "Missing argument"),
    ],
)
def test_bad_arguments(capsys, tmp_path, arguments, message):
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    code, out, err = lidp(capsys, "reproduce", *(str(a).format(file=in_the_way) for a in arguments))
    assert code == 2
    assert not out
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dimension", "0"], "dimension must be"),
        (["--canaries", "0"], "canaries must be"),
        (["--sigma", "-1"], "sigma must be"),
        (["--out", "/proc/nowhere/x.npz"], "/proc/nowhere"),
    ],
)
def test_bad_arguments_of_simulate(capsys, tmp_path, arguments, message):
    code, _, err = lidp(capsys, "simulate", "gaussian", "--out", tmp_path / "x.npz", *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_another_scale_needs_another_folder(tmp_path):
    reproduce("binomial-intervals", out=tmp_path)
    with pytest.raises(InvalidArgument, match="cells of another scale; choose another folder"):
        reproduce("binomial-intervals", out=tmp_path, scale="paper")


@pytest.mark.parametrize("content", [b"nonsense\n", b"\xff\xfe\n", b"[1]\n", b'{"experiment": 1}\n{"x": 1}\n'])
def test_cells_that_cannot_be_read(tmp_path, content):
    (tmp_path / "binomial-intervals").mkdir()
    (tmp_path / "binomial-intervals" / "cells.jsonl").write_bytes(content)
    with pytest.raises(InvalidArgument, match="delete it"):
        reproduce("binomial-intervals", out=tmp_path)


@pytest.mark.parametrize("content", [b"", b'{"experiment": "binom'], ids=["empty", "header cut short"])
def test_cells_that_were_just_begun(tmp_path, content):
    (tmp_path / "binomial-intervals").mkdir()
    (tmp_path / "binomial-intervals" / "cells.jsonl").write_bytes(content)
    begun = reproduce("binomial-intervals", out=tmp_path)
    assert files(begun.folder) == files(reproduce("binomial-intervals", out=tmp_path / "new").folder)


def test_cells_of_other_code_are_not_mixed_in(tmp_path, monkeypatch):
    reproduce("binomial-intervals", out=tmp_path)
    monkeypatch.setattr("lidp.reproduce.kept_cells.source_digest", lambda sources: "changed")
    with pytest.raises(InvalidArgument, match="cells of another source"):
        reproduce("binomial-intervals", out=tmp_path)


def test_two_runs_do_not_share_a_folder(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    reproduce("binomial-intervals", out=tmp_path)
    with (tmp_path / "binomial-intervals" / "cells.jsonl").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InvalidArgument, match="being written to by another run"):
            reproduce("binomial-intervals", out=tmp_path)
    reproduce("binomial-intervals", out=tmp_path)


def test_the_list(capsys):
    code, out, _ = lidp(capsys, "reproduce", "LIST")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(EXPERIMENTS)


def test_tuning_and_measuring_are_what_the_methods_do():
    """On the same scores, every row equals the library's own bound at the tuned threshold."""
    design = LeaveOneOut(8, 8)
    sigma = setting.noise(4.0)
    tuned = setting.tune(simulate_gaussian(design, trials=500, sigma=sigma, dimension=300, seed=1))
    fresh = simulate_gaussian(design, trials=500, sigma=sigma, dimension=300, seed=2)
    measured = setting.measure(fresh, tuned)
    assert len(measured) == len(tuned) == 2 * 4
    for row in measured:
        (threshold,) = [
            t["threshold"] for t in tuned if (t["method"], t["candidates"]) == (row["method"], row["candidates"])
        ]
        method = setting.WILSONS[row["method"]]
        method = Wilson(
            method.order, as_printed=method.as_printed, threshold=FixedThreshold(threshold), direction="forward"
        )
        expected = method.bound(fresh, delta=setting.DELTA, failure_probability=setting.BETA)
        assert row["epsilon"] == pytest.approx(expected.epsilon, abs=1e-12)


def test_a_cell_is_its_settings():
    a, b = Cell({"x": 1, "y": 2}), Cell({"y": 2, "x": 1})
    assert (a.key, a.seed) == (b.key, b.seed)
    assert a.seed != Cell({"x": 1, "y": 3}).seed
    given = Cell({"x": 1, "y": 2}, given=[{"threshold": 0.1}])
    assert given.key != a.key
    assert given.seed == a.seed  # the last bit of what it is given does not change its random numbers


def test_findings():
    assert Finding("", 0.68, 0.67, tolerance=0.03).holds is True
    assert Finding("", 0.71, 0.67, tolerance=0.03).holds is False
    assert Finding("", 0.71, 0.67).holds is None
    assert Finding("", 5, at_least=4, at_most=6).holds is True
    assert Finding("", 5, at_least=6).holds is False
    assert Finding("", None).holds is None
    assert Finding.missing("", "not there").holds is False


def test_models_are_counted():
    """Two models a leave-one-out trial, one a coin-flip trial, and as many trials again to tune thresholds."""
    assert models_spent("2nd-order Wilson", 100) == 400
    assert models_spent("DP + Wilson", 100) == 400
    assert models_spent("lifted betting", 100) == 200
    assert models_spent("coin wager", 100) == 100
    way = WAYS["many canaries"]
    assert way.design(2048).canaries == 32  # √n of the half that is not for tuning
    rows = EXPERIMENTS["models-needed"].run(Cell({"way": "many canaries", "trials": 512, "repetition": 0}))
    assert {row["models"] for row in rows} == {1024}
    rows = EXPERIMENTS["models-needed"].run(Cell({"way": "coin wager", "trials": 64, "repetition": 0}))
    assert [row["models"] for row in rows] == [4, 6, 8, 11, 16, 23, 32, 45, 64]
    assert [row["epsilon"] for row in rows] == sorted(row["epsilon"] for row in rows)


def test_models_to_reach():
    curve = {100: 0.2, 400: 0.6, 1600: 1.0}
    assert models_to_reach(curve, 0.4) == 200
    assert models_to_reach(curve, 0.8) == 800
    assert models_to_reach(curve, 0.6) == 400
    assert models_to_reach(curve, 1.1) is None
    assert models_to_reach(curve, 0.1) == 100  # at most: reached before the curve begins


def test_slopes():
    def row(axis, arm, value, mean, error):
        place = {"axis": axis, "arm": arm, "nominal_epsilon": 2.0, axis: value}
        return place | {"second_mean": mean, "second_size": abs(mean), "second_error": error}

    table = [row("dimension", "held out", d, 3 / d, 5e-5) for d in (100, 1000, 10_000, 100_000)]
    assert slope(table, "dimension", "second", 2.0) == pytest.approx(-1.0)  # the last is noise, and left out
    assert slope(table[:2], "dimension", "second", 2.0) is None
    table = [row("canaries", "inserted", k, 5 / k**0.5, 1.0) for k in (4, 16, 64)]
    assert slope(table, "canaries", "second", 2.0) == pytest.approx(-0.5)


def test_binomial_widths_by_hand(tmp_path):
    """At n = 10 by summing over all outcomes in plain Python."""
    from scipy import stats

    reproduce("binomial-intervals", out=tmp_path)
    with (tmp_path / "binomial-intervals" / "binomial-intervals.csv").open() as file:
        rows = {(row["interval"], int(row["trials"])): row for row in csv.DictReader(file)}
    lower = upper = 0.0
    for m in range(11):
        chance = math.comb(10, m) * 0.1**m * 0.9 ** (10 - m)
        interval = stats.binomtest(m, 10).proportion_ci(0.95, method="exact")
        lower += chance * interval.low
        upper += chance * interval.high
    found = rows["Clopper-Pearson", 10]
    assert float(found["below"]) == pytest.approx(0.1 - lower, rel=1e-5)
    assert float(found["above"]) == pytest.approx(upper - 0.1, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs(name, tmp_path):
    found = reproduce(name, out=tmp_path)
    assert found.findings
    assert all(finding.ours is None or np.isfinite(finding.ours) for finding in found.findings)
    assert len(files(found.folder)) == 4
