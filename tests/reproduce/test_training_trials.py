"""Tables of trained models count models and repetitions; the factors of Table 1 are interpolated."""

import itertools

import numpy as np
import pytest

from lidp.reproduce import EXPERIMENTS
from lidp.reproduce.experiment import Scale
from lidp.reproduce.training_runs import GRADIENT_PILOTS, STAGES
from lidp.reproduce.training_schedules import SCHEDULES
from lidp.reproduce.training_trials import PAPER_FACTORS, bounds_table, factors, trials_to_reach
from lidp.trials.executors import Serial
from tests.reproduce.small_runs import make_run


def test_bounds_table_counts_models_and_repetitions(tmp_path):
    steps = [make_run(step).audit(tmp_path, 4, Serial()) for step in ("tune", "measure", "flip")]
    table = bounds_table([row for rows in steps for row in rows], (2, 4))
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
    pairs = ("fmnist-linear", "fmnist-mlp", "purchases-mlp")
    assert set(PAPER_FACTORS) == set(itertools.product((*pairs, "journey-mlp"), ("tail-example", "random-gradient")))
    assert {pair for pair, _ in PAPER_FACTORS} <= set(SCHEDULES)
    assert all(len(values) == 4 for orders in PAPER_FACTORS.values() for values in orders.values())
    # The paper calls its averages, 2.3 and 3.0, harmonic means of its table; they are geometric ones.
    for canary, stated in (("tail-example", 2.3), ("random-gradient", 3.0)):
        values = [x for pair in pairs for x in PAPER_FACTORS[pair, canary]["2nd-order Wilson"]]
        assert np.exp(np.mean(np.log(values))) == pytest.approx(stated, abs=0.1)
        assert len(values) / sum(1 / x for x in values) < stated - 0.3


def test_stages_at_the_papers_size_are_the_papers_numbers_of_trials():
    """All runs have 125 trials before one has 126, so that runs which the deadline cut short can be compared."""
    (source,) = EXPERIMENTS["fmnist-trials"].sources
    assert STAGES == (125, 250, 500)
    runs = source.runs(Scale.PAPER)
    assert len(runs) == 2 * 4 * 5
    assert set(runs.values()) == {1000}
    assert len({run.file_name for run in runs}) == len(runs)
