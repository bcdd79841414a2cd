"""One run of many canaries on a Gaussian mechanism that has the claimed noise: how much of its ε each method shows.

The first block assumes that canaries are independent of one another, the second allows any dependence. *Limit* is the most powerful
test of independent Gaussian scores, which knows their centre and their scale: no test can have a larger median there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.curves import flips, peers
from lidp import (
    CoinWager,
    CurveWager,
    CurveWagerWithGuesses,
    GaussianCurve,
    OneRun,
    OneRunFDP,
    PlannedGuesses,
    Scores,
    SignedRanks,
)
from lidp.curves.gaussian import gaussian_epsilon

SEEDS = 100
DELTA, BETA = 1e-5, 0.05
MU = 0.5
CANARIES = (1_000, 10_000, 100_000)
SLOW_PEERS = 10_000  # their search over thresholds takes minutes beyond this many canaries


def limit(scores: Scores) -> float:
    """Return the ε of the least μ that the most powerful test does not reject: the mean of ±(score - μ/2) is N(μ/2, 1/N)."""
    from scipy.special import ndtri

    values, coins = scores.flips()
    mean = float(((2.0 * coins - 1.0) * (values - MU / 2)).mean())
    return gaussian_epsilon(max(2 * (mean + ndtri(BETA) / np.sqrt(values.size)), 0.0), DELTA)


def methods() -> dict[str, dict[str, Callable[[Scores], float]]]:
    """Return functions from scores to ε̂ by name, for each of the two hypotheses."""
    curve = GaussianCurve(MU)
    ours = {
        "independent": {
            "signed-ranks": SignedRanks(curve),
            "curve-wager, canary by canary": CurveWager(curve, canary_by_canary=True),
        },
        "any dependence": {
            "curve-wager-with-guesses": CurveWagerWithGuesses(curve),
            "one-run-fdp, planned": OneRunFDP(PlannedGuesses(), curve=curve),
            "curve-wager": CurveWager(curve),
            "one-run": OneRun(),
            "coin-wager": CoinWager(),
        },
    }
    bounds: dict[str, dict[str, Callable[[Scores], float]]] = {
        hypothesis: {
            name: lambda scores, method=method: method.bound(scores, delta=DELTA, failure_probability=BETA).epsilon
            for name, method in chosen.items()
        }
        for hypothesis, chosen in ours.items()
    }
    bounds["independent"] = {"limit": limit, **bounds["independent"]}
    bounds["any dependence"] |= {name: bound for name, bound in peers().items() if name.startswith("jax")}
    return bounds


def main() -> None:
    print(f"\nOne run, Gaussian mechanism, true ε = {gaussian_epsilon(MU, DELTA):.2f}: median and mean ε̂ of {SEEDS} seeds")
    print(f"{'canaries':>9}  {'hypothesis':15} {'method':32} {'median':>7} {'mean':>7} {'least':>7}")
    for canaries in CANARIES:
        drawn = [flips(MU, 1, canaries, seed) for seed in range(SEEDS)]
        for hypothesis, bounds in methods().items():
            for name, bound in bounds.items():
                if name.startswith("jax") and canaries > SLOW_PEERS:
                    continue
                shown = [bound(scores) for scores in (drawn[::20] if name.startswith("jax") else drawn)]
                print(
                    f"{canaries:9,}  {hypothesis:15} {name:32} {np.median(shown):7.3f} {np.mean(shown):7.3f} {min(shown):7.3f}",
                    flush=True,
                )
