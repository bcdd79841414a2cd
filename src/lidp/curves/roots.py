"""``root``: where a function crosses zero. Importing scipy.optimize for this takes longer than most commands run."""

from __future__ import annotations

import math
from collections.abc import Callable

from lidp.errors import InvalidArgument

_RELATIVE = 8.881784197001252e-16  # four times the distance from 1 to the next float
_MOST_STEPS = 100


def root(function: Callable[[float], float], low: float, high: float, *, tolerance: float = 1e-12) -> float:
    """Return a zero of a continuous function between two points at which its signs differ, by Brent's method.

    The steps are those of ``scipy.optimize.brentq``, and so is the result. Brent (1973), "Algorithms for Minimization Without
    Derivatives", chapter 4.

    Raises:
        InvalidArgument: if the function has the same sign at both ends.
    """
    before, here = low, high
    value_before, value = function(before), function(here)
    if value_before == 0 or value == 0:
        return before if value_before == 0 else here
    if (value_before < 0) == (value < 0):
        raise InvalidArgument(
            f"the function has the same sign at {low:g} and at {high:g}, so it need not be zero in between"
        )
    other, value_other, last, step = before, value_before, here - before, here - before
    for _ in range(_MOST_STEPS):
        if value_before != 0 and value != 0 and (value_before < 0) != (value < 0):
            other, value_other, last, step = before, value_before, here - before, here - before
        if abs(value_other) < abs(value):  # continue from the better end
            before, here, other = here, other, here
            value_before, value, value_other = value, value_other, value
        least = (tolerance + _RELATIVE * abs(here)) / 2
        half = (other - here) / 2
        if value == 0 or abs(half) < least:
            return here
        guess = half
        if abs(last) > least and abs(value) < abs(value_before):
            guess = _interpolate((before, value_before), (here, value), (other, value_other))
        accepted = guess is not half and 2 * abs(guess) < min(abs(last), 3 * abs(half) - least)
        last, step = (step, guess) if accepted else (half, half)
        before, value_before = here, value
        here += step if abs(step) > least else (least if half > 0 else -least)
        value = function(here)
    return here


Point = tuple[float, float]


def _interpolate(before: Point, here: Point, other: Point) -> float:
    """Return the step from ``here`` to the zero of a line through two points, or of an inverse parabola through three.

    The step is infinite, and so never accepted, if products of tiny values are 0.
    """
    if before[0] == other[0]:
        return -here[1] * (here[0] - before[0]) / (here[1] - before[1])
    slope_before = (before[1] - here[1]) / (before[0] - here[0])
    slope_other = (other[1] - here[1]) / (other[0] - here[0])
    divisor = slope_other * slope_before * (other[1] - before[1])
    return -here[1] * (other[1] * slope_other - before[1] * slope_before) / divisor if divisor else math.inf
