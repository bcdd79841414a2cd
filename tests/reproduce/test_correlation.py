"""Slopes are fitted to points above their noise."""

import pytest

from lidp.reproduce.correlation import slope


def test_slope_leaves_out_points_within_their_noise():
    def row(axis, arm, value, mean, error):
        settings = {"axis": axis, "arm": arm, "nominal_epsilon": 2.0, axis: value}
        return settings | {"second_mean": mean, "second_size": abs(mean), "second_error": error}

    table = [row("dimension", "held out", d, 3 / d, 5e-5) for d in (100, 1000, 10_000, 100_000)]
    assert slope(table, "dimension", "second") == pytest.approx(-1.0)  # the last is noise, and left out
    assert slope(table[:2], "dimension", "second") is None
    table = [row("canaries", "inserted", k, 5 / k**0.5, 1.0) for k in (4, 16, 64)]
    assert slope(table, "canaries", "second") == pytest.approx(-0.5)
