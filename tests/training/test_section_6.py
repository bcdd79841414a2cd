"""The paper's Section 6: cells, tables and interpolation; a small run of it all where the data are."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from lidp.errors import InvalidArgument
from lidp.reproduce import reproduce
from lidp.reproduce.experiment import Scale
from lidp.reproduce.training_pairs import PURCHASES_MLP
from lidp.reproduce.training_runs import GRADIENT_PILOTS, Run, scores_of, train_cell
from lidp.reproduce.training_trials import PAPER_FACTORS, SECTION_6_TRIALS, bounds_table, factors, trials_to_reach

SCHEDULE = PURCHASES_MLP.schedules[Scale.SMOKE]


def run_of(step, canary="random-gradient", canaries=2):
    return Run("purchases-mlp", SCHEDULE, canary, 8.0, canaries, step)


@pytest.mark.parametrize("canary", ["random-gradient", "tail-example"])
def test_cells_are_parts_of_a_run(canary):
    """However the trials of a run are cut into cells, they are the same trials."""
    for step in ("measure", "flip"):
        whole = [row for cell in run_of(step, canary).cells(4, 4) for row in train_cell(cell)]
        parts = [row for cell in run_of(step, canary).cells(4, 1) for row in train_cell(cell)]
        for score in ("centred", "raw"):
            one, other = scores_of(whole, score), scores_of(list(reversed(parts)), score)
            for name, array in one.to_arrays().items():
                np.testing.assert_array_equal(array, other.to_arrays()[name])
        json.dumps(whole)


def test_steps_have_randomness_of_their_own():
    tune, measure = ([row for cell in run_of(step).cells(2, 2) for row in train_cell(cell)] for step in ("tune", "measure"))
    assert (scores_of(tune, "centred").arms()[0] != scores_of(measure, "centred").arms()[0]).all()


def test_a_table_counts_models_and_parts():
    rows = [row for step in ("tune", "measure", "flip") for cell in run_of(step).cells(4, 2) for row in train_cell(cell)]
    table = bounds_table(rows, (2, 4))
    found = {(row["method"], row["candidates"], row["trials"]): row for row in table if row["score"] == "centred"}
    assert found["2nd-order Wilson", "tail", 4]["models"] == 16 + GRADIENT_PILOTS
    assert found["2nd-order Wilson", "tail", 2]["repetitions"] == 2
    assert found["coin wager", "none", 4]["models"] == 4 + GRADIENT_PILOTS
    assert found["lifted betting", "none", 2]["models"] == 4 + GRADIENT_PILOTS
    raw = {(row["method"], row["trials"]): row for row in table if row["score"] == "raw" and row["candidates"] == "tail"}
    assert raw["2nd-order Wilson", 4]["models"] == 16  # raw scores of gradients need no pilots


def test_interpolation_by_hand():
    curve = [(100, 0.2), (200, 0.4), (400, 0.5)]
    assert trials_to_reach(curve, 0.3) == pytest.approx(150)
    assert trials_to_reach(curve, 0.45) == pytest.approx(300)
    assert trials_to_reach(curve, 0.6) == pytest.approx(600)  # drawn out beyond the last
    assert trials_to_reach(curve, 0.1) == pytest.approx(50)  # and before the first
    assert trials_to_reach([(100, 0.5), (200, 0.55)], 0.1) == 100  # but not to less than nothing
    assert trials_to_reach([(100, 0.5), (200, 0.4)], 0.6) is None
    assert trials_to_reach([(100, 0.5)], 0.6) is None


def test_factors_by_hand():
    def row(method, trials, epsilon, candidates="tail"):
        place = {"pair": "fmnist-linear", "canary": "random-gradient", "nominal_epsilon": 4.0, "score": "centred"}
        return place | {"candidates": candidates, "method": method, "trials": trials, "epsilon_hat": epsilon}

    table = [row("DP + Wilson", 500, 0.1), row("DP + Wilson", 1000, 0.3)]
    table += [row("2nd-order Wilson", 500, 0.6), row("2nd-order Wilson", 1000, 0.9)]
    found = {line["method"]: line for line in factors(table)}
    # the line through (500, .6) and (1000, .9) would reach .3 at 0 trials: as few as were tried
    assert found["2nd-order Wilson"]["factor"] == pytest.approx(2)
    assert found["2nd-order Wilson"]["paper"] == 3.34
    assert found["4th-order Wilson"]["factor"] == ""


def test_the_paper_s_table_is_complete():
    assert set(PAPER_FACTORS) == {
        (source.pair.name, canary) for source in SECTION_6_TRIALS for canary in ("tail-example", "random-gradient")
    }
    assert all(len(values) == 4 for orders in PAPER_FACTORS.values() for values in orders.values())
    # The paper's averages, 2.3 and 3.0, are said to be harmonic means of its table; they are geometric ones.
    for canary, stated in (("tail-example", 2.3), ("random-gradient", 3.0)):
        values = [x for (_, kind), orders in PAPER_FACTORS.items() if kind == canary for x in orders["2nd-order Wilson"]]
        assert np.exp(np.mean(np.log(values))) == pytest.approx(stated, abs=0.1)
        assert len(values) / sum(1 / x for x in values) < stated - 0.3


def test_time_that_is_too_short_is_said_and_what_is_done_is_kept(tmp_path, monkeypatch):
    now = 0.0

    def let_the_time_run_out(progress):
        nonlocal now
        if progress.done >= enough:
            now = 61.0

    enough = len(SECTION_6_TRIALS[0].cells(Scale.SMOKE, [])) // 2
    monkeypatch.setattr("lidp.reproduce.runner.time", SimpleNamespace(monotonic=lambda: now))
    found = reproduce("purchases-trials", scale="smoke", out=tmp_path, minutes=1, watch=let_the_time_run_out)
    assert 0 < found.left <= enough
    summary = json.loads((tmp_path / "purchases-trials" / "summary.json").read_text())
    assert summary["cells_left"] == found.left
    lines = (tmp_path / "purchases-trials" / "cells.jsonl").read_text().splitlines()
    assert len(lines) > enough


def test_scales_that_there_are_not(tmp_path):
    with pytest.raises(InvalidArgument, match="gaussian-trials has no scale reduced; it has smoke and paper"):
        reproduce("gaussian-trials", scale="reduced", out=tmp_path)
    with pytest.raises(InvalidArgument, match="minutes must be"):
        reproduce("purchases-trials", scale="smoke", out=tmp_path, minutes=0)


def test_the_papers_size_is_computed_by_stages():
    """So that what there was time for can be compared: all runs have 125 trials before one has 126."""
    experiment = SECTION_6_TRIALS[0]
    cells = experiment.cells(Scale.PAPER, [])
    assert len({cell.key for cell in cells}) == len(cells) == 2 * 4 * 5 * 1000 // 25
    stages = [np.searchsorted((125, 250, 500, 1000), cell.settings["first"], side="right") for cell in cells]
    assert stages == sorted(stages)
