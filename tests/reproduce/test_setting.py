"""Bounds of the compared methods are those of the library; models are counted."""

from dataclasses import replace

import pytest

from lidp import Direction, FixedThreshold, LeaveOneOut, Scores, SplitThreshold
from lidp.mechanisms.gaussian import simulate_gaussian
from lidp.reproduce import setting
from lidp.reproduce.tables import select


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
