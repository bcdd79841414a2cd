"""The simulated experiments: their numbers are those of the library's methods."""

import csv
import math
from dataclasses import replace

import pytest

from lidp import Direction, FixedThreshold, LeaveOneOut, Scores, SplitThreshold
from lidp.mechanisms.gaussian import simulate_gaussian
from lidp.reproduce import EXPERIMENTS, reproduce, setting
from lidp.reproduce.correlation import slope
from lidp.reproduce.experiment import Finding, Scale, seed_of
from lidp.reproduce.models_needed import WAYS, models_to_reach, run_way
from lidp.reproduce.simulation import key_of
from lidp.reproduce.tables import group, select


def test_tune_and_measure_agree_with_the_method_at_the_tuned_threshold():
    design, sigma = LeaveOneOut(8, 8), setting.noise(4.0)
    tuned = setting.tune(simulate_gaussian(design, trials=500, sigma=sigma, dimension=300, seed=1))
    fresh = simulate_gaussian(design, trials=500, sigma=sigma, dimension=300, seed=2)
    measured = setting.measure(fresh, tuned)
    assert len(measured) == len(tuned) == 2 * 4
    for row, choice in zip(measured, tuned, strict=True):
        assert (row["method"], row["candidates"]) == (choice["method"], choice["candidates"])
        method = replace(
            setting.WILSONS[row["method"]], threshold=FixedThreshold(choice["threshold"]), direction=Direction.FORWARD
        )
        expected = method.bound(fresh, delta=setting.DELTA, failure_probability=setting.BETA)
        assert row["epsilon"] == pytest.approx(expected.epsilon, abs=1e-12)


@pytest.mark.parametrize("candidates", setting.CANDIDATES)
def test_tune_chooses_the_threshold_that_the_method_would_choose(candidates):
    design, sigma = LeaveOneOut(8, 8), setting.noise(4.0)
    tuning, fresh = (simulate_gaussian(design, trials=500, sigma=sigma, dimension=300, seed=seed) for seed in (1, 2))
    threshold = SplitThreshold(0.5, setting.CANDIDATES[candidates])
    for row in select(setting.tune(tuning), candidates=candidates):
        method = replace(setting.WILSONS[row["method"]], threshold=threshold, direction=Direction.FORWARD)
        bound = method.bound(Scores.join([tuning, fresh]), delta=setting.DELTA, failure_probability=setting.BETA)
        assert bound.thresholds["forward"] == row["threshold"]


def test_tune_leaves_out_orders_above_the_number_of_canaries():
    sigma = setting.noise(4.0)
    for canaries, orders in ((1, 1), (2, 2), (4, 4)):
        design = LeaveOneOut(canaries, canaries)
        tuned = setting.tune(simulate_gaussian(design, trials=50, sigma=sigma, dimension=300, seed=1))
        assert {row["method"] for row in tuned} == set(list(setting.WILSONS)[:orders])


def test_cells_with_equal_settings_have_the_same_key_and_seed():
    a, b = {"x": 1, "y": 2}, {"y": 2, "x": 1}
    assert (key_of(a), seed_of(a)) == (key_of(b), seed_of(b))
    assert seed_of(a) != seed_of({"x": 1, "y": 3})
    assert key_of(a) != key_of({"x": 1, "y": 3})


def test_sweeps_measure_every_repetition_once_with_thresholds_tuned_in_turn():
    for name in ("gaussian-trials", "gaussian-canaries", "gaussian-dimension"):
        (source,) = EXPERIMENTS[name].sources
        for (_, canaries, _), cells in group(source.cells(Scale.PAPER), "trials", "canaries", "dimension").items():
            tunings, repetitions = (80, 400) if canaries == 1 else (5, 25)
            assert [cell["tuning"] for cell in cells] == list(range(tunings))
            assert all(r % tunings == cell["tuning"] for cell in cells for r in cell["repetitions"])
            assert sorted(r for cell in cells for r in cell["repetitions"]) == list(range(repetitions))


def test_finding_holds_within_its_limits():
    assert Finding("", 0.68, 0.67, tolerance=0.03).holds is True
    assert Finding("", 0.71, 0.67, tolerance=0.03).holds is False
    assert Finding("", 0.71, 0.67).holds is None
    assert Finding("", 5, at_least=4, at_most=6).holds is True
    assert Finding("", 5, at_least=6).holds is False
    assert Finding("", None).holds is None
    assert Finding("", None, wanted=True).holds is False


