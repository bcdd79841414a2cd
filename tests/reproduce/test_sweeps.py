"""Sweeps use tuned thresholds in turn; bias and variance are differences of bounds."""

import pytest

from lidp.reproduce import EXPERIMENTS
from lidp.reproduce.experiment import Scale
from lidp.reproduce.tables import group


def test_sweeps_measure_every_repetition_once_with_thresholds_tuned_in_turn():
    for name in ("gaussian-trials", "gaussian-canaries", "gaussian-dimension"):
        (source,) = EXPERIMENTS[name].sources
        for (_, canaries, _), cells in group(source.cells(Scale.PAPER), "trials", "canaries", "dimension").items():
            tunings, repetitions = (80, 400) if canaries == 1 else (5, 25)
            assert [cell["tuning"] for cell in cells] == list(range(tunings))
            assert all(r % tunings == cell["tuning"] for cell in cells for r in cell["repetitions"])
            assert sorted(r for cell in cells for r in cell["repetitions"]) == list(range(repetitions))


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
