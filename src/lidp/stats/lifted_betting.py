"""Lifted betting: an anytime-valid, finite-sample bound for leave-one-out and replace-one scores.

For a threshold τ let x be a trial's fraction of inserted and y its fraction of held-out scores ≥ τ. Under (ε, δ)-DP the
payoff D = x - e^ε y - δ has a mean of at most 0 given the past, whatever the dependence between canaries. A gambler who
stakes λ on it, and λ' on the mirrored payoff D' of the backward direction, with λ + λ' ≤ 1/(e^ε + δ), has a wealth
Π(1 + λD + λ'D') that is a nonnegative supermartingale if τ and λ are chosen from lower-index trials only. It reaches
1/β with probability at most β, ever. So an ε at which it does is rejected, and the bound is the largest ε of a grid up
to which every ε is rejected: the null hypotheses are nested, so that costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp.claim import Direction
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidScores
from lidp.scores import Scores
from lidp.stats.betting import EpsilonGrid, WealthPath, check_grid
from lidp.stats.method import Method, check_direction, check_probabilities
from lidp.stats.thresholds import TailQuantiles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# How the bets are chosen. None of these affects validity, only how fast the wealth grows.
_WARM_UP_TRIALS = 8
_WARM_UP_SCORES = 64  # so that the first candidate thresholds are not taken from a handful of scores
_CANDIDATES = 128
_REFRESH = 1.1  # bets are chosen again each time the number of trials has grown by this factor
_PRIOR_TRIALS = 1.0  # pseudo-trials with ...
_PRIOR_SQUARE = 0.1  # ... this squared payoff, against overconfident first bets
_BOLDNESS = 0.99  # the largest stake, as a fraction of what keeps the wealth nonnegative
_HORIZON = 16  # no ε is bet on whose rejection would take this many times the trials seen, even if all canaries were found
_BLOCK_TRIALS = 4096  # bounds the memory of counting


@dataclass(frozen=True)
class LiftedBetting(Method):
    """Bets on "inserted scores exceed a threshold more often than e^ε times held-out ones", trial by trial.

    Guarantee: finite-sample and anytime-valid: with probability 1 - β the bound lies below the true ε after *every*
    trial, so it may be watched and the audit stopped at will. Needs no tuning trials. Canaries of one trial may depend
    on one another in any way; trials need not even be alike, only each valid given the ones before.

    ``resolution`` and ``largest`` describe the grid of ε.
    """

    direction: Direction = Direction.BOTH
    resolution: float = 0.01
    largest: float = 10.0

    name: ClassVar[str] = "lifted-betting"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE

    def __post_init__(self) -> None:
        check_direction(self)
        check_grid(self.resolution, self.largest)

    def check(self, scores: Scores) -> None:
        scores.arms()

    def begin(self, *, delta: float, failure_probability: float) -> LiftedBettingRun:
        """A run that takes trials as they come."""
        delta, failure_probability = check_probabilities(delta, failure_probability)
        return LiftedBettingRun(self, delta, failure_probability)

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        run = self.begin(delta=delta, failure_probability=failure_probability)
        run.update(scores)
        return run.bound()


class LiftedBettingRun:
    """The gambler's memory. Feeding trials one by one or all at once gives the same bound, bit for bit."""

    def __init__(self, method: LiftedBetting, delta: float, failure_probability: float) -> None:
        self.method = method
        self.delta = delta
        self.failure_probability = failure_probability
        self._wealth = WealthPath(EpsilonGrid(method.resolution, method.largest), failure_probability)
        self._history: list[Scores] = []
        self._trials = 0
        self._refresh_at = 0
        self._regrid_at = 0
        self._counter: _Counter | None = None
        self._bets: _Bets | None = None

    @property
    def epsilon(self) -> float:
        """The bound so far."""
        return self._wealth.epsilon

    def update(self, scores: Scores) -> float:
        """Bet on further trials, in their order; returns the bound so far."""
        inserted, held_out = scores.arms()
        if self._history and scores.design != self._history[0].design:
            raise InvalidScores(f"the run began with {self._history[0].design}, these trials have {scores.design}")
        if not self._history:
            sizes = inserted.shape[1] + held_out.shape[1]
            self._refresh_at = self._regrid_at = max(_WARM_UP_TRIALS, math.ceil(_WARM_UP_SCORES / sizes))
        done = 0
        while done < scores.trials:
            if self._trials == self._refresh_at:
                self._refresh()
            take = min(scores.trials - done, self._refresh_at - self._trials, _BLOCK_TRIALS)
            block = scores[done : done + take]
            if self._counter is not None and self._bets is not None:
                x, y = self._counter.count(block)
                self._wealth.settle(self._bets.log_growth(x, y), self._bets.window, self._trials)
            self._history.append(block)
            self._trials += take
            done += take
        return self.epsilon

    def _refresh(self) -> None:
        """Choose thresholds and stakes from all trials so far."""
        if self._counter is None or self._trials >= self._regrid_at:
            # Further trials make further tails reachable, so candidates are drawn anew at every doubling.
            self._history = [_join(self._history)]
            self._counter = _Counter(self._history[0])
            self._regrid_at = 2 * self._trials
        self._bets = _Bets(self._counter, self._wealth, self.delta, self.method.direction)
        self._refresh_at = max(self._trials + 1, int(self._trials * _REFRESH))

    def bound(self) -> EpsilonBound:
        """The bound on all trials so far, with its path."""
        scores = _join(self._history)
        thresholds: dict[str, float] = {}
        rates: dict[str, float] = {"log_wealth_at_epsilon": self._wealth.log_wealth_at(self.epsilon)}
        if self._bets is not None:
            for part, threshold in self._bets.thresholds_in_use().items():
                thresholds[part] = threshold
                for arm, values in zip(("inserted", "held_out"), scores.arms(), strict=True):
                    exceeding = float((values >= threshold).mean())
                    rates[f"{part}_{arm}"] = exceeding if part is Direction.FORWARD else 1 - exceeding
        return self.method.report(
            scores,
            self.epsilon,
            delta=self.delta,
            failure_probability=self.failure_probability,
            thresholds=thresholds,
            rates=rates,
            path=self._wealth.path,
            assumptions=("each trial's canaries are fresh and independent of the trials before",),
        )


