"""How lifted betting chooses its bets: candidate thresholds, payoffs seen so far, thresholds and stakes from them.

Nothing here affects validity, which asks only that bets come from lower-index trials; it decides how fast wealth grows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lidp.claim import Direction
from lidp.scores import Scores
from lidp.stats.betting import WealthPath
from lidp.stats.thresholds import TailQuantiles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK_TRIALS = 4096
"""Trials are counted in blocks of at most this many, which bounds the memory."""

_CANDIDATES = 128
_PRIOR_TRIALS = 1.0  # pseudo-trials with ...
_PRIOR_SQUARE = 0.1  # ... this squared payoff, against overconfident first bets
_PRIOR_HITS = 0.5  # pseudo-scores in the rejection set of the arm where they are unlikely: unseen is not impossible
_BOLDNESS = 0.99  # the largest stake, as a fraction of what keeps the wealth nonnegative


class Counter:
    """Counts exceedances of candidate thresholds, and keeps their sums and sums of products.

    The sums are of whole numbers, hence exact in float64: they do not depend on how trials were grouped.
    """

    def __init__(self, past: Scores) -> None:
        inserted, held_out = past.arms()
        self.sizes = (inserted.shape[1], held_out.shape[1])
        self.thresholds = TailQuantiles(_CANDIDATES)(inserted, held_out)
        self.trials = 0
        width = len(self.thresholds)
        self.x = np.zeros(width)
        self.y = np.zeros(width)
        self.xx, self.yy, self.xy = (np.zeros((width, width)) for _ in range(3))
        for start in range(0, past.trials, BLOCK_TRIALS):
            self.count(past[start : start + BLOCK_TRIALS])

    def count(self, block: Scores) -> tuple[Floats, Floats]:
        """Exceedance counts (trials, thresholds) of inserted and held-out scores; adds them to the sums."""
        inserted, held_out = block.arms()
        x, y = self._exceedances(inserted), self._exceedances(held_out)
        self.x += x.sum(axis=0)
        self.y += y.sum(axis=0)
        self.xx += x.T @ x
        self.yy += y.T @ y
        self.xy += x.T @ y
        self.trials += block.trials
        return x, y

    def _exceedances(self, scores: Floats) -> Floats:
        trials, width = len(scores), len(self.thresholds) + 1
        passed = np.searchsorted(self.thresholds, scores, side="right")
        passed += np.arange(trials)[:, None] * width
        by_bin = np.bincount(passed.ravel(), minlength=trials * width).reshape(trials, width)
        exceeding: Floats = scores.shape[1] - np.cumsum(by_bin[:, :-1], axis=1, dtype=np.float64)
        return exceeding


class Bets:
    """For each ε of a window of the grid: a threshold and a stake per direction, chosen from the counter's past."""

    def __init__(self, counter: Counter, wealth: WealthPath, delta: float, direction: Direction) -> None:
        self.counter = counter
        self.delta = delta
        rates = Rates(counter)
        hopeful = max(rates.largest_odds(part, delta) for part in direction.parts)
        self.window = wealth.grid.window(wealth.rejected, math.log(max(hopeful, 1.0)))
        self.odds = np.exp(wealth.grid.values[self.window])
        limit = _BOLDNESS / (self.odds + delta)
        self.places = {part: rates.best_threshold(part, self.odds, delta, limit) for part in direction.parts}
        payoffs = [rates.payoff(part, place, self.odds, delta) for part, place in self.places.items()]
        if direction is Direction.BOTH:
            cross = rates.cross(self.places[Direction.FORWARD], self.places[Direction.BACKWARD], self.odds)
            self.stakes = _share_out(payoffs[0], payoffs[1], cross, limit)
        else:
            self.stakes = [np.clip(mean / square, 0.0, limit) for mean, square in payoffs]

    def log_growth(self, x: Floats, y: Floats) -> Floats:
        """log(1 + λD + λ'D') for each trial (rows) and each ε of the window (columns)."""
        inserted, held_out = (counts / size for counts, size in zip((x, y), self.counter.sizes, strict=True))
        total = np.zeros((len(x), len(self.odds)))
        for (part, place), stake in zip(self.places.items(), self.stakes, strict=True):
            if part is Direction.FORWARD:
                payoff = inserted[:, place] - self.odds * held_out[:, place] - self.delta
            else:
                payoff = (1 - held_out[:, place]) - self.odds * (1 - inserted[:, place]) - self.delta
            total += stake * payoff
        return np.log1p(total)

    def thresholds_in_use(self) -> dict[Direction, float]:
        """The thresholds staked on at the smallest ε that is still open."""
        return {
            part: float(self.counter.thresholds[place[0]])
            for (part, place), stake in zip(self.places.items(), self.stakes, strict=True)
            if len(place) and stake[0] > 0
        }


