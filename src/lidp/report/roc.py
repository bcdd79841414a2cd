"""The ROC curve of a result, with a band that holds for canaries of any dependence.

The canaries of one trial may depend on each other as they like, so a trial counts as one observation: a whole empirical
distribution. Picking one canary of each trial at random would give independent scores, for which the inequality of Dvoretzky,
Kiefer, Wolfowitz and Massart bounds the largest distance Y between the empirical and the true curve. The distance X of the
curve over all canaries is at most the mean of Y over the picks, so E f(X) ≤ E f(Y) for every convex rising f, and

    P[X ≥ t] ≤ E[(Y - a)₊] / (t - a)   for every a < t.

The best a costs a factor of about e in probability, which makes the band some 13 % wider than for one canary per trial. With
coins the picked canary is inserted in N ~ Bin(n, ½) of the trials, over which the same inequality is averaged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.claim import Claim
from lidp.result import AuditResult
from lidp.scores import Scores

POINTS = 240
_LEAST_DEPTH = 0.005  # of a corner of the figure, as a share: about a pixel
_SAMPLE = 400_000  # scores from which thresholds are chosen; the rates use all scores


@dataclass(frozen=True)
class RocCurve:
    """Rates of scores at or above a threshold, for decreasing thresholds.

    A run that failed is below every threshold, as it is for every method; the curve ends at (1, 1) all the same.

    Guarantee: except with probability at most ``failure_probability``, the true rates lie within ``reach_inserted`` and
    ``reach_held_out`` of those here, at all thresholds at once and for any dependence between the canaries of a trial. This
    assumes that trials are independent and identically distributed, and for coin flips that coins are fair. With ``anytime``
    it holds after every number of trials at once, so also for an audit that stopped because of its result. Both reaches are
    None if there is no band.
    """

    thresholds: Floats
    inserted: Floats
    held_out: Floats
    failure_probability: float
    anytime: bool
    reach_inserted: float | None
    reach_held_out: float | None

    @classmethod
    def of(cls, result: AuditResult) -> RocCurve:
        """Return the curve of a result, with the band that its stopping rule allows.

        The predictor of a pair audit learns from run to run, so its scores are not identically distributed and there is no band.
        """
        # A number of trials that was fixed beforehand, and was reached.
        planned = not result.method.anytime or result.configuration.get("stop_when") == "never"
        fixed = planned and result.bound.trials >= result.planned_trials
        band = result.design.has_canaries
        return cls.of_scores(result.scores, result.bound.failure_probability, anytime=not fixed, band=band)

    @classmethod
    def of_scores(cls, scores: Scores, failure_probability: float, *, anytime: bool = True, band: bool = True) -> RocCurve:
        """Return the curve of scores, with a band if ``band`` is set."""
        failure_probability = checks.probability(failure_probability=failure_probability)
        thresholds = _thresholds(scores)
        inserted, held_out = _rates(scores, thresholds)
        reach: list[float | None] = [None, None]
        if band:
            # One half of the failure probability for each arm.
            far = distance(scores.trials, failure_probability / 2, coins=scores.has_coins, anytime=anytime)
            reach = [far / share for share in _shares(scores)]
        return cls(
            # The last threshold is below everything, failed runs included.
            thresholds=np.append(thresholds, -np.inf),
            inserted=np.append(inserted, 1.0),
            held_out=np.append(held_out, 1.0),
            failure_probability=failure_probability,
            anytime=anytime,
            reach_inserted=None if reach[0] is None else min(1.0, reach[0]),
            reach_held_out=None if reach[1] is None else min(1.0, reach[1]),
        )

    @property
    def area(self) -> float:
        """The area under the curve: how often an inserted canary scores above a held-out one, ties counted half."""
        across = np.diff(np.concatenate([[0.0], self.held_out]))
        heights = np.concatenate([[0.0], self.inserted])
        return float(np.sum(across * (heights[1:] + heights[:-1]) / 2))

    def upper(self) -> tuple[Floats, Floats]:
        """The upper edge of the band, as the corners of a staircase of (held-out, inserted) rates; empty without a band.

        Between two thresholds the true rates lie between those at the two, so the staircase turns at the far corner.
        """
        x, y = self._points(-1)
        return np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]

    def lower(self) -> tuple[Floats, Floats]:
        """The lower edge of the band."""
        x, y = self._points(+1)
        return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]

    @property
    def has_band(self) -> bool:
        """Whether there is a band that leaves some of the figure free; with few trials it covers everything."""
        if self.reach_inserted is None:
            return False
        held_out, inserted = self.lower()
        return has_visible_corner(self.upper()) or has_visible_corner((1 - held_out, 1 - inserted))

    def _points(self, sign: int) -> tuple[Floats, Floats]:
        if self.reach_inserted is None or self.reach_held_out is None:
            return np.empty(0), np.empty(0)
        x = np.concatenate([[0.0], self.held_out]) + sign * self.reach_held_out
        y = np.concatenate([[0.0], self.inserted]) - sign * self.reach_inserted
        return np.clip(x, 0.0, 1.0), np.clip(y, 0.0, 1.0)


def allowed_region(claim: Claim) -> tuple[Floats, Floats]:
    """Return the corners of the region of (held-out, inserted) rates that an (ε, δ) claim allows.

    For any threshold a true claim has inserted ≤ e^ε held-out + δ, the same with arms swapped, and both for the complements.
    """
    knee = (1 - claim.delta) / (1 + math.exp(min(claim.epsilon, 700.0)))
    corners = [(0.0, 0.0), (0.0, claim.delta), (knee, 1 - knee), (1 - claim.delta, 1.0)]
    corners += [(1.0, 1.0), (1.0, 1 - claim.delta), (1 - knee, knee), (claim.delta, 0.0)]
    return np.array([x for x, _ in corners]), np.array([y for _, y in corners])


def excluded_corners(claim: Claim) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return the corners of the two regions that an (ε, δ) claim excludes: above the allowed one, and below it."""
    x, y = allowed_region(claim)
    above, below = slice(1, 5), slice(4, 8)
    return (np.append(x[above], 0.0), np.append(y[above], 1.0)), (np.append(x[below], 1.0), np.append(y[below], 0.0))


