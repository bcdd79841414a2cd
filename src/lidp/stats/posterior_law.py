"""The most that an output can tell about one fair coin, for mechanisms with a given privacy curve.

Given the output, let π be the probability that the coin is 1. A privacy curve limits the law of π: for t = e^e/(1+e^e), the mean of
max(π - t, 0) is ½(1-t) times the hockey-stick divergence of order e, so at most ½(1-t)·h⁺(e); that of max(1 - π - t, 0) is at most
½(1-t)·h⁻(e). The mean of max(π - t, 0) is a convex function of t. It lies below the lower convex hull of its upper bounds on a
grid, and that hull is the same function for a law with finitely many values. So the mean of every convex function of π, under every
mechanism with the curve, is at most its mean under that law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lidp.arrays import Floats
from lidp.curves import PrivacyCurve
from lidp.stats.claimed_curve import grid_of


@dataclass(frozen=True)
class CertaintyLaw:
    """The law of the certainty |2π - 1| with which an output tells a fair coin, as values in increasing order.

    Guarantee: for every mechanism with the curve, and every convex, symmetric function of 2π - 1, its mean is at most that under
    this law.
    """

    values: Floats
    probabilities: Floats


@lru_cache(maxsize=256)
def certainty_law(curve: PrivacyCurve) -> CertaintyLaw:
    """Return the largest law of certainties, in the convex order, that a curve allows, or a slightly larger one."""
    corners = _lower_hull(_upper_bounds(curve))
    slopes = [-1.0, *(_slope(one, other) for one, other in pairwise(corners)), 0.0]
    probabilities = np.maximum(np.diff(slopes), 0.0)
    certainties = np.array([1 - 2 * corner.distance for corner in corners])
    order = np.argsort(certainties, kind="stable")
    return CertaintyLaw(certainties[order], probabilities[order] / probabilities.sum())


class _Point(NamedTuple):
    """An upper bound at some t: on the mean of max(π - t, 0) if t is above ½, on that of max(t - π, 0) otherwise.

    ``distance`` is that of t from the nearer one of 0 and 1, which is exact where t is rounded.
    """

    above: bool
    distance: float
    value: float


def _upper_bounds(curve: PrivacyCurve) -> list[_Point]:
    """Return upper bounds by increasing t from 0 to 1."""
    rungs = grid_of(curve)
    forward, backward = curve.both(rungs)
    distances = 1 / (1 + np.exp(rungs))
    # At t = ½, the first rung, both bounds are on the same mean.
    forward[0] = backward[0] = min(forward[0], backward[0])
    below = [_Point(False, *pair) for pair in zip(distances, distances * backward / 2, strict=True)]
    above = [_Point(True, *pair) for pair in zip(distances[1:], distances[1:] * forward[1:] / 2, strict=True)]
    return [_Point(False, 0.0, 0.0), *below[::-1], *above, _Point(True, 0.0, 0.0)]


def _lower_hull(points: list[_Point]) -> list[_Point]:
    """Return the corners of the lower convex hull of the mean of max(π - t, 0)."""
    corners: list[_Point] = []
    for point in points:
        if corners and corners[-1][:2] == point[:2]:  # rungs so large that they round to the same t
            continue
        while len(corners) > 1 and _slope(corners[-2], corners[-1]) >= _slope(corners[-1], point):
            corners.pop()
        corners.append(point)
    return corners


def _slope(left: _Point, right: _Point) -> float:
    """Return the slope between two points of the mean of max(π - t, 0), which is ½ - t plus the mean of max(t - π, 0)."""
    if left.above:
        return (right.value - left.value) / (left.distance - right.distance)
    if not right.above:
        return (right.value - left.value) / (right.distance - left.distance) - 1
    return (right.value - left.value - 0.5 + left.distance) / (1 - right.distance - left.distance)
