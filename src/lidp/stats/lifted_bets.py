"""Choose the thresholds and stakes of lifted betting from the payoffs of earlier trials.

Nothing here affects validity, which requires only that bets depend on lower-index trials; it decides how fast wealth grows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.claim import Direction
from lidp.scores import Scores
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


class Hypotheses(NamedTuple):
    """What is bet against, one entry each: odds e^e, and how far the rates may differ beyond them in each direction.

    Under a hypothesis the forward payoff x - e^e y - ``forward`` has a mean of at most 0, and so has the backward payoff
    (1 - y) - e^e (1 - x) - ``backward``. For (ε, δ)-DP e is ε, and both differences are δ.
    """

    odds: Floats
    forward: Floats
    backward: Floats

    @classmethod
    def points(cls, epsilons: Floats, delta: float) -> Hypotheses:
        """Return the hypotheses of (ε, δ)-DP."""
        deltas = np.full(len(epsilons), delta)
        return cls(np.exp(epsilons), deltas, deltas)

    def excess(self, part: Direction) -> Floats:
        """Return how far the rates may differ beyond the odds in one direction."""
        return self.forward if part is Direction.FORWARD else self.backward

    def at(self, indices: Ints) -> Hypotheses:
        """Return some of the hypotheses."""
        return Hypotheses(*(values[indices] for values in self))


class Bets:
    """For each hypothesis a threshold and a stake per direction, chosen from the trials counted so far.

    ``growth`` is the growth of the log-wealth per trial that these trials predict.
    """

    def __init__(self, rates: Rates, hypotheses: Hypotheses, direction: Direction) -> None:
        self.counter = rates.counter
        self.hypotheses = hypotheses
        parts = direction.parts
        largest_excess = np.maximum.reduce([hypotheses.excess(part) for part in parts])
        limit = _BOLDNESS / (hypotheses.odds + largest_excess)
        self.chosen = {part: rates.best_threshold(part, hypotheses, limit) for part in parts}
        payoffs = [
            rates.payoff(part, index, hypotheses.odds, hypotheses.excess(part)) for part, index in self.chosen.items()
        ]
        if direction is Direction.BOTH:
            cross = rates.cross(self.chosen[Direction.FORWARD], self.chosen[Direction.BACKWARD], hypotheses)
            self.stakes, self.growth = _best_stakes(payoffs[0], payoffs[1], cross, limit)
        else:
            mean, square = payoffs[0]
            self.stakes = [np.clip(mean / square, 0.0, limit)]
            self.growth = self.stakes[0] * (mean - self.stakes[0] * square / 2)

    def keep(self, indices: Ints) -> None:
        """Bet against these hypotheses only."""
        self.hypotheses = self.hypotheses.at(indices)
        self.chosen = {part: index[indices] for part, index in self.chosen.items()}
        self.stakes = [stake[indices] for stake in self.stakes]
        self.growth = self.growth[indices]

    def log_growth(self, counts: Counts) -> Floats:
        """Return log(1 + λD + λ'D') for each trial (rows) and each hypothesis (columns)."""
        k, m = self.counter.sizes
        total = np.zeros((len(counts.forward_x), len(self.hypotheses.odds)))
        for (part, index), stake in zip(self.chosen.items(), self.stakes, strict=True):
            if part is Direction.FORWARD:
                likely, unlikely = counts.forward_x[:, index] / k, counts.forward_y[:, index] / m
            else:
                likely, unlikely = 1 - counts.backward_y[:, index] / m, 1 - counts.backward_x[:, index] / k
            total += stake * (likely - self.hypotheses.odds * unlikely - self.hypotheses.excess(part))
        return np.log1p(total)

    def thresholds_in_use(self) -> dict[Direction, float]:
        """Return the thresholds that are bet on against the first hypothesis that is not rejected yet."""
        return {
            part: float(self.counter.thresholds[index[0]])
            for (part, index), stake in zip(self.chosen.items(), self.stakes, strict=True)
            if len(index) and stake[0] > 0
        }


class Rates:
    """Means and second moments of the payoffs, from the counter's sums.

    A little prior weight on a large squared payoff keeps the first bets from being overconfident. With ``neglect_excess``, second
    moments are those of the payoffs without the excess, which hardly differ if it is a δ.
    """

    def __init__(self, counter: Counter, *, neglect_excess: bool = True) -> None:
        self.counter = counter
        self.neglect_excess = neglect_excess
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

    def payoff(self, part: Direction, index: Ints, odds: Floats, excess: Floats) -> tuple[Floats, Floats]:
        """Return the mean and second moment of the payoff for the threshold of this index."""
        likely, unlikely, likely2, unlikely2, product = self._moments(part, index)
        mean = likely - odds * (unlikely + self.unseen[part]) - excess
        square = likely2 - 2 * odds * product + odds**2 * unlikely2 + self.prior_square
        if not self.neglect_excess:
            square += excess * (excess * self.one - 2 * (likely - odds * unlikely))
        return mean, square

    def best_threshold(self, part: Direction, hypotheses: Hypotheses, limit: Floats) -> Ints:
        """Return, per hypothesis, the index of the threshold with the largest predicted growth of bets in this direction alone."""
        every = np.arange(self.sums[part].shape[1])
        mean, square = self.payoff(part, every, hypotheses.odds[:, None], hypotheses.excess(part)[:, None])
        stake = np.clip(mean / square, 0.0, limit[:, None])
        indices: Ints = np.argmax(stake * (mean - stake * square / 2), axis=1)
        return indices

    def cross(self, forward: Ints, backward: Ints, hypotheses: Hypotheses) -> Floats:
        """Return the mean product of the forward payoff at one threshold and the backward payoff at another."""
        odds = hypotheses.odds
        x, y = self.sums[Direction.FORWARD][:2, forward]
        xx, xy, yx, yy = (self.products[pair][forward, backward] for pair in ("xx", "xy", "yx", "yy"))
        # Forward the rates are x and y, backward 1-y and 1-x.
        product: Floats = (x - xy) - odds * ((x - xx) + (y - yy)) + odds**2 * (y - yx)
        if not self.neglect_excess:
            likely, unlikely, *_ = self._moments(Direction.BACKWARD, backward)
            product += hypotheses.forward * (hypotheses.backward * self.one - (likely - odds * unlikely))
            product -= hypotheses.backward * (x - odds * y)
        return product


Moments = tuple[Floats, Floats]


def _best_stakes(first: Moments, second: Moments, cross: Floats, limit: Floats) -> tuple[list[Floats], Floats]:
    """Return the stakes λ1, λ2 ≥ 0 with λ1 + λ2 ≤ limit that maximise the predicted growth, and this growth.

    The predicted growth is λ·mean - λᵀ(second moments)λ / 2.

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
    stakes = [np.array([option[side] for option in options])[best, columns] for side in (0, 1)]
    return stakes, np.array(growth)[best, columns]
