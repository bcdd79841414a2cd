"""The paper's Section 6: runs are audits that can be stopped and resumed, tables count models, factors are interpolated."""

import itertools
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
from lidp.reproduce.training_runs import GRADIENT_PILOTS, Run, TrainedModels
from lidp.reproduce.training_schedules import SCHEDULES
from lidp.reproduce.training_trials import PAPER_FACTORS, bounds_table, factors, trials_to_reach
from lidp.store import Store
from lidp.trials.executors import Processes, Serial
from tests.reproduce.outputs import files_in
from tests.waiting import wait_until, wait_until_gone

ROOT = Path(__file__).parents[2]
SCHEDULE = SCHEDULES["purchases-mlp"][Scale.SMOKE]
TRAINED = "purchases-trials"
"""Needs no data files."""


def make_run(step, canary="random-gradient", canaries=2):
    return Run("purchases-mlp", SCHEDULE, canary, 8.0, canaries, step)


def arrays(finished):
    return {(kind, name): array for kind, scores in finished.scores.items() for name, array in scores.to_arrays().items()}


def two_runs(scale):
    return {make_run(step): 4 for step in ("measure", "flip")}


@pytest.mark.parametrize("canary", ["random-gradient", "tail-example"])
@pytest.mark.parametrize("step", ["measure", "flip"])
def test_run_gives_the_same_trials_with_one_and_two_workers_and_from_its_store(tmp_path, canary, step):
    run = make_run(step, canary)
    one = run.audit(tmp_path / "one", 4, Serial())
    two = run.audit(tmp_path / "two", 4, Processes(2))
    recalled = run.recall(tmp_path / "two")
    assert one.trials == 4
    for other in (two, recalled):
        assert other.accuracies == one.accuracies
        for name, array in arrays(one).items():
            np.testing.assert_array_equal(array, arrays(other)[name])


def test_raw_scores_are_those_of_an_audit_with_raw_scores(tmp_path):
    """Up to rounding to 32 bits."""
    from lidp.data import synthetic_purchases
    from lidp.training import Scoring, find_preset, training_target

    run = make_run("flip")
    finished = run.audit(tmp_path, 2, Serial())
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
    np.testing.assert_allclose(finished.scores["raw"].flips()[0], raw.flips()[0], rtol=1e-5)
    np.testing.assert_array_equal(finished.scores["raw"].flips()[1], raw.flips()[1])
    assert not np.allclose(finished.scores["centred"].flips()[0], raw.flips()[0], rtol=1e-2)


def test_steps_of_a_run_have_independent_randomness(tmp_path):
    tune, measure = (make_run(step).audit(tmp_path, 2, Serial()) for step in ("tune", "measure"))
    assert (tune.scores["centred"].arms()[0] != measure.scores["centred"].arms()[0]).all()


@pytest.mark.parametrize("workers", [1, 2])
def test_compute_brings_all_runs_to_a_stage_before_the_next(tmp_path, monkeypatch, workers):
    trials = []

    def record(run, *arguments, usual=Run.audit):
        finished = usual(run, *arguments)
        trials.append((run.step, finished.trials))
        return finished

    monkeypatch.setattr(Run, "audit", record)
    with Store.create(tmp_path / "cells.db", {}) as store:
        source = TrainedModels("two-stages", two_runs, stages={Scale.SMOKE: (3,)})
        rows, cells_left = source.compute(Session(Scale.SMOKE, store, workers))
    assert cells_left == 0
    assert trials == [("measure", 3), ("flip", 3), ("measure", 4), ("flip", 4)]
    for row in rows:
        whole = row.run.audit(tmp_path / "whole", 4, Serial())
        for name, array in arrays(whole).items():
            np.testing.assert_array_equal(arrays(row)[name], array)


def test_bounds_table_counts_models_and_repetitions(tmp_path):
    table = bounds_table([make_run(step).audit(tmp_path, 4, Serial()) for step in ("tune", "measure", "flip")], (2, 4))
    rows = {(row["method"], row["candidates"], row["trials"]): row for row in table if row["score"] == "centred"}
    assert rows["2nd-order Wilson", "tail", 4]["models"] == 16 + GRADIENT_PILOTS
    assert rows["2nd-order Wilson", "tail", 2]["repetitions"] == 2
    assert rows["coin wager", "none", 4]["models"] == 4 + GRADIENT_PILOTS
    assert rows["lifted betting", "none", 2]["models"] == 4 + GRADIENT_PILOTS
    raw = {(row["method"], row["trials"]): row for row in table if row["score"] == "raw" and row["candidates"] == "tail"}
    assert raw["2nd-order Wilson", 4]["models"] == 16  # raw scores of gradients need no pilots


def test_trials_to_reach_interpolates_and_extrapolates():
    curve = [(100, 0.2), (200, 0.4), (400, 0.5)]
    assert trials_to_reach(curve, 0.3) == pytest.approx(150)
    assert trials_to_reach(curve, 0.45) == pytest.approx(300)
    assert trials_to_reach(curve, 0.6) == pytest.approx(600)  # beyond the last point
    assert trials_to_reach(curve, 0.1) == pytest.approx(50)  # before the first point
    assert trials_to_reach([(100, 0.5), (200, 0.55)], 0.1) == 100  # but not below one trial
    assert trials_to_reach([(100, 0.5), (200, 0.4)], 0.6) is None
    assert trials_to_reach([(100, 0.5)], 0.6) is None


def test_factors_by_hand():
    def row(method, trials, epsilon, candidates="tail"):
        settings = {"pair": "fmnist-linear", "canary": "random-gradient", "nominal_epsilon": 4.0, "score": "centred"}
        return settings | {"candidates": candidates, "method": method, "trials": trials, "epsilon_hat": epsilon}

    table = [row("DP + Wilson", 500, 0.1), row("DP + Wilson", 1000, 0.3)]
    table += [row("2nd-order Wilson", 500, 0.6), row("2nd-order Wilson", 1000, 0.9)]
    by_method = {line["method"]: line for line in factors(table)}
    # The line through (500, .6) and (1000, .9) would reach .3 at 0 trials: the smallest number tried counts.
    assert by_method["2nd-order Wilson"]["factor"] == pytest.approx(2)
    assert by_method["2nd-order Wilson"]["paper"] == 3.34
    assert by_method["4th-order Wilson"]["factor"] == ""


def test_paper_factors_are_complete_and_have_the_stated_means():
    assert set(PAPER_FACTORS) == set(itertools.product(SCHEDULES, ("tail-example", "random-gradient")))
    assert all(len(values) == 4 for orders in PAPER_FACTORS.values() for values in orders.values())
    # The paper calls its averages, 2.3 and 3.0, harmonic means of its table; they are geometric ones.
    for canary, stated in (("tail-example", 2.3), ("random-gradient", 3.0)):
        values = [x for (_, kind), orders in PAPER_FACTORS.items() if kind == canary for x in orders["2nd-order Wilson"]]
        assert np.exp(np.mean(np.log(values))) == pytest.approx(stated, abs=0.1)
        assert len(values) / sum(1 / x for x in values) < stated - 0.3


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


def test_stages_at_the_papers_size_are_the_papers_numbers_of_trials():
    """All runs have 125 trials before one has 126, so that runs which the deadline cut short can be compared."""
    (source,) = EXPERIMENTS["fmnist-trials"].sources
    assert source.stages[Scale.PAPER] == (125, 250, 500)
    runs = source.runs(Scale.PAPER)
    assert len(runs) == 2 * 4 * 5
    assert set(runs.values()) == {1000}
    assert len({run.file_name for run in runs}) == len(runs)