def distance(trials: int, failure_probability: float, *, coins: bool, anytime: bool) -> float:
    """Return how far the mean over trials may be from its expectation, at all thresholds at once.

    For coins it is the distance of (1/K) Σ_k S_k (1{score ≥ τ} - p(τ)) from 0: to be divided by the share of coins that are 1.
    """
    if anytime:
        # The distance is a reverse submartingale in the number of trials: what holds after 2^j of them holds for ever
        # after, by Doob's inequality at the same price.
        epoch = trials.bit_length() - 1
        trials, failure_probability = 1 << epoch, failure_probability / ((epoch + 1) * (epoch + 2))
    # Distances in units of 1/√n, up to where the tail is far below the failure probability.
    scale = max(4.0, 3 * math.sqrt(math.log(2 / failure_probability)))
    y = np.linspace(0.0, scale, 2001)
    tail = _tail(y, trials, coins=coins)
    area = np.append(np.cumsum(((tail[1:] + tail[:-1]) / 2 * np.diff(y))[::-1])[::-1], 0.0)
    area += 2 * math.exp(-2 * scale**2)  # what lies beyond the grid, generously
    # P[X ≥ t] ≤ area(a) / (t - a) = failure probability, at the best a.
    return float(np.min(y + area / failure_probability)) / math.sqrt(trials)


def has_visible_corner(corner: tuple[Floats, Floats]) -> bool:
    """Return whether the upper corner of (held-out, inserted) rates above these is deep enough to be seen in a figure."""
    held_out, inserted = corner
    return bool(np.minimum(held_out, 1 - inserted).max() >= _LEAST_DEPTH)


def _tail(y: Floats, trials: int, *, coins: bool) -> Floats:
    """Return a bound on P[√n Y ≥ y] for one canary per trial."""
    if not coins:
        single: Floats = np.minimum(1.0, 2 * np.exp(-2 * y**2))
        return single
    # The number of heads, in steps of a twentieth of its standard deviation: each step counts as its upper end, the worst.
    step = max(1, int(math.sqrt(trials) / 40))
    reach = min(trials - trials // 2, math.ceil(6 * math.sqrt(trials)))
    ends = np.arange(trials // 2 + reach, max(0, trials // 2 - reach), -step)
    heads = np.arange(ends[-1] - step + 1, ends[0] + 1)
    log_chance = np.array(
        [
            -math.inf if k < 1 else math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
            for k in heads.tolist()
        ]
    )
    chance = np.exp(log_chance - trials * math.log(2)).reshape(-1, step).sum(axis=1)[::-1]
    chance[0] += max(0.0, 1 - chance.sum())  # the rest counts as the worst case
    tail: Floats = np.minimum(1.0, 2 * np.exp(-2 * trials * y[:, None] ** 2 / ends)) @ chance
    return tail


def _shares(scores: Scores) -> tuple[float, float]:
    """Return the shares of canaries that are inserted and held out; the rates of an arm are divided by its share."""
    if not scores.has_coins:
        return 1.0, 1.0
    heads = float(scores.flips()[1].mean())
    return max(heads, 1e-12), max(1 - heads, 1e-12)


def _thresholds(scores: Scores) -> Floats:
    """Return decreasing thresholds at which the curve is drawn, dense at both ends."""
    arrays = [scores.flips()[0]] if scores.has_coins else list(scores.arms())
    values = np.concatenate([array.ravel()[:: max(1, array.size // _SAMPLE)] for array in arrays])
    values = values[~np.isnan(values)]
    if not len(values):
        return np.array([0.0])
    tail = np.geomspace(1 / len(values), 0.05, POINTS // 4) if len(values) > 20 else np.empty(0)
    levels = np.concatenate([tail, np.linspace(0.0, 1.0, POINTS // 2), 1 - tail])
    thresholds: Floats = np.unique(np.quantile(values, levels, method="lower"))[::-1]
    return thresholds


def _rates(scores: Scores, thresholds: Floats) -> tuple[Floats, Floats]:
    """Return the shares of inserted and of held-out canaries at or above each threshold."""
    if not scores.has_coins:
        inserted, held_out = scores.arms()
        return _share_above(inserted.ravel(), thresholds), _share_above(held_out.ravel(), thresholds)
    values, coins = scores.flips()
    return _share_above(values[coins], thresholds), _share_above(values[~coins], thresholds)


def _share_above(values: Floats, thresholds: Floats) -> Floats:
    if not len(values):
        return np.zeros(len(thresholds))
    rising = thresholds[::-1]
    ran = values[~np.isnan(values)]
    counts = np.bincount(np.searchsorted(rising, ran, side="right"), minlength=len(rising) + 1)
    at_or_above: Floats = np.cumsum(counts[::-1])[: len(rising)] / len(values)
    return at_or_above
