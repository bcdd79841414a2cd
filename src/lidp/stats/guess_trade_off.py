"""How few guesses about coins can be wrong if many are right, for mechanisms with a given privacy curve.

A guess about a coin is a function of the output. Given all other coins, let P1 and P0 be the laws of the output for coin 1 and coin
0, R⁺ a set of outputs for which the guess is "in", and R⁻ one for which it is "out". The guess is right with probability
x = ½(P1(R⁺) + P0(R⁻)) and wrong with probability y = ½(P0(R⁺) + P1(R⁻)). For every e ≥ 0 the curve promises

- P1(R⁺) ≤ e^e P0(R⁺) + h⁺(e) and P0(R⁻) ≤ e^e P1(R⁻) + h⁻(e), so that y ≥ e^-e (x - h(e)) with h = ½(h⁺ + h⁻);
- the same for the complements of R⁺ and R⁻, with h⁺ and h⁻ exchanged, so that y ≥ 1 - h(e) - e^e (1 - x).

If all guesses are "in", R⁻ is empty: then y ≥ e^-e (x - ½h⁺(e)) and y ≥ ½(1 - h⁻(e)) - e^e (½ - x). So the least y is the
largest of many linear functions of x. It is convex in x: the same bound holds for means over coins and over what was given. Each of
these functions alone is a valid bound, so a finite grid of e makes the bound weaker, never wrong.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from lidp.arrays import Floats
from lidp.claim import Direction
from lidp.curves import PrivacyCurve
from lidp.stats.claimed_curve import grid_of
from lidp.stats.one_run import Guesses

_ROUNDING = 1e-15


class GuessTradeOff:
    """A lower bound on the rate of wrong guesses as a function of the rate of right ones; see the module.

    Both rates are shares of all coins. ``largest`` is the largest rate of right guesses that is possible at all.
    """

    def __init__(self, curve: PrivacyCurve, direction: Direction) -> None:
        rungs = grid_of(curve)
        forward, backward = curve.both(rungs)
        largest = np.maximum(forward, backward)
        usable = (largest == 0) | (largest > curve.least_value)
        rungs, forward, backward = rungs[usable], forward[usable], backward[usable]
        if direction is Direction.BOTH:
            self.largest, above = 1.0, (forward + backward) / 2
            below = above
        else:
            above, below = (forward, backward) if direction is Direction.FORWARD else (backward, forward)
            self.largest, above, below = 0.5, above / 2, below / 2
        # Lines: offset + slope * (x - anchor), by increasing slope.
        odds = np.exp(rungs)
        slopes = np.concatenate([[0.0], 1 / odds[::-1], odds])
        anchors = np.concatenate([[0.0], above[::-1], np.full(len(odds), self.largest)])
        offsets = np.concatenate([np.zeros(1 + len(odds)), self.largest - below])
        starts, lines = _upper_envelope(slopes, offsets - slopes * anchors)
        self._starts = starts
        self._slopes, self._anchors, self._offsets = (values[lines].tolist() for values in (slopes, anchors, offsets))

    def least_wrong(self, right: float) -> float:
        """Return a lower bound on the rate of wrong guesses if this is the rate of right ones."""
        line = bisect_right(self._starts, right) - 1
        least: float = self._offsets[line] + self._slopes[line] * (right - self._anchors[line]) - _ROUNDING
        return least


def _upper_envelope(slopes: Floats, intercepts: Floats) -> tuple[list[float], list[int]]:
    """Return where on x ≥ 0 each line of the pointwise maximum begins, and which line it is. Slopes must not decrease."""
    starts, lines = [0.0], [0]
    for line in range(1, len(slopes)):
        while lines:
            rise = slopes[line] - slopes[lines[-1]]
            drop = intercepts[lines[-1]] - intercepts[line]
            # Equal slopes: the one with the larger intercept is kept.
            start = drop / rise if rise > 0 else (math.inf if drop >= 0 else -math.inf)
            if start > starts[-1]:
                break
            starts.pop()
            lines.pop()
        if not lines:
            start = 0.0
        if math.isfinite(start):
            starts.append(max(start, 0.0))
            lines.append(line)
    return starts, lines


@lru_cache(maxsize=128)  # computing the curve of an event takes up to a second
def trade_off_of(curve: PrivacyCurve, direction: Direction) -> GuessTradeOff:
    """Return the trade-off of a curve for guesses in one direction, or in both."""
    return GuessTradeOff(curve, direction)


def rejects_curve(
    guesses: Guesses, curve: PrivacyCurve, failure_probability: float, direction: Direction = Direction.BOTH
) -> bool:
    """Return whether at least ``right`` right guesses are too many for any mechanism with this privacy curve.

    Guarantee: finite-sample: for a mechanism with this curve or a smaller one, True with probability at most the given one.
    """
    trade_off = trade_off_of(curve, direction)
    return too_many_right(guesses, trade_off.least_wrong, trade_off.largest, failure_probability)


def too_many_right(
    guesses: Guesses, least_wrong: Callable[[float], float], largest: float, failure_probability: float
) -> bool:
    """Return whether at least ``right`` right guesses have a probability below the failure probability.

    Suppose that they have not. Let p_j be the probability of exactly j right guesses, x_i the mean over coins of the probability
    that the guess is right and at least i are, and y_i that of "the guess is wrong and at least i are right". They are sums over
    j ≥ i of j·p_j and (made - j)·p_j, divided by the number of coins. A guess that is one of i + 1 right ones becomes wrong if its
    coin changes, and leaves i right ones; so y_i is at least ``least_wrong(x_{i+1})``. From the observed number downward, each p_i
    is made as small as this allows, which makes the requirements on the lower ones as small as possible too. If the p_i add up
    to more than 1, there is no such mechanism.
    """
    made, coins = guesses.made, guesses.coins
    right = failure_probability * guesses.right / coins
    wrong = failure_probability * (made - guesses.right) / coins
    for i in range(guesses.right - 1, -1, -1):
        if right > largest:
            return True
        needed = least_wrong(right)
        if needed <= wrong:
            return False  # nothing changes any more
        right, wrong = right + i / (made - i) * (needed - wrong), needed
        if right + wrong > made / coins:
            return True
    return False
