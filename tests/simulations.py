"""Mechanisms whose privacy is known exactly, as sources of scores; and how coverage is judged."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from lidp import Scores

Draw = Callable[[np.random.Generator], Scores]


def randomized_response(trials: int, canaries: int, epsilon: float, delta: float = 0.0, whole_run: bool = False) -> Draw:
    """Coin-flip scores of randomized response, which is exactly (ε, δ)-DP.

    Each score is the coin, or its opposite with probability 1/(1+e^ε); with probability δ the coin, or the whole run, is
    revealed for certain.
    """
    lie = 1 / (1 + math.exp(epsilon))

    def draw(rng: np.random.Generator) -> Scores:
        coins = rng.integers(0, 2, (trials, canaries))
        told = np.where(rng.random(coins.shape) < lie, 1 - coins, coins).astype(float)
        revealed = rng.random((trials, 1 if whole_run else canaries)) < delta
        return Scores(scores=np.where(revealed, 10.0 * (2 * coins - 1), told), coins=coins)

    return draw


def exchangeable_arms(
    trials: int, canaries: int, held_out_rate: float, epsilon: float, delta: float = 0.0, correlation: float = 0.0
) -> Draw:
    """Arms of 0/1 scores with P[1 | inserted] = e^ε P[1 | held out] + δ exactly, from independent (0) to equal (1)."""
    inserted_rate = math.exp(epsilon) * held_out_rate + delta
    assert inserted_rate <= 1
    assert 1 - held_out_rate <= math.exp(epsilon) * (1 - inserted_rate) + delta + 1e-12, "the backward inequality must hold"

    def arm(rng: np.random.Generator, rate: float) -> np.ndarray:
        if correlation == 0:
            return rng.random((trials, canaries)) < rate
        if correlation == 1:
            return np.repeat(rng.random((trials, 1)) < rate, canaries, axis=1)
        spread = 1 / correlation - 1
        chance = rng.beta(rate * spread, (1 - rate) * spread, (trials, 1))
        return rng.random((trials, canaries)) < chance

    def draw(rng: np.random.Generator) -> Scores:
        return Scores(inserted=arm(rng, inserted_rate).astype(float), held_out=arm(rng, held_out_rate).astype(float))

    return draw


def laplace_pairs(trials: int, epsilon: float) -> Draw:
    """One coin a trial: Laplace noise of scale 1/ε on a count of 0 or 1; exactly ε-DP, with a continuum of tight events."""

    def draw(rng: np.random.Generator) -> Scores:
        coins = rng.integers(0, 2, (trials, 1))
        return Scores(scores=coins + rng.laplace(scale=1 / epsilon, size=coins.shape), coins=coins)

    return draw


def false_alarms(bound: Callable[[Scores], float], draw: Draw, truth: float, repeats: int, seed: int) -> int:
    """How often the bound rejects the truth: a bound *at* the true ε counts as an alarm too."""
    streams = np.random.SeedSequence(seed).spawn(repeats)
    return sum(bound(draw(np.random.default_rng(stream))) >= truth - 1e-9 for stream in streams)


def assert_covers(alarms: int, repeats: int, failure_probability: float) -> None:
    """Fail if so many alarms would happen by chance in fewer than one of 10,000 simulations of a valid method."""
    p_value = stats.binom.sf(alarms - 1, repeats, failure_probability)
    assert p_value > 1e-4, f"{alarms} false alarms in {repeats}, allowed {failure_probability:.3g} of them"


def assert_breaks(alarms: int, repeats: int, failure_probability: float) -> None:
    """Fail unless the coverage simulation catches this method: the simulation itself must be able to fail."""
    assert stats.binom.sf(alarms - 1, repeats, failure_probability) < 1e-4, f"only {alarms} false alarms in {repeats}"
