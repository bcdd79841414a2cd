"""Runs are audits of trained models that can be stopped and resumed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import lidp
from lidp.reproduce import EXPERIMENTS, reproduce
from lidp.reproduce.experiment import Scale, Session
from lidp.reproduce.tables import select
from lidp.reproduce.training_runs import Run, TrainedModels
from lidp.store import Store
from lidp.trials.executors import Executor, Processes, Serial
from tests.reproduce.outputs import files_in
from tests.reproduce.small_runs import SCHEDULE, make_run
from tests.waiting import wait_until, wait_until_gone

ROOT = Path(__file__).parents[2]
TRAINED = "purchases-trials"
"""Needs no data files."""


class RunsNothing(Executor):
    def run(self, setup, indices):
        return iter(())


def scores_of(rows):
    """Return the scores of a run by kind."""
    return {row["score"]: row["scores"] for row in rows}


def arrays(rows):
    return {(kind, name): array for kind, scores in scores_of(rows).items() for name, array in scores.to_arrays().items()}


def two_runs(scale):
    return {make_run(step): 4 for step in ("measure", "flip")}


@pytest.mark.parametrize("canary", ["random-gradient", "tail-example"])
@pytest.mark.parametrize("step", ["measure", "flip"])
def test_run_gives_the_same_trials_with_one_and_two_workers_and_from_its_store(tmp_path, canary, step):
    run = make_run(step, canary)
    one = run.audit(tmp_path / "one", 4, Serial())
    two = run.audit(tmp_path / "two", 4, Processes(2))
    recalled = run.recall(tmp_path / "two")
    assert [row["scores"].trials for row in one] == [4, 4]
    assert [len(row["accuracies"]) for row in one] == [4, 4]
    for other in (two, recalled):
        assert [row["accuracies"] for row in other] == [row["accuracies"] for row in one]
        for name, array in arrays(one).items():
            np.testing.assert_array_equal(array, arrays(other)[name])


@pytest.mark.slow
def test_raw_scores_are_those_of_an_audit_with_raw_scores(tmp_path):
    """Up to rounding to 32 bits."""
    from lidp.data import synthetic_purchases
    from lidp.training import Scoring, find_preset, training_target

    run = make_run("flip")
    finished = scores_of(run.audit(tmp_path, 2, Serial()))
    claim = lidp.Claim(epsilon=8.0, delta=1e-5)
    preset = find_preset(SCHEDULE.preset)
    target = training_target(
        synthetic_purchases(classes=SCHEDULE.classes).first(SCHEDULE.records),
        claim,
        training=preset.training(epochs=SCHEDULE.epochs, learning_rate=SCHEDULE.learning_rate, accountant="rdp"),
        canary=run.canary,
        canaries=run.canaries,
        scores=Scoring.RAW,
    ).target
    raw = lidp.audit(target, claim=claim, design=run.design, trials=2, seed=run.audit_seed, stop_when="never").scores
    np.testing.assert_allclose(finished["raw"].flips()[0], raw.flips()[0], rtol=1e-5)
    np.testing.assert_array_equal(finished["raw"].flips()[1], raw.flips()[1])
    assert not np.allclose(finished["centred"].flips()[0], raw.flips()[0], rtol=1e-2)


def test_steps_of_a_run_have_independent_randomness(tmp_path):
    tune, measure = (scores_of(make_run(step).audit(tmp_path, 2, Serial())) for step in ("tune", "measure"))
    assert (tune["centred"].arms()[0] != measure["centred"].arms()[0]).all()


def test_recall_returns_no_rows_without_a_finished_trial(tmp_path):
    run = make_run("flip")
    assert run.recall(tmp_path) == []
    with pytest.raises(lidp.AuditFailed):
        run.audit(tmp_path, 4, RunsNothing())
    assert (tmp_path / run.file_name).exists()
    assert run.recall(tmp_path) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_compute_brings_all_runs_to_a_stage_before_the_next(tmp_path, monkeypatch, workers):
    trials = []

    def record(run, *arguments, usual=Run.audit):
        rows = usual(run, *arguments)
        trials.append((run.step, rows[0]["scores"].trials))
        return rows

    monkeypatch.setattr(Run, "audit", record)
    monkeypatch.setattr("lidp.reproduce.training_runs.STAGES", (3,))
    with Store.create(tmp_path / "cells.db", {}) as store:
        source = TrainedModels("two-stages", two_runs)
        rows, cells_left = source.compute(Session(Scale.SMOKE, store, workers))
    assert cells_left == 0
    assert trials == [("measure", 3), ("flip", 3), ("measure", 4), ("flip", 4)]
    for run in two_runs(Scale.SMOKE):
        whole, staged = run.audit(tmp_path / "whole", 4, Serial()), select(rows, step=run.step)
        for name, array in arrays(whole).items():
            np.testing.assert_array_equal(arrays(staged)[name], array)


@pytest.mark.slow
def test_reproduce_keeps_finished_trials_when_the_deadline_passes(tmp_path, monkeypatch):
    now = 0.0

    def pass_the_deadline(progress):
        nonlocal now
        if progress.done >= enough:
            now = 61.0

    planned = sum(EXPERIMENTS[TRAINED].sources[0].runs(Scale.SMOKE).values())
    enough = planned // 2
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("lidp.reproduce.runner.time", clock)
    monkeypatch.setattr("lidp.reproduce.experiment.time", clock)
    result = reproduce(TRAINED, scale="smoke", out=tmp_path, minutes=1, watch=pass_the_deadline)
    assert 0 < result.cells_left <= planned - enough
    summary = json.loads((tmp_path / TRAINED / "summary.json").read_text())
    assert summary["cells_left"] == result.cells_left
    stored = [lidp.result_of(path).scores.trials for path in (tmp_path / TRAINED / "runs").glob("*.db")]
    assert sum(stored) == planned - result.cells_left
    now = 0.0
    assert reproduce(TRAINED, scale="smoke", out=tmp_path).cells_left == 0


@pytest.mark.slow
def test_reproduce_resumes_trained_models_after_sigkill_with_another_number_of_workers(tmp_path):
    whole = reproduce(TRAINED, out=tmp_path / "whole")
    command = [
        sys.executable,
        "-m",
        "lidp",
        "reproduce",
        TRAINED,
        "--out",
        str(tmp_path / "a"),
        "--workers",
        "2",
        "--quiet",
    ]
    runs = tmp_path / "a" / TRAINED / "runs"
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    wait_until(lambda: len(list(runs.glob("*.db"))) >= 4, "some runs have a store")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until_gone(str(tmp_path / "a"))
    assert len(list(runs.glob("*.db"))) < 20
    resumed = reproduce(TRAINED, out=tmp_path / "a")
    assert files_in(resumed.folder) == files_in(whole.folder)