def _join(blocks: list[Scores]) -> Scores:
    if len(blocks) == 1:
        return blocks[0]
    if not blocks:
        raise InvalidScores("no trial was given yet; call update first")
    inserted = np.concatenate([block.arms()[0] for block in blocks])
    held_out = np.concatenate([block.arms()[1] for block in blocks])
    return Scores(inserted=inserted, held_out=held_out, neighbours=blocks[0].neighbours)


class _Counter:
    """Counts exceedances of candidate thresholds, and keeps their sums and sums of products.

    The sums are of whole numbers, hence exact in float64: they do not depend on how trials were grouped.
    """

    def __init__(self, past: Scores) -> None:
        inserted, held_out = past.arms()
        self.sizes = (inserted.shape[1], held_out.shape[1])
        self.thresholds = TailQuantiles(_CANDIDATES)(np.concatenate([inserted.ravel(), held_out.ravel()]))
        self.trials = 0
        width = len(self.thresholds)
        self.x = np.zeros(width)
        self.y = np.zeros(width)
        self.xx, self.yy, self.xy = (np.zeros((width, width)) for _ in range(3))
        for start in range(0, past.trials, _BLOCK_TRIALS):
            self.count(past[start : start + _BLOCK_TRIALS])

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
        return np.cumsum(by_bin[:, :0:-1], axis=1, dtype=np.float64)[:, ::-1]


class _Bets:
    """For each ε of a window of the grid: a threshold and a stake per direction, chosen from the counter's past."""

    def __init__(self, counter: _Counter, wealth: WealthPath, delta: float, direction: Direction) -> None:
        self.counter = counter
        self.delta = delta
        self.window = wealth.grid.window(wealth.rejected, math.log(_HORIZON * counter.trials))
        self.odds = np.exp(wealth.grid.values[self.window])
        limit = _BOLDNESS / (self.odds + delta)
        rates = _Rates(counter)
        self.places = {part: rates.best_threshold(part, self.odds, delta, limit) for part in direction.parts}
        places = list(self.places.values())
        if len(places) == 1:
            mean, square = rates.payoff(direction, places[0], self.odds, delta)
            self.stakes = [np.clip(mean / square, 0.0, limit)]
        else:
            payoffs = [rates.payoff(part, place, self.odds, delta) for part, place in self.places.items()]
            self.stakes = _share_out(*payoffs, rates.cross(*places, self.odds), limit)

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


class _Rates:
    """Means and second moments of the payoffs, from the counter's sums.

    A little prior weight on a large squared payoff keeps the first bets from being overconfident.
    """

    def __init__(self, counter: _Counter) -> None:
        k, m = counter.sizes
        total = counter.trials + _PRIOR_TRIALS
        self.x, self.y = counter.x / (k * total), counter.y / (m * total)
        self.xx, self.yy, self.xy = counter.xx / (k * k * total), counter.yy / (m * m * total), counter.xy / (k * m * total)
        self.one = counter.trials / total
        self.prior_square = _PRIOR_TRIALS * _PRIOR_SQUARE / total

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
        return x - odds * y - delta, xx - 2 * odds * xy + odds**2 * yy + self.prior_square

    def best_threshold(self, part: Direction, odds: Floats, delta: float, limit: Floats) -> Ints:
        """Per ε, the threshold of the largest predicted growth if this direction were bet on alone."""
        mean, square = self.payoff(part, np.arange(len(self.x)), odds[:, None], delta)
        stake = np.clip(mean / square, 0.0, limit[:, None])
        return np.argmax(stake * (mean - stake * square / 2), axis=1)

    def cross(self, forward: Ints, backward: Ints, odds: Floats) -> Floats:
        """Mean product of the forward payoff at one threshold and the backward payoff at another (δ neglected)."""
        x, y = self.x[forward], self.y[forward]
        x_low, y_low = x - self.xx[forward, backward], y - self.xy[backward, forward]  # with 1 - x of the other
        x_high, y_high = x - self.xy[forward, backward], y - self.yy[forward, backward]  # with 1 - y of the other
        return x_high - odds * (x_low + y_high) + odds**2 * y_low


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
    growth = [
        a * mean1 + b * mean2 - (a * a * square1 + 2 * a * b * cross + b * b * square2) / 2 for a, b in options
    ]
    best = np.argmax(growth, axis=0)
    columns = np.arange(len(limit))
    return [np.array([option[side] for option in options])[best, columns] for side in (0, 1)]
