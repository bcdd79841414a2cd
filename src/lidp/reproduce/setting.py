"""The setting of the paper's Section 4: a Gaussian mechanism of sensitivity 1, and the methods that are compared."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import lidp
from lidp.arrays import Floats
from lidp.curves.gaussian import gaussian_epsilon, sigma_for
from lidp.mechanisms.gaussian import GaussianDraws, draw_gaussian
from lidp.reproduce.experiment import seed_of
from lidp.reproduce.tables import Row
from lidp.stats.two_rates import arms_of, epsilon_of_rates, tails

NOMINAL = (1.0, 2.0, 4.0, 8.0)
"""The paper's ε, by Rényi accounting; the exact ones are smaller."""
DELTA = 1e-5
BETA = 0.05
DIMENSION = 10_000
REPETITIONS = 25
TUNINGS = 5
"""How often thresholds are tuned, each time on separate trials; repetitions use them in turn. The paper tunes once, and then
standard errors leave out the randomness of tuning, which dominates in the tail."""
NO_CANDIDATES = "none"
SINGLE = "DP + Wilson"
"""The paper's baseline: the first-order Wilson interval with one canary."""

WILSONS = {
    "1st-order Wilson": lidp.Wilson(1),
    "2nd-order Wilson": lidp.Wilson(2),
    "4th-order Wilson": lidp.Wilson(4),
    "4th-order Wilson as printed": lidp.Wilson(4, as_printed=True),
}
BETS: dict[str, lidp.Method] = {"lifted betting": lidp.LiftedBetting(), "coin wager": lidp.CoinWager()}
CANDIDATES = {"paper": lidp.CentralGrid(), "tail": lidp.TailQuantiles()}
"""Thresholds tried when tuning: the paper's 500 values between two quantiles, and 500 quantiles that reach into the tails."""


@functools.cache
def noise(nominal: float) -> float:
    """Return the σ for a nominal ε by the paper's accounting."""
    return sigma_for(nominal, DELTA, renyi=True)


@functools.cache
def exact_epsilon(nominal: float) -> float:
    """Return the exact ε of the σ for a nominal ε."""
    return gaussian_epsilon(1 / noise(nominal), DELTA)


def draw(design: lidp.Design, **settings: Any) -> GaussianDraws:
    """Draw the canaries and noise of an audit, for every ε, with a seed that depends on the settings only.

    Cells run in parallel, so each uses one thread.
    """
    dimension = settings.get("dimension", DIMENSION)
    return draw_gaussian(design, trials=settings["trials"], dimension=dimension, seed=seed_of(settings), threads=1)


def forward_bounds(scores: lidp.Scores, thresholds: Floats) -> dict[str, Floats]:
    """Return ε̂ at each of several sorted thresholds, in the paper's one direction, with β/2 for each rate.

    The result has all Wilson intervals whose order is at most the number of canaries, by name. They share one count of the scores,
    which is several times faster than a call of each method.
    """
    counted = tails(arms_of(scores), thresholds, lidp.Direction.FORWARD)
    return {
        name: epsilon_of_rates(method.lower(counted.high, BETA / 2), method.upper(counted.low, BETA / 2), DELTA)
        for name, method in WILSONS.items()
        if (method.order or 1) <= scores.canaries
    }


def tune(scores: lidp.Scores) -> list[Row]:
    """Return the best threshold of every interval and set of candidates; the scores may not be used for a bound afterwards."""
    tuned = []
    for candidates, grid in CANDIDATES.items():
        thresholds = grid(*arms_of(scores))
        for name, bounds in forward_bounds(scores, thresholds).items():
            best = float(thresholds[int(np.argmax(bounds))])
            tuned.append({"method": name, "candidates": candidates, "threshold": best})
    return tuned


def measure(scores: lidp.Scores, tuned: Sequence[Row]) -> list[Row]:
    """Return ε̂ of every tuned interval on fresh scores."""
    thresholds = np.unique([row["threshold"] for row in tuned])
    bounds = forward_bounds(scores, thresholds)
    return [
        {"method": row["method"], "candidates": row["candidates"]}
        | {"epsilon": float(bounds[row["method"]][np.searchsorted(thresholds, row["threshold"])])}
        for row in tuned
    ]


def bet(method: str, scores: lidp.Scores) -> Row:
    """Return ε̂ of a method that bets and needs no threshold."""
    bound = BETS[method].bound(scores, delta=DELTA, failure_probability=BETA)
    return {"method": method, "candidates": NO_CANDIDATES, "epsilon": bound.epsilon}


def method_and_models(row: Row) -> Row:
    """Return the method of a measured row as tables name it, and the number of models that were trained for it.

    That is one model per coin-flip trial; two per leave-one-out trial or one per replace-one trial (``models_per_trial``), and as
    many again for tuning.
    """
    single = row["canaries"] == 1 and row["method"] == "1st-order Wilson"
    per_trial = row.get("models_per_trial", 2)
    models_per_trial = {"coin wager": 1, "lifted betting": per_trial}.get(row["method"], 2 * per_trial)
    return {"method": SINGLE if single else row["method"], "models": row["trials"] * models_per_trial}
