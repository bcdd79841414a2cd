"""False bounds at nulls that are exactly tight: how often each method rejects an ε that the mechanism satisfies.

Every mechanism here is exactly (ε, δ)-DP, so that a bound *at* ε counts as false too. A row is flagged if a valid method would be
wrong so often in fewer than one of 1,000 simulations. Scores that are refused (those grouped by coin) count as not refuted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from lidp import (
    Bernstein,
    ClopperPearson,
    CoinWager,
    InvalidScores,
    LiftedBetting,
    OneRun,
    Scores,
    Wilson,
)
from lidp.curves.gaussian import gaussian_delta
from lidp.stats.method import Method

REPEATS = 200
BETA = 0.05
FLAGGED_BELOW = 1e-3

Draw = Callable[[np.random.Generator], Scores]


@dataclass(frozen=True)
class Null:
    """A mechanism that is exactly (ε, δ)-DP, as a source of scores, and the methods that apply to them."""

    name: str
    epsilon: float
    delta: float
    draw: Draw
    methods: tuple[Method, ...]


def coins_of(rng: np.random.Generator, trials: int, canaries: int) -> np.ndarray:
    return rng.integers(0, 2, (trials, canaries))


def randomised(rng: np.random.Generator, coins: np.ndarray, epsilon: float) -> np.ndarray:
    """Each coin, or its opposite with probability 1/(1+e^ε)."""
    return np.where(rng.random(coins.shape) < 1 / (1 + math.exp(epsilon)), 1 - coins, coins).astype(float)


def randomized_response(trials: int, canaries: int, epsilon: float, delta: float = 0.0) -> Draw:
    """Coins told by randomized response; with probability δ a trial reveals all of its coins."""

    def draw(rng: np.random.Generator) -> Scores:
        coins = coins_of(rng, trials, canaries)
        revealed = rng.random((trials, 1)) < delta
        return Scores(scores=np.where(revealed, 10.0 * (2 * coins - 1), randomised(rng, coins, epsilon)), coins=coins)

    return draw


def one_of_all(trials: int, canaries: int, epsilon: float) -> Draw:
    """All canaries of a trial get the same score: what randomized response tells of one of them."""

    def draw(rng: np.random.Generator) -> Scores:
        coins = coins_of(rng, trials, canaries)
        return Scores(scores=np.repeat(randomised(rng, coins[:, :1], epsilon), canaries, axis=1), coins=coins)

    return draw


def noisy_coins(trials: int, canaries: int, noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]) -> Draw:
    """Each coin with additive noise."""

    def draw(rng: np.random.Generator) -> Scores:
        coins = coins_of(rng, trials, canaries)
        return Scores(scores=coins + noise(rng, coins.shape), coins=coins)

    return draw


def grouped_by_coin(trials: int, canaries: int) -> Draw:
    """Pure noise, the inserted canaries first: per trial, or over all trials if each has one canary."""

    def draw(rng: np.random.Generator) -> Scores:
        coins = np.sort(coins_of(rng, trials, canaries), axis=1 if canaries > 1 else 0)[::-1, ::-1]
        return Scores(scores=rng.standard_normal(coins.shape), coins=coins)

    return draw


def unfair_coins(trials: int, canaries: int, heads: float) -> Draw:
    """Pure noise with coins that are not quite fair."""

    def draw(rng: np.random.Generator) -> Scores:
        coins = rng.random((trials, canaries)) < heads
        return Scores(scores=rng.standard_normal(coins.shape), coins=coins)

    return draw


def two_arms(trials: int, canaries: int, epsilon: float, delta: float, *, equal: bool, neighbours: str) -> Draw:
    """Arms of 0/1 scores whose rates are tight in both directions; the canaries of an arm independent, or all equal."""
    low = (1 - delta) / (1 + math.exp(epsilon))

    def arm(rng: np.random.Generator, rate: float) -> np.ndarray:
        randomised = rng.random((trials, 1 if equal else canaries)) < rate
        return np.repeat(randomised, canaries, axis=1).astype(float) if equal else randomised.astype(float)

    def draw(rng: np.random.Generator) -> Scores:
        return Scores(inserted=arm(rng, math.exp(epsilon) * low + delta), held_out=arm(rng, low), neighbours=neighbours)

    return draw


def laplace_arms(trials: int, epsilon: float) -> Draw:
    """One canary per arm: Laplace noise on a count of 1 or 0."""

    def draw(rng: np.random.Generator) -> Scores:
        inserted, held_out = (place + rng.laplace(scale=1 / epsilon, size=(trials, 1)) for place in (1, 0))
        return Scores(inserted=inserted, held_out=held_out)

    return draw


def nulls() -> list[Null]:
    wager, one_run = CoinWager(), OneRun()
    both = (wager, one_run)
    single = (*both, ClopperPearson(), Wilson(), Bernstein())
    arms = (LiftedBetting(), Wilson(), Bernstein())
    nulls = []
    for epsilon in (0.5, 1.0, 2.0):
        for trials, canaries in ((1000, 1), (125, 8), (16, 64)):
            methods = single if canaries == 1 else both
            name = f"randomized response, {trials} x {canaries}"
            nulls.append(Null(name, epsilon, 0.0, randomized_response(trials, canaries, epsilon), methods))
    for trials, canaries in ((125, 8), (16, 64)):
        shape = f"{trials} x {canaries}"
        nulls += [
            Null(
                f"all revealed with probability δ, {shape}",
                1.0,
                0.01,
                randomized_response(trials, canaries, 1.0, 0.01),
                both,
            ),
            Null(f"all scores tell one coin, {shape}", 1.0, 0.0, one_of_all(trials, canaries, 1.0), both),
        ]
    for trials, canaries in ((1000, 1), (125, 8), (16, 64)):
        methods = single if canaries == 1 else both
        shape = f"{trials} x {canaries}"
        laplace = noisy_coins(trials, canaries, lambda rng, size: rng.laplace(size=size))
        normal = noisy_coins(trials, canaries, lambda rng, size: rng.standard_normal(size))
        nulls += [
            Null(f"Laplace, {shape}", 1.0, 0.0, laplace, methods),
            Null(f"Gaussian, {shape}", 1.0, gaussian_delta(1.0, 1.0), normal, methods),
        ]
    for neighbours in ("add-remove", "replace-one"):
        design = "leave-one-out" if neighbours == "add-remove" else "replace-one"
        for trials, canaries in ((500, 1), (200, 8), (100, 64)):
            methods = (*arms, ClopperPearson()) if canaries == 1 else arms
            for equal in (False, True) if canaries > 1 else (False,):
                kind = "equal" if equal else "independent"
                draw = two_arms(trials, canaries, 1.0, 0.0, equal=equal, neighbours=neighbours)
                nulls.append(Null(f"{design}, {kind} canaries, {trials} x {canaries}", 1.0, 0.0, draw, methods))
        draw = two_arms(200, 8, 1.0, 0.05, equal=True, neighbours=neighbours)
        nulls.append(Null(f"{design}, equal canaries, 200 x 8", 1.0, 0.05, draw, arms))
    nulls.append(Null("leave-one-out, Laplace, 500 x 1", 1.0, 0.0, laplace_arms(500, 1.0), (*arms, ClopperPearson())))
    for trials, canaries in ((1, 256), (16, 64), (256, 1), (1, 30), (8, 4), (64, 2)):
        nulls.append(
            Null(f"noise grouped by coin, {trials} x {canaries}", 0.0, 0.0, grouped_by_coin(trials, canaries), both)
        )
    for trials, canaries, heads in ((1, 200, 0.6), (1, 1000, 0.6), (16, 64, 0.55)):
        name = f"noise, coins of {heads:g}, {trials} x {canaries}"
        nulls.append(Null(name, 0.0, 0.0, unfair_coins(trials, canaries, heads), both))
    return nulls


def refuted(null: Null, method: Method, scores: Scores) -> bool:
    bound = method.bound(scores, delta=null.delta, failure_probability=BETA)
    if null.epsilon == 0:
        return bound.epsilon > 0 or bool(bound.path)
    return bound.epsilon >= null.epsilon - 1e-9


def count(null: Null) -> tuple[list[int], int]:
    """How often each method was wrong, and how many scores were refused."""
    wrong, refused = [0] * len(null.methods), 0
    for seed in range(REPEATS):
        try:
            scores = null.draw(np.random.default_rng(seed))
        except InvalidScores:
            refused += 1
            continue
        for place, method in enumerate(null.methods):
            wrong[place] += refuted(null, method, scores)
    return wrong, refused


def main() -> None:
    print(f"false bounds in {REPEATS} simulations at tight nulls; * marks counts that β allows in fewer than 1 of 1,000")
    print(f"{'configuration':50} {'ε':>4} {'δ':>7} {'method':16} {'β':>5} {'refuted':>8} {'refused':>8}")
    flagged = 0
    for null in nulls():
        wrong, refused = count(null)
        for method, number in zip(null.methods, wrong, strict=True):
            flag = stats.binom.sf(number - 1, REPEATS, BETA) < FLAGGED_BELOW
            flagged += flag
            print(
                f"{null.name:50} {null.epsilon:4g} {null.delta:7.3g} {method.name:16} {BETA:5g} {number:8} {refused:8}"
                + (" *" if flag else ""),
                flush=True,
            )
    print("no row is flagged" if not flagged else f"{flagged} rows are flagged")
