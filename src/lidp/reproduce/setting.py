"""The setting of the paper's Section 4: a Gaussian mechanism of sensitivity 1, and the methods it compares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lidp.claim import Direction
from lidp.reproduce.experiment import Row
from lidp.scores import Scores
from lidp.stats.gaussian_curve import gaussian_epsilon, sigma_for
from lidp.stats.thresholds import CentralGrid, TailQuantiles
from lidp.stats.two_rates import arms_of, epsilon_of_rates, tails
from lidp.stats.wilson import Wilson

Floats = NDArray[np.float64]

NOMINAL = (1.0, 2.0, 4.0, 8.0)
"""The paper's ε: those of Rényi accounting, above the exact ones."""
DELTA = 1e-5
BETA = 0.05
DIMENSION = 10_000
REPETITIONS = 25
TUNINGS = 5
"""Thresholds are tuned so many times, on trials of their own, and used in turn by the repetitions. The paper tunes once; then
standard errors say nothing of the luck of that one tuning, which at the tail is most of it."""
NO_CANDIDATES = "none"

WILSONS: dict[str, Wilson] = {
    "1st-order Wilson": Wilson(1),
    "2nd-order Wilson": Wilson(2),
    "4th-order Wilson": Wilson(4),
    "4th-order Wilson as printed": Wilson(4, as_printed=True),
}
CANDIDATES = {"paper": CentralGrid(), "tail": TailQuantiles()}
"""Thresholds tried when tuning: the paper's 500 values between quantiles, and ours, which reach into the tails."""


def noise(nominal: float) -> float:
    """The σ that the paper's accounting gives a nominal ε."""
    return sigma_for(nominal, DELTA, renyi=True)


def exact_epsilon(nominal: float) -> float:
    """What that σ truly buys."""
    return gaussian_epsilon(1 / noise(nominal), DELTA)


def forward_bounds(scores: Scores, thresholds: Floats) -> dict[str, Floats]:
    """ε̂ of every method at each of several sorted thresholds, in the paper's one direction, β/2 on either rate."""
    counted = tails(arms_of(scores), thresholds, Direction.FORWARD)
    return {
        name: epsilon_of_rates(method.lower(counted.high, BETA / 2), method.upper(counted.low, BETA / 2), DELTA)
        for name, method in applicable_wilsons(scores.canaries).items()
    }


def tune(scores: Scores) -> list[Row]:
    """The best threshold of every method and set of candidates, on these scores, which are then put away."""
    found = []
    for candidates, grid in CANDIDATES.items():
        thresholds = grid(*arms_of(scores))
        for name, bounds in forward_bounds(scores, thresholds).items():
            best = float(thresholds[int(np.argmax(bounds))])
            found.append({"method": name, "candidates": candidates, "threshold": best})
    return found


def measure(scores: Scores, tuned: Sequence[Row]) -> list[Row]:
    """ε̂ of every tuned method on fresh scores."""
    thresholds = np.unique([row["threshold"] for row in tuned])
    bounds = forward_bounds(scores, thresholds)
    return [
        {"method": row["method"], "candidates": row["candidates"]}
        | {"epsilon": float(bounds[row["method"]][np.searchsorted(thresholds, row["threshold"])])}
        for row in tuned
    ]


def applicable_wilsons(canaries: int) -> dict[str, Wilson]:
    """The orders that so many canaries allow."""
    return {name: method for name, method in WILSONS.items() if (method.order or 1) <= canaries}


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error (0 for a single value)."""
    error = float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
    return float(np.mean(values)), error