@pytest.mark.parametrize(
    ("method", "canaries", "name", "models"),
    [
        ("2nd-order Wilson", 8, "2nd-order Wilson", 400),
        ("1st-order Wilson", 8, "1st-order Wilson", 400),
        ("1st-order Wilson", 1, "DP + Wilson", 400),
        ("lifted betting", 1, "lifted betting", 200),
        ("coin wager", 8, "coin wager", 100),
    ],
)
def test_method_and_models_counts_both_arms_and_tuning(method, canaries, name, models):
    row = {"method": method, "canaries": canaries, "trials": 100}
    assert setting.method_and_models(row) == {"method": name, "models": models}


def test_models_needed_counts_two_models_per_leave_one_out_trial_and_one_per_coin_flip_trial():
    assert WAYS["many canaries"].design(2048).canaries == 32  # √n of the half that is not for tuning
    rows = run_way({"way": "many canaries", "trials": 512, "repetition": 0})
    assert {row["models"] for row in rows} == {1024}
    rows = run_way({"way": "coin wager", "trials": 64, "repetition": 0})
    assert [row["models"] for row in rows] == [4, 6, 8, 11, 16, 23, 32, 45, 64]
    assert [row["epsilon"] for row in rows] == sorted(row["epsilon"] for row in rows)


def test_models_to_reach_interpolates_in_log_models():
    curve = {100: 0.2, 400: 0.6, 1600: 1.0}
    assert models_to_reach(curve, 0.4) == 200
    assert models_to_reach(curve, 0.8) == 800
    assert models_to_reach(curve, 0.6) == 400
    assert models_to_reach(curve, 1.1) is None
    assert models_to_reach(curve, 0.1) == 100  # at most: reached before the curve begins


def test_bias_variance_is_relative_to_one_canary():
    def row(canaries, method, epsilon, repetition=0):
        settings = {"nominal_epsilon": 2.0, "candidates": "paper", "canaries": canaries, "repetition": repetition}
        return settings | {"method": method, "epsilon": epsilon}

    table = EXPERIMENTS["gaussian-bias-variance"].table
    many = [row(4, "1st-order Wilson", 0.5), row(4, "2nd-order Wilson", 0.75), row(4, "4th-order Wilson", 0.625)]
    one = [row(1, "1st-order Wilson", 0.25), row(1, "1st-order Wilson", 0.75, repetition=1)]
    alone, together = table(many + one)
    assert (alone["bias"], alone["variance_gain_2"]) == (0.0, "")
    assert (together["bias"], together["variance_gain_2"], together["variance_gain_4"]) == (0.0, 0.25, 0.125)
    assert together["bias_error"] == pytest.approx(0.25)
    assert table(many) == []  # the deadline left out one canary


def test_slope_leaves_out_points_within_their_noise():
    def row(axis, arm, value, mean, error):
        settings = {"axis": axis, "arm": arm, "nominal_epsilon": 2.0, axis: value}
        return settings | {"second_mean": mean, "second_size": abs(mean), "second_error": error}

    table = [row("dimension", "held out", d, 3 / d, 5e-5) for d in (100, 1000, 10_000, 100_000)]
    assert slope(table, "dimension", "second") == pytest.approx(-1.0)  # the last is noise, and left out
    assert slope(table[:2], "dimension", "second") is None
    table = [row("canaries", "inserted", k, 5 / k**0.5, 1.0) for k in (4, 16, 64)]
    assert slope(table, "canaries", "second") == pytest.approx(-0.5)


def test_binomial_widths_equal_a_sum_over_all_outcomes(tmp_path):
    from scipy import stats

    reproduce("binomial-intervals", out=tmp_path)
    with (tmp_path / "binomial-intervals" / "binomial-intervals.csv").open() as file:
        rows = {(row["interval"], int(row["trials"])): row for row in csv.DictReader(file)}
    lower = upper = 0.0
    for ones in range(11):
        chance = math.comb(10, ones) * 0.1**ones * 0.9 ** (10 - ones)
        interval = stats.binomtest(ones, 10).proportion_ci(0.95, method="exact")
        lower += chance * interval.low
        upper += chance * interval.high
    row = rows["Clopper-Pearson", 10]
    assert float(row["below"]) == pytest.approx(0.1 - lower, rel=1e-5)
    assert float(row["above"]) == pytest.approx(upper - 0.1, rel=1e-5)
