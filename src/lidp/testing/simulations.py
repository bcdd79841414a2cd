"""Mechanisms whose ε is known exactly, as sources of scores, and tests of coverage on them.

Each null is tight: the mechanism is (ε, δ)-DP for the stated ε and for no smaller one, so that a bound which is wrong more often
than it says shows here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lidp.arrays import Floats
from lidp.scores import Scores
from lidp.testing.contract import require

Draw = Callable[[np.random.Generator], Scores]

FALSE_FAILURE = 1e-4
"""The probability that a coverage test of a valid method fails."""


@dataclass(frozen=True)
class Null:
    """A mechanism that is exactly (ε, δ)-DP, as a source of scores."""

    name: str
    draw: Draw
    epsilon: float
    delta: float = 0.0


def randomized_response(trials: int, canaries: int, epsilon: float, delta: float = 0.0, whole_run: bool = False) -> Draw:
    """Return a source of coin-flip scores of randomized response, which is exactly (ε, δ)-DP.

    Each score is the coin, or its opposite with probability 1/(1+e^ε). With probability δ the coin, or with ``whole_run`` all coins
    of the run, are revealed for certain.
    """
    lie = 1 / (1 + math.exp(epsilon))

    def draw(rng: np.random.Generator) -> Scores:
        coins = rng.integers(0, 2, (trials, canaries))
        answers = np.where(rng.random(coins.shape) < lie, 1 - coins, coins).astype(float)
        revealed = rng.random((trials, 1 if whole_run else canaries)) < delta
        return Scores(scores=np.where(revealed, 10.0 * (2 * coins - 1), answers), coins=coins)

    return draw


def echoed_response(trials: int, canaries: int, epsilon: float) -> Draw:
    """Return a source of coin-flip scores in which all canaries of a run have the score of the first: as dependent as can be.

    The first canary gets randomized response; the others repeat that answer, with coins that are independent of it.
    """
    lie = 1 / (1 + math.exp(epsilon))

    def draw(rng: np.random.Generator) -> Scores:
        coins = rng.integers(0, 2, (trials, 1))
        answer = np.where(rng.random((trials, 1)) < lie, 1 - coins, coins)
        all_coins = np.hstack([coins, rng.integers(0, 2, (trials, canaries - 1))])
        return Scores(scores=np.repeat(answer, canaries, axis=1), coins=all_coins)

    return draw


def exchangeable_arms(
    trials: int, canaries: int, held_out_rate: float, epsilon: float, delta: float = 0.0, correlation: float = 0.0
) -> Draw:
    """Return a source of arms of 0/1 scores with P[1 | inserted] = e^ε P[1 | held out] + δ exactly.

    The canaries of a trial are independent for a ``correlation`` of 0, and equal for 1.
    """
    inserted_rate = math.exp(epsilon) * held_out_rate + delta
    require(inserted_rate <= 1, f"the rate of inserted canaries would be {inserted_rate}")
    backward = 1 - held_out_rate <= math.exp(epsilon) * (1 - inserted_rate) + delta + 1e-12
    require(backward, "the mechanism would not be private in the backward direction")

    def arm(rng: np.random.Generator, rate: float) -> Floats:
        if correlation == 0:
            return (rng.random((trials, canaries)) < rate).astype(float)
        if correlation == 1:
            return np.repeat(rng.random((trials, 1)) < rate, canaries, axis=1).astype(float)
        spread = 1 / correlation - 1
        chance = rng.beta(rate * spread, (1 - rate) * spread, (trials, 1))
        return (rng.random((trials, canaries)) < chance).astype(float)

    return lambda rng: Scores(inserted=arm(rng, inserted_rate), held_out=arm(rng, held_out_rate))


def gaussian_coins(trials: int, canaries: int, mu: float) -> Draw:
    """Return a source of coin-flip scores with the privacy curve of a Gaussian mechanism (μ-GDP) exactly."""

    def draw(rng: np.random.Generator) -> Scores:
        coins = rng.integers(0, 2, (trials, canaries))
        return Scores(scores=mu * coins + rng.standard_normal(coins.shape), coins=coins)

    return draw


def gaussian_arms(trials: int, canaries: int, mu: float, shared: float) -> Draw:
    """Return a source of arms with a Gaussian privacy curve, whose canaries share a part of their noise: 0 none, 1 all."""

    def arm(rng: np.random.Generator, shift: float) -> Floats:
        common, single = rng.standard_normal((trials, 1)), rng.standard_normal((trials, canaries))
        noise: Floats = shift + shared * common + math.sqrt(1 - shared**2) * single
        return noise

    return lambda rng: Scores(inserted=arm(rng, mu), held_out=arm(rng, 0.0))


def laplace_pairs(trials: int, epsilon: float) -> Draw:
    """Return a source of one coin per trial: Laplace noise of scale 1/ε on a count of 0 or 1.

    That is exactly ε-DP, with a continuum of tight events.
    """

    def draw(rng: np.random.Generator) -> Scores:
        coins = rng.integers(0, 2, (trials, 1))
        return Scores(scores=coins + rng.laplace(scale=1 / epsilon, size=coins.shape), coins=coins)

    return draw


def false_alarms(bound: Callable[[Scores], float], draw: Draw, truth: float, repeats: int, seed: int) -> int:
    """Count how often the bound rejects the truth. A bound *at* the true ε counts as well."""
    seeds = np.random.SeedSequence(seed).spawn(repeats)
    return sum(bound(draw(np.random.default_rng(one))) >= truth - 1e-9 for one in seeds)


def assert_covers(alarms: int, repeats: int, failure_probability: float) -> None:
    """Fail if a valid method raises so many false alarms in fewer than one of 10,000 simulations."""
    chance = _chance_of_at_least(alarms, repeats, failure_probability)
    require(chance > FALSE_FAILURE, f"{alarms} false alarms in {repeats}, allowed are {failure_probability:.3g} of them")


def assert_breaks(alarms: int, repeats: int, failure_probability: float) -> None:
    """Fail unless ``assert_covers`` would: a simulation must be able to catch an invalid method."""
    chance = _chance_of_at_least(alarms, repeats, failure_probability)
    require(chance < FALSE_FAILURE, f"only {alarms} false alarms in {repeats}")


def _chance_of_at_least(alarms: int, repeats: int, probability: float) -> float:
    """Return the probability of at least so many successes in ``repeats`` independent trials."""
    from scipy.special import bdtrc

    return 1.0 if alarms == 0 else float(bdtrc(alarms - 1, repeats, probability))
