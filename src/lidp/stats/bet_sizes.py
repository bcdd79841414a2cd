"""Choose how much to bet at each rung of a privacy curve, before any output is seen.

A cap is the largest stake on a coin at a rung. All coins of a trial are charged for the caps, so that larger caps win more and cost
more. The best ones depend on the curve, on the number of coins per trial, and on how much less noise there is than claimed. They
are found by simulating a mechanism of the same family with less noise. Caps matter for strength only: any caps that were fixed
before a trial are valid for it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lidp.arrays import Bools, Floats, Ints
from lidp.curves import PrivacyCurve
from lidp.stats.curve_family import CurveFamily, leakier

SUSPECTED_RATIOS = (1.05, 1.15, 1.4)
"""How much more noise than the truth each gambler takes the claim to have."""
# Simulated coins per evaluation, and trials where that many coins are few trials, unless these have very many coins.
_COINS = 32_768
_FEW_TRIALS = 32
_MOST_COINS = 8 * _COINS
_GRID = 512  # points of ε from which the law of the privacy loss is computed
_SEED = 20_231_207
_FIRST, _LAST = -24, 16  # caps are e^-rung times powers of sqrt(2)
_START = -4
_STEPS = (4, 2, 1)
_ROUNDS = 3


class Wagers(NamedTuple):
    """Simulated coins: the probability of the likelier side of each, and whether that side came up."""

    chances: Floats
    right: Bools


def simulate_wagers(curve: PrivacyCurve, trials: int, canaries: int) -> Wagers:
    """Simulate coins whose privacy losses have the law that a curve determines, and predictions that know this law.

    With P the law of the output for coin 1 and Q that for coin 0, and L the privacy loss log P/Q: Q(L > e) is -h'(e)·e^-e for h⁺,
    and P(L > e) is h(e) - h'(e); for L < -e the roles of P and Q are swapped, with h⁻.
    """
    rng = np.random.default_rng([_SEED, canaries])
    coins = rng.integers(0, 2, (trials, canaries)).astype(np.bool_)
    uniform = rng.random((trials, canaries))
    largest = 1.5 * max(curve.scale * (5 + curve.scale / 2), float(curve.rungs()[-1]), 1e-3)
    grid = np.linspace(0.0, largest, _GRID)
    one, zero = _loss_cdfs(curve, grid)
    losses = np.concatenate([-grid[:0:-1], grid])
    logits = np.where(coins, np.interp(uniform, one, losses), np.interp(uniform, zero, losses))
    return Wagers(1 / (1 + np.exp(-np.abs(logits))), (logits > 0) == coins)


def _loss_cdfs(curve: PrivacyCurve, grid: Floats) -> tuple[Floats, Floats]:
    """Return the cumulative probabilities of the privacy loss at -grid and grid, for coin 1 and for coin 0."""
    tails = []
    for values in curve.both(grid):
        slope = np.gradient(values, grid)
        favoured = np.clip(values - slope, 0.0, 1.0)  # the side that the loss speaks for
        other = np.clip(-slope * np.exp(-grid), 0.0, 1.0)
        tails.append((np.minimum.accumulate(favoured), np.minimum.accumulate(other)))
    (above_one, above_zero), (below_zero, below_one) = tails
    one = np.concatenate([below_one[:0:-1], 1 - above_one])
    zero = np.concatenate([below_zero[:0:-1], 1 - above_zero])
    return np.maximum.accumulate(one), np.maximum.accumulate(zero)


def log_charge(caps: Floats, prices: Floats, canaries: int) -> Floats:
    """Return the log-price of caps for a trial, log(1 + ½·K·Σ caps·prices), for arrays whose last axis runs over rungs.

    A price is h⁺, h⁻ or their sum, for bets on "in", on "out" or on both. Where it is 0, the cap may be infinite.
    """
    costs = np.where(prices > 0, np.where(prices > 0, caps, 0.0) * prices, 0.0)
    charges: Floats = np.log1p(canaries / 2 * costs.sum(axis=-1))
    return charges


def gambler_caps(family: CurveFamily, canaries: int) -> Floats:
    """Return the caps of each gambler against each member of a family: (members, gamblers, rungs).

    They are optimised against the claim; against the other members they are the same in units of e^-rung.
    """
    prices = np.maximum(family.forward, family.backward)
    powers = [best_powers(family.curves[family.claimed], ratio, canaries) for ratio in SUSPECTED_RATIOS]
    caps = caps_of(np.array(powers), family.rungs[:, None, :])
    unpaid, unusable = prices == 0, (prices > 0) & (prices <= family.curves[0].least_value)
    caps = np.where(unpaid[:, None, :], np.inf, caps)
    return np.where(unusable[:, None, :], 0.0, caps)


def caps_of(powers: Ints, rungs: Floats) -> Floats:
    """Return e^-rung times sqrt(2)^power for each rung; the power below the first stands for a cap of 0."""
    caps: Floats = np.where(powers < _FIRST, 0.0, np.exp2(np.maximum(powers, _FIRST) / 2 - rungs / math.log(2)))
    return caps


def simulated_trials(canaries: int) -> int:
    """Return how many trials are simulated to evaluate caps for so many coins per trial."""
    return max(_COINS // canaries, min(_FEW_TRIALS, _MOST_COINS // canaries), 1)


@lru_cache(maxsize=4096)
def best_powers(curve: PrivacyCurve, ratio: float, canaries: int) -> tuple[int, ...]:
    """Return the caps that let the wealth grow fastest if the noise is the claimed noise divided by ``ratio``, as powers.

    The search moves one cap at a time, by smaller and smaller steps, as long as the simulated growth increases.
    """
    suspect = leakier(curve, ratio)
    wagers = simulate_wagers(suspect, simulated_trials(canaries), canaries)
    rungs = curve.rungs()
    prices = np.add(*curve.both(rungs))
    odds = np.exp(rungs)
    priced = np.flatnonzero(prices > 0)

    known: dict[bytes, float] = {}  # the search returns to powers that it has tried

    def growth(powers: Ints) -> float:
        key = powers.tobytes()
        if key not in known:
            caps = caps_of(powers, rungs)
            caps[prices == 0] = np.inf
            known[key] = float(kernels().mean_log_wealth(*wagers, odds, caps) - log_charge(caps, prices, canaries))
        return known[key]

    powers: Ints = np.full(len(rungs), _START, dtype=np.int64)
    best = growth(powers)
    for step in _STEPS:
        for _ in range(_ROUNDS):
            before = best
            for rung in priced:
                for move in (step, -step):
                    while True:
                        tried = powers.copy()
                        tried[rung] = min(max(tried[rung] + move, _FIRST - 1), _LAST)
                        reached = growth(tried)
                        if not reached > best + 1e-9:
                            break
                        powers, best = tried, reached
            if best <= before + 1e-3 * abs(before):
                break
    return tuple(int(power) for power in powers)


def kernels() -> Any:
    """Return the module of compiled loops, imported on first use."""
    from lidp._compiled import curve_wager

    return curve_wager
