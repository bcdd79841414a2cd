"""The curve wager: models until a claim falls, the bound on a correct mechanism, and the cost of a coin.

*Falls*: a Gaussian mechanism whose noise is the claimed noise divided by a ratio; predictions are learned. Medians of the number of
models after which each anytime-valid method refutes the claim. Beside them, on the same scores of as many models as the target
allows, the bounds of methods of fixed size, which refute the claim if they are above it. They pool the canaries of all models,
as if canaries were independent.
*Bounds*: ε̂ by the curve over the true ε, for a mechanism that has the claimed noise.
*Costs*: time per coin relative to the coin wager in the same run, and seconds of CPU time that a new claim takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.speed import interleaved
from lidp import Claim, CoinWager, OneRunFDP, Scores
from lidp.curves import GaussianCurve
from lidp.curves.gaussian import sigma_for
from lidp.stats.bet_sizes import SUSPECTED_RATIOS, best_powers
from lidp.stats.curve_family import family_of
from lidp.stats.curve_wager import CurveWager

SEEDS = 25
DELTA, BETA = 1e-5, 0.05
# Canaries per model, claimed ε, claimed noise over true noise, models within which the claim should fall.
FALLS = ((64, 8, 1.1, 45), (64, 8, 1.25, 15), (64, 2, 1.25, 45), (64, 2, 2.0, 8), (512, 8, 1.1, 22), (512, 2, 1.25, 13))
MOST_MODELS = 4  # times those
BOUNDS = ((2, 0.85), (8, 0.9))  # claimed and true ε, the share of it that the bound should reach
BOUND_MODELS = 256
PAPER = {"noise_multiplier": 0.52, "sampling_rate": 1 / 600, "steps": 18_000}


def flips(mu: float, models: int, canaries: int, seed: int) -> Scores:
    rng = np.random.default_rng([seed, models, canaries])
    coins = rng.integers(0, 2, (models, canaries))
    return Scores(scores=mu * coins + rng.standard_normal(coins.shape), coins=coins)


def peers() -> dict[str, Callable[[Scores], float]]:
    """Return methods of fixed size: ours, and those of jax-privacy if it is installed."""
    methods: dict[str, Callable[[Scores], float]] = {
        "one-run-fdp": lambda scores: OneRunFDP().bound(scores, delta=DELTA, failure_probability=BETA).epsilon
    }
    try:
        from jax_privacy.auditing import CanaryScoreAuditor
    except ImportError:
        print("jax-privacy is not installed (pip install lidp[peers]): its bounds are left out")
        return methods

    def auditor(scores: Scores) -> CanaryScoreAuditor:
        values, coins = scores.flips()
        return CanaryScoreAuditor(values[coins], values[~coins])

    methods["jax one-run"] = lambda scores: float(auditor(scores).epsilon_one_run(BETA, DELTA))
    methods["jax f-DP"] = lambda scores: float(auditor(scores).epsilon_one_run_fdp(BETA, DELTA))
    return methods


def falls() -> None:
    fixed = peers()
    print(
        f"\nModels until the claim falls: median of {SEEDS} seeds; then ε̂ of methods of fixed size at the target's models"
    )
    print(
        f"{'K':>4} {'ε':>3} {'ratio':>6} {'target':>7} {'curve':>7} {'point':>7}  "
        + "".join(f"{name:>13}" for name in fixed)
    )
    for canaries, epsilon, ratio, target in FALLS:
        mu = 1 / sigma_for(epsilon, DELTA)
        models = MOST_MODELS * target
        drawn = [flips(ratio * mu, models, canaries, seed) for seed in range(SEEDS)]
        by_curve = [_bound(CurveWager(GaussianCurve(mu)), scores).fell_at or np.inf for scores in drawn]
        by_point = [_fell_at(_bound(CoinWager(), scores).path, epsilon) for scores in drawn]
        medians = "".join(f"{_models(float(np.median(counts)), models):>8}" for counts in (by_curve, by_point))
        # Threshold search makes the peers slow: one seed of five.
        bounds = "".join(
            f"{np.median([bound(scores[:target]) for scores in drawn[::5]]):>13.2f}" for bound in fixed.values()
        )
        print(f"{canaries:>4} {epsilon:>3} {ratio:>6} {target:>7}{medians}  {bounds}", flush=True)


def bounds() -> None:
    print(f"\nε̂ over the true ε, correct mechanism, K = 64, {BOUND_MODELS} models, median of {SEEDS} seeds")
    print(f"{'ε':>3} {'target':>7} {'curve':>7} {'point':>7}")
    for epsilon, target in BOUNDS:
        mu = 1 / sigma_for(epsilon, DELTA)
        drawn = [flips(mu, BOUND_MODELS, 64, seed) for seed in range(SEEDS)]
        shares = [
            np.median([_bound(method, scores).epsilon for scores in drawn]) / epsilon
            for method in (CurveWager(GaussianCurve(mu)), CoinWager())
        ]
        print(f"{epsilon:>3} {target:>7} {shares[0]:>7.2f} {shares[1]:>7.2f}", flush=True)


def costs() -> None:
    print("\nCost of a coin, as a multiple of the coin wager in the same run (limit 3)")
    for epsilon in (2, 8):
        mu = 1 / sigma_for(epsilon, DELTA)
        for models, canaries in ((1000, 64), (64, 1024), (64_000, 1)):
            scores = flips(mu, models, canaries, 0)
            curve, point = interleaved(
                lambda scores=scores, mu=mu: _bound(CurveWager(GaussianCurve(mu)), scores),
                lambda scores=scores: _bound(CoinWager(), scores),
            )
            print(f"  ε = {epsilon}, {models:,} models, K = {canaries:,}: {curve / point:.1f}", flush=True)
    for canaries in (1, 64, 512):
        claim = GaussianCurve(0.5123)
        best_powers.cache_clear()
        start = time.process_time()
        for ratio in SUSPECTED_RATIOS:
            best_powers(claim, ratio, canaries)
        print(f"caps of a new claim, K = {canaries}: {time.process_time() - start:.2f} s of CPU time (limit 2)", flush=True)
    claim = Claim.dpsgd(**PAPER, delta=DELTA)
    start = time.process_time()
    family = family_of(claim.curve, DELTA)
    print(
        f"family of {len(family)} curves of {claim.curve}: {time.process_time() - start:.1f} s of CPU time (limit 20 for 60 curves)"
    )


def _bound(method: CurveWager | CoinWager, scores: Scores):
    return method.bound(scores, delta=DELTA, failure_probability=BETA)


def _fell_at(path: tuple[tuple[int, float], ...], epsilon: float) -> float:
    return next((seen for seen, bound in path if bound >= epsilon), np.inf)


def _models(median: float, most: int) -> str:
    return f"{median:.0f}" if np.isfinite(median) else f">{most}"


def main() -> None:
    falls()
    bounds()
    costs()
