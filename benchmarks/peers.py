"""The same scores in jax-privacy's auditing module and here: bounds, false alarms, time. Needs the extra ``peers``.

*Bounds*: coin-flip scores of a Gaussian mechanism with nominal ε = 2 (1.84 exactly at δ = 1e-5), some models with 64 canaries
each; the peer takes scores in one row, so canaries of all models are pooled. Means over repetitions.
*False alarms*: a mechanism that is exactly ε-DP, whose canaries agree within a model: in each model all scores are 1, or all are 0.
A method that takes canaries for independent rejects the truth more often than it may.
"""

from __future__ import annotations

import time

import numpy as np

import lidp

REPEATS = {"bounds": 25, "alarms": 200}
SIGMA, DELTA, BETA, CANARIES = 2.15, 1e-5, 0.05, 64


def main() -> None:
    _bounds()
    _alarms()


def _bounds() -> None:
    from jax_privacy.auditing import CanaryScoreAuditor

    def peer(scores: lidp.Scores, name: str) -> float:
        values, coins = scores.flips()
        auditor = CanaryScoreAuditor(values[coins], values[~coins])
        return float(getattr(auditor, name)(BETA, DELTA))

    ways = {
        "lidp, coin wager": lambda scores: lidp.bound(scores, delta=DELTA, failure_probability=BETA).epsilon,
        "jax-privacy, one run (pooled)": lambda scores: peer(scores, "epsilon_one_run"),
        "jax-privacy, Clopper-Pearson (pooled)": lambda scores: peer(scores, "epsilon_clopper_pearson"),
    }
    for models in (16, 64, 256):
        print(f"{models} models x {CANARIES} canaries: ε̂, seconds a bound")
        drawn = [_flips(models, seed) for seed in range(REPEATS["bounds"])]
        for name, bound in ways.items():
            bound(drawn[0])  # compiles
            start = time.perf_counter()
            bounds = [bound(scores) for scores in drawn]
            print(f"  {name:40} {np.mean(bounds):.2f}  {(time.perf_counter() - start) / len(bounds):.3f}")


def _flips(models: int, seed: int) -> lidp.Scores:
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, (models, CANARIES))
    return lidp.Scores(scores=coins + SIGMA * rng.standard_normal(coins.shape), coins=coins)


def _alarms(epsilon: float = 1.0, models: int = 200, canaries: int = 16) -> None:
    from jax_privacy.auditing import CanaryScoreAuditor, Explicit

    rate = 1 / (1 + np.exp(epsilon))
    alarms = dict.fromkeys(
        ("lidp, lifted betting", "lidp, 2nd-order Bernstein", "jax-privacy, Clopper-Pearson (pooled)"), 0
    )
    for seed in range(REPEATS["alarms"]):
        rng = np.random.default_rng(seed)
        inserted, held_out = (
            np.repeat((rng.random((models, 1)) < chance).astype(float), canaries, axis=1) for chance in (1 - rate, rate)
        )
        scores = lidp.Scores(inserted=inserted, held_out=held_out)
        fixed = lidp.FixedThreshold(0.5)
        ours = (lidp.LiftedBetting(), lidp.Bernstein(order=2, threshold=fixed))
        for name, method in zip(alarms, ours, strict=False):
            alarms[name] += method.bound(scores, delta=0.0, failure_probability=BETA).epsilon >= epsilon
        auditor = CanaryScoreAuditor(inserted.ravel(), held_out.ravel())
        epsilon_bound = auditor.epsilon_clopper_pearson(BETA, threshold_strategy=Explicit(0.5))
        alarms["jax-privacy, Clopper-Pearson (pooled)"] += epsilon_bound >= epsilon
    print(f"false alarms in {REPEATS['alarms']}, canaries that agree, {BETA:.0%} allowed")
    for name, count in alarms.items():
        print(f"  {name:40} {count}")
