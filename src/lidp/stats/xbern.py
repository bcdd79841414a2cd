"""Exchangeable Bernoulli (XBern) vectors: moments, and confidence limits of any order from one recursion.

The K indicators "score of canary k is beyond the threshold" of one trial are dependent but exchangeable. Their
law is given by the moments μ_l, the probability that l given indicators are all 1. A first-order interval for μ_1
must allow for full dependence; an interval of order L = 2, 4, 8, ... measures the dependence through
μ_2, ..., μ_L. References: Pillutla et al. 2023, Appendix C, with the corrections listed in the methods page.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from lidp.arrays import Floats, Ints
from lidp.errors import InvalidArgument, MethodNotApplicable

_FEW = 12  # up to this many thresholds, comparing is faster than sorting


def moment_table(canaries: int, order: int) -> Floats:
    """Return m_l for l = 1..order (rows) when c = 0..canaries indicators are 1 (columns), by the recurrence."""
    if order > canaries:
        raise MethodNotApplicable(f"moment {order} needs at least {order} canaries per trial, there are {canaries}")
    ones = np.arange(canaries + 1, dtype=np.float64)
    table = np.empty((order, canaries + 1))
    table[0] = ones / canaries
    for level in range(1, order):
        table[level] = table[level - 1] * (ones - level) / (canaries - level)
    # The recurrence multiplies by a negative number once, past an exact zero; keep the zero.
    return np.maximum(table, 0.0)


def moments(indicators: ArrayLike, order: int) -> Floats:
    """Return the empirical moments μ̂_1..μ̂_order of an (n, K) array of 0/1 indicators."""
    ones = np.asarray(indicators)
    if ones.ndim != 2 or ones.size == 0 or not np.isin(ones, (0, 1)).all():
        raise InvalidArgument(f"indicators must be a non-empty (trials, canaries) array of 0 and 1, got shape {ones.shape}")
    counts = ones.astype(np.int64).sum(axis=1)
    result: Floats = moment_table(ones.shape[1], order)[:, counts].mean(axis=1)
    return result


def tail_histogram(scores: Floats, thresholds: Floats, *, strict: bool = False) -> Ints:
    """Count, for each threshold, the trials that have exactly c scores beyond it, c = 0..K: an array (thresholds, K + 1).

    "Beyond" is ``>=``, or ``>`` if strict. Takes O(nK) memory: no (trials, canaries, thresholds) array is ever built.
    Few thresholds are compared with the scores one by one. For many, the scores are sorted along the longer axis: either each
    trial's scores, in which a threshold's position gives the count; or the j-th largest scores of all trials, since a trial has at
    least j scores beyond a threshold exactly if its j-th largest score is beyond it.
    """
    canaries = scores.shape[1]
    failed = np.isnan(scores[:, 0])
    if failed.any():  # a run that failed is in no rejection set
        histogram = tail_histogram(scores[~failed], thresholds, strict=strict)
        histogram[:, 0] += int(failed.sum())
        return histogram
    trials = len(scores)
    if len(thresholds) <= _FEW:
        beyond = np.greater if strict else np.greater_equal
        counts = (np.count_nonzero(beyond(scores, threshold), axis=1) for threshold in thresholds)
        return np.array([np.bincount(count, minlength=canaries + 1) for count in counts])
    rows = np.sort(scores, axis=1)
    side: Literal["left", "right"] = "right" if strict else "left"
    if trials < canaries:
        histogram = np.zeros((len(thresholds), canaries + 1), dtype=np.int64)
        columns = np.arange(len(thresholds))
        for row in rows:
            histogram[columns, canaries - np.searchsorted(row, thresholds, side=side)] += 1
        return histogram
    # at_least[j, i]: trials with at least j scores beyond threshold i.
    at_least = np.zeros((canaries + 2, len(thresholds)), dtype=np.int64)
    at_least[0] = trials
    for j, column in enumerate(np.sort(np.ascontiguousarray(rows.T[::-1]), axis=1), start=1):
        at_least[j] = trials - np.searchsorted(column, thresholds, side=side)
    return np.ascontiguousarray((at_least[:-1] - at_least[1:]).T)


def histogram_moments(histogram: Ints, order: int) -> Floats:
    """Return the empirical moments (order, thresholds) of the counts of :func:`tail_histogram`."""
    trials = histogram[0].sum()
    result: Floats = moment_table(histogram.shape[1] - 1, order) @ histogram.T / trials
    return result


def variance_coefficients(canaries: int, level: int) -> Floats:
    """Return the coefficients of μ_level..μ_2level in E[m_level²]; subtract μ_level² to get the variance of m_level.

    m_level² is a sum over pairs of level-subsets; C(K,j) C(j,l) C(l,2l-j) pairs have a union of size j.
    """
    total = math.comb(canaries, level) ** 2
    return np.array(
        [
            math.comb(canaries, j) * math.comb(j, level) * math.comb(level, 2 * level - j) / total
            for j in range(level, 2 * level + 1)
        ]
    )


def variance_limit(mean: Floats, linear: float, constant: Floats | float, spread: float, *, upper: bool) -> Floats:
    """Return the extreme x in [0, 1] with ±(x - mean) ≤ sqrt(spread · max(0, linear·x + constant - x²)).

    The right side holds a variance that is itself a function of the unknown x, so the limit is a root of a quadratic,
    but never nearer than ``mean``: where the variance would be negative the inequality asks for ±(x - mean) ≤ 0.
    """
    if not math.isfinite(spread):  # a deviation too large to compute excludes nothing
        return np.full_like(mean, 1.0 if upper else 0.0)
    a = 1.0 + spread
    half_b = mean + spread * linear / 2
    c = mean**2 - spread * np.asarray(constant)
    discriminant = half_b**2 - a * c
    root = np.sqrt(np.maximum(discriminant, 0.0))
    if upper:
        return np.clip(np.where(discriminant >= 0, np.maximum(mean, (half_b + root) / a), mean), 0.0, 1.0)
    # c / (half_b + root) is the smaller root without cancellation; c ≤ 0 means that 0 is not excluded.
    with np.errstate(invalid="ignore", divide="ignore"):
        smaller = np.where(c > 0, c / (half_b + root), 0.0)
    return np.clip(np.where(discriminant >= 0, np.minimum(mean, smaller), mean), 0.0, 1.0)


def check_order(order: int, *, canaries: int | None = None) -> None:
    """Refuse orders that are not powers of two, or larger than the number of canaries."""
    if isinstance(order, bool) or not isinstance(order, int) or order < 1 or order & (order - 1):
        raise InvalidArgument(f"order must be a power of two (1, 2, 4, ...), got {order!r}")
    if canaries is not None and order > canaries:
        best = 1 << (canaries.bit_length() - 1)
        raise MethodNotApplicable(
            f"order {order} needs at least {order} canaries per trial, these scores have {canaries}; use order={best}"
        )


StepOverride = Callable[[Floats, list[Floats]], Floats]


def mean_limit(
    moments_: Floats,
    canaries: int,
    *,
    spread: float,
    slack: float,
    upper: bool,
    steps: dict[int, StepOverride] | None = None,
) -> Floats:
    """Return the one-sided confidence limit for μ_1 from the empirical moments μ̂_1..μ̂_L (rows), for every column.

    Moments above L/2 get first-order upper limits (variance ≤ μ(1-μ)); each lower one uses the exact variance with
    the upper limits of the moments it involves. ``spread`` and ``slack`` come from the deviation inequality
    mean - x ≤ sqrt(spread · variance) + slack that each of the L limits uses at 1/L of the failure probability.

    Guarantee: fails with at most the sum of the L failure probabilities, if each deviation inequality holds.

    ``steps`` replaces the limit of single levels, to reproduce formulas as printed.
    """
    order = len(moments_)
    limits: list[Floats] = [moments_[0]] * (order + 1)
    for level in range(order, 0, -1):
        side = upper or level > 1
        mean = moments_[level - 1]
        shifted = mean + slack if side else mean - slack
        if steps and level in steps:
            limits[level] = steps[level](mean, limits)
        elif 2 * level > order:
            limits[level] = variance_limit(shifted, 1.0, 0.0, spread, upper=side)
        else:
            first, *rest = variance_coefficients(canaries, level)
            constant = sum((weight * limits[level + 1 + i] for i, weight in enumerate(rest)), start=np.zeros_like(mean))
            limits[level] = variance_limit(shifted, float(first), constant, spread, upper=side)
    return limits[1]