class Rates:
    """Means and second moments of the payoffs, from the counter's sums.

    A little prior weight on a large squared payoff keeps the first bets from being overconfident.
    """

    def __init__(self, counter: Counter) -> None:
        k, m = counter.sizes
        total = counter.trials + _PRIOR_TRIALS
        self.x, self.y = counter.x / (k * total), counter.y / (m * total)
        self.xx, self.yy, self.xy = counter.xx / (k * k * total), counter.yy / (m * m * total), counter.xy / (k * m * total)
        self.one = counter.trials / total
        self.prior_square = _PRIOR_TRIALS * _PRIOR_SQUARE / total
        self.unseen = {Direction.FORWARD: _PRIOR_HITS / (m * total), Direction.BACKWARD: _PRIOR_HITS / (k * total)}

    def largest_odds(self, part: Direction, delta: float) -> float:
        """The e^ε at which no threshold has a payoff with a positive mean any more."""
        likely, unlikely = (self.x, self.y) if part is Direction.FORWARD else (self.one - self.y, self.one - self.x)
        return float(np.max((likely - delta) / (unlikely + self.unseen[part])))

    def payoff(self, part: Direction, place: Ints, odds: Floats, delta: float) -> tuple[Floats, Floats]:
        """Mean and second moment of the payoff with threshold ``place``."""
        x, y, xx, yy, xy = self.x[place], self.y[place], *(m[place, place] for m in (self.xx, self.yy, self.xy))
        if part is Direction.BACKWARD:  # the rates 1-y and 1-x take the places of x and y
            x, y, xx, yy, xy = (
                self.one - y,
                self.one - x,
                self.one - 2 * y + yy,
                self.one - 2 * x + xx,
                self.one - x - y + xy,
            )
        return x - odds * (y + self.unseen[part]) - delta, xx - 2 * odds * xy + odds**2 * yy + self.prior_square

    def best_threshold(self, part: Direction, odds: Floats, delta: float, limit: Floats) -> Ints:
        """Per ε, the threshold of the largest predicted growth if this direction were bet on alone."""
        mean, square = self.payoff(part, np.arange(len(self.x)), odds[:, None], delta)
        stake = np.clip(mean / square, 0.0, limit[:, None])
        places: Ints = np.argmax(stake * (mean - stake * square / 2), axis=1)
        return places

    def cross(self, forward: Ints, backward: Ints, odds: Floats) -> Floats:
        """Mean product of the forward payoff at one threshold and the backward payoff at another (δ neglected)."""
        x, y = self.x[forward], self.y[forward]
        x_low, y_low = x - self.xx[forward, backward], y - self.xy[backward, forward]  # with 1 - x of the other
        x_high, y_high = x - self.xy[forward, backward], y - self.yy[forward, backward]  # with 1 - y of the other
        product: Floats = x_high - odds * (x_low + y_high) + odds**2 * y_low
        return product


Moments = tuple[Floats, Floats]


def _share_out(first: Moments, second: Moments, cross: Floats, limit: Floats) -> list[Floats]:
    """Stakes λ1, λ2 ≥ 0 with λ1 + λ2 ≤ limit that maximise the predicted growth λ·mean - λᵀ(second moments)λ / 2.

    The maximum of a concave function over a triangle: inside, or on one of its three edges; try all.
    """
    (mean1, square1), (mean2, square2) = first, second
    zero = np.zeros_like(limit)
    determinant = np.maximum(square1 * square2 - cross**2, 1e-300)
    inside = ((mean1 * square2 - mean2 * cross) / determinant, (mean2 * square1 - mean1 * cross) / determinant)
    feasible = (inside[0] >= 0) & (inside[1] >= 0) & (inside[0] + inside[1] <= limit)
    curvature = np.maximum(square1 + square2 - 2 * cross, 1e-300)
    edge = np.clip((mean1 - mean2 + limit * (square2 - cross)) / curvature, 0.0, limit)
    options = [
        (np.where(feasible, inside[0], 0.0), np.where(feasible, inside[1], 0.0)),
        (np.clip(mean1 / square1, 0.0, limit), zero),
        (zero, np.clip(mean2 / square2, 0.0, limit)),
        (edge, limit - edge),
    ]
    growth = [a * mean1 + b * mean2 - (a * a * square1 + 2 * a * b * cross + b * b * square2) / 2 for a, b in options]
    best = np.argmax(growth, axis=0)
    columns = np.arange(len(limit))
    return [np.array([option[side] for option in options])[best, columns] for side in (0, 1)]
