"""Choose the thresholds and stakes of lifted betting from the payoffs of earlier trials.

Nothing here affects validity, which requires only that bets depend on lower-index trials; it decides how fast wealth grows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.claim import Direction
from lidp.scores import Scores
from lidp.stats.betting import WealthPath
from lidp.stats.thresholds import TailQuantiles

BLOCK_TRIALS = 4096
"""Trials are counted in blocks of at most this many, which bounds the memory."""

_CANDIDATES = 128
_PRIOR_TRIALS = 1.0  # pseudo-trials with ...
_PRIOR_SQUARE = 0.1  # ... this squared payoff, against overconfident first bets
_PRIOR_HITS = 0.5  # pseudo-scores in the rejection set of the arm where they are unlikely: unseen is not impossible
_BOLDNESS = 0.99  # the largest stake, as a fraction of what keeps the wealth nonnegative


class Counts(NamedTuple):
    """Numbers of inserted (x) and held-out (y) scores at or above each threshold: arrays (trials, thresholds).

    No score of a failed run is in a rejection set: none at or above a threshold forward, none below it backward.
    """

    forward_x: Floats
    forward_y: Floats
    backward_x: Floats
    backward_y: Floats


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
        # Rows x, y, x², y², xy of each direction; and products of a forward with a backward count, threshold by threshold.
        self.sums = {part: np.zeros((5, width)) for part in Direction.BOTH.parts}
        self.products = {pair: np.zeros((width, width)) for pair in ("xx", "xy", "yx", "yy")}
        for start in range(0, past.trials, BLOCK_TRIALS):
            self.count(past[start : start + BLOCK_TRIALS])

    def count(self, block: Scores) -> Counts:
        """Count a block of trials and add it to the sums."""
        inserted, held_out = block.arms()
        x, y = self._exceedances(inserted), self._exceedances(held_out)
        self.trials += block.trials
        if not block.failed.any():
            self._add_without_failures(x, y)
            return Counts(x, y, x, y)
        down_x, down_y = x.copy(), y.copy()
        down_x[block.failed[:, 0]] = self.sizes[0]
        down_y[block.failed[:, 1]] = self.sizes[1]
        counts = Counts(x, y, down_x, down_y)
        self._add(counts)
        return counts

    def _add(self, counts: Counts) -> None:
        forward = {"x": counts.forward_x, "y": counts.forward_y}
        backward = {"x": counts.backward_x, "y": counts.backward_y}
        for part, by_arm in ((Direction.FORWARD, forward), (Direction.BACKWARD, backward)):
            x, y = by_arm["x"], by_arm["y"]
            self.sums[part] += [x.sum(axis=0), y.sum(axis=0), *((a * b).sum(axis=0) for a, b in ((x, x), (y, y), (x, y)))]
        for pair, matrix in self.products.items():
            matrix += forward[pair[0]].T @ backward[pair[1]]

    def _add_without_failures(self, x: Floats, y: Floats) -> None:
        """Like ``_add`` for trials without failed runs, at half the cost: both directions then have the same counts."""
        xx, yy, xy = x.T @ x, y.T @ y, x.T @ y
        sums = [x.sum(axis=0), y.sum(axis=0), np.diag(xx), np.diag(yy), np.diag(xy)]
        for rows in self.sums.values():
            rows += sums
        for pair, matrix in {"xx": xx, "xy": xy, "yx": xy.T, "yy": yy}.items():
            self.products[pair] += matrix

    def _exceedances(self, scores: Floats) -> Floats:
        trials, width = len(scores), len(self.thresholds) + 1
        passed = np.searchsorted(self.thresholds, scores, side="right")
        passed[np.isnan(scores[:, 0])] = 0  # a failed run's scores count as below every threshold
        passed += np.arange(trials)[:, None] * width
        by_bin = np.bincount(passed.ravel(), minlength=trials * width).reshape(trials, width)
        exceeding: Floats = scores.shape[1] - np.cumsum(by_bin[:, :-1], axis=1, dtype=np.float64)
        return exceeding


class Bets:
    """For each ε of a window of the grid, a threshold and a stake per direction, chosen from the trials counted so far."""

    def __init__(self, counter: Counter, wealth: WealthPath, delta: float, direction: Direction) -> None:
        self.counter = counter
        self.delta = delta
        rates = Rates(counter)
        largest_odds = max(rates.largest_odds(part, delta) for part in direction.parts)
        self.window = wealth.grid.window(wealth.rejected, math.log(max(largest_odds, 1.0)))
        self.odds = np.exp(wealth.grid.values[self.window])
        limit = _BOLDNESS / (self.odds + delta)
        self.chosen = {part: rates.best_threshold(part, self.odds, delta, limit) for part in direction.parts}
        payoffs = [rates.payoff(part, index, self.odds, delta) for part, index in self.chosen.items()]
        if direction is Direction.BOTH:
            cross = rates.cross(self.chosen[Direction.FORWARD], self.chosen[Direction.BACKWARD], self.odds)
            self.stakes = _best_stakes(payoffs[0], payoffs[1], cross, limit)
        else:
            self.stakes = [np.clip(mean / square, 0.0, limit) for mean, square in payoffs]

    def log_growth(self, counts: Counts) -> Floats:
        """Return log(1 + λD + λ'D') for each trial (rows) and each ε of the window (columns)."""
        k, m = self.counter.sizes
        total = np.zeros((len(counts.forward_x), len(self.odds)))
        for (part, index), stake in zip(self.chosen.items(), self.stakes, strict=True):
            if part is Direction.FORWARD:
                likely, unlikely = counts.forward_x[:, index] / k, counts.forward_y[:, index] / m
            else:
                likely, unlikely = 1 - counts.backward_y[:, index] / m, 1 - counts.backward_x[:, index] / k
            total += stake * (likely - self.odds * unlikely - self.delta)
        return np.log1p(total)

    def thresholds_in_use(self) -> dict[Direction, float]:
        """Return the thresholds that are bet on against the smallest ε that is not rejected yet."""
        return {
            part: float(self.counter.thresholds[index[0]])
            for (part, index), stake in zip(self.chosen.items(), self.stakes, strict=True)
            if len(index) and stake[0] > 0
        }


class Rates:
    """Means and second moments of the payoffs, from the counter's sums.

    A little prior weight on a large squared payoff keeps the first bets from being overconfident.
    """

    def __init__(self, counter: Counter) -> None:
        k, m = counter.sizes
        total = counter.trials + _PRIOR_TRIALS
        scale = np.array([k, m, k * k, m * m, k * m])[:, None] * total
        self.sums = {part: rows / scale for part, rows in counter.sums.items()}
        size = {"x": k, "y": m}
        self.products = {
            pair: matrix / (size[pair[0]] * size[pair[1]] * total) for pair, matrix in counter.products.items()
        }
        self.one = counter.trials / total
        self.prior_square = _PRIOR_TRIALS * _PRIOR_SQUARE / total
        self.unseen = {Direction.FORWARD: _PRIOR_HITS / (m * total), Direction.BACKWARD: _PRIOR_HITS / (k * total)}

    def _moments(self, part: Direction, index: Ints) -> tuple[Floats, ...]:
        """Return the means of the likely and the unlikely rate, of their squares, and of their product."""
        x, y, xx, yy, xy = self.sums[part][:, index]
        if part is Direction.FORWARD:
            return x, y, xx, yy, xy
        one = self.one  # the rates are 1-y and 1-x
        return one - y, one - x, one - 2 * y + yy, one - 2 * x + xx, one - x - y + xy

    def largest_odds(self, part: Direction, delta: float) -> float:
        """Return the e^ε beyond which no threshold has a payoff with a positive mean."""
        likely, unlikely, *_ = self._moments(part, np.arange(self.sums[part].shape[1]))
        return float(np.max((likely - delta) / (unlikely + self.unseen[part])))

    def payoff(self, part: Direction, index: Ints, odds: Floats, delta: float) -> tuple[Floats, Floats]:
        """Return the mean and second moment of the payoff for the threshold of this index."""
        likely, unlikely, likely2, unlikely2, product = self._moments(part, index)
        mean = likely - odds * (unlikely + self.unseen[part]) - delta
        return mean, likely2 - 2 * odds * product + odds**2 * unlikely2 + self.prior_square

    def best_threshold(self, part: Direction, odds: Floats, delta: float, limit: Floats) -> Ints:
        """Return, per ε, the index of the threshold with the largest predicted growth if only this direction were bet on."""
        mean, square = self.payoff(part, np.arange(self.sums[part].shape[1]), odds[:, None], delta)
        stake = np.clip(mean / square, 0.0, limit[:, None])
        indices: Ints = np.argmax(stake * (mean - stake * square / 2), axis=1)
        return indices

    def cross(self, forward: Ints, backward: Ints, odds: Floats) -> Floats:
        """Return the mean product of the forward payoff at one threshold and the backward payoff at another (δ neglected)."""
        x, y = self.sums[Direction.FORWARD][:2, forward]
        xx, xy, yx, yy = (self.products[pair][forward, backward] for pair in ("xx", "xy", "yx", "yy"))
        # Forward the rates are x and y, backward 1-y and 1-x.
        product: Floats = (x - xy) - odds * ((x - xx) + (y - yy)) + odds**2 * (y - yx)
        return product


Moments = tuple[Floats, Floats]


def _best_stakes(first: Moments, second: Moments, cross: Floats, limit: Floats) -> list[Floats]:
    """Return the stakes λ1, λ2 ≥ 0 with λ1 + λ2 ≤ limit that maximise the predicted growth λ·mean - λᵀ(second moments)λ / 2.

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
