"""How often inserted canaries took part, and how much they added each time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.diagnosis.intervals import bisect, rate_limits

LIMITS = 6
"""The number of limits on which the three intervals rest."""
_SAME_LENGTH = 0.01  # relative difference of lengths of gradients that are taken for equal

Limits = tuple[float, float]


@dataclass(frozen=True)
class Participation:
    """Limits on the sampling rate of canaries, on what they add to a batch in units of their gradient, and on the product."""

    rate: Limits
    contribution: Limits
    product: Limits


def participation(
    products: Floats,
    squares: Floats,
    lengths: Floats,
    counts: Floats,
    variances: list[tuple[Ints, Limits]],
    tail_exponent: float,
) -> Participation | None:
    """Return limits from inserted canaries that do not overlap; None if their gradients differ in length.

    The first four arguments have one number per canary: the columns product, square, length and count over all steps.
    ``variances`` has, for each parameter group, the canaries in it and limits on the variance of its noise.

    Guarantee: if at each of n steps a canary takes part with the same probability q, independently, and then adds a, all limits
    hold, unless those on variances fail, except with probability 6·e^-tail_exponent. With N the number of participations, the sum
    of n numbers is aN plus Gaussian noise, and the sum of their squares is a noncentral chi-squared number, whose deviations
    Birgé's inequality bounds. So aN and a²N are bounded, and hence a and N; q by the Chernoff bound for N; and aq, which is
    aN / n times q / (N / n), because relative limits on q are widest at the smallest N. If contributions vary, the lower limit on
    ``contribution`` is one on the largest of them, and that on ``rate`` holds, for N is at least the square of their sum divided
    by the sum of their squares; upper limits need not hold.
    """
    counted = counts > 0
    squared_lengths = lengths[counted] / counts[counted]
    if not len(squared_lengths) or squared_lengths.min() <= 0:
        return None
    if squared_lengths.max() > squared_lengths.min() * (1 + _SAME_LENGTH):
        return None
    length = math.sqrt(float(squared_lengths.mean()))
    count = float(counts.sum())
    noise = _Noise.of(counts, variances)
    if noise is None:
        return None
    total, reach = float(products.sum()) / length, math.sqrt(2 * tail_exponent * noise.most)
    first = max(0.0, total - reach), max(0.0, total + reach)
    second = noise.limits_beyond(float(squares.sum()), tail_exponent)
    least = first[0] ** 2 / second[1] if second[1] > 0 else 0.0
    most = min(count, first[1] ** 2 / second[0] if second[0] > 0 else math.inf)
    least = min(least, most)
    contribution = (
        second[0] / first[1] if first[1] > 0 else 0.0,
        second[1] / first[0] if first[0] > 0 else math.inf,
    )
    rate = rate_limits(least, count, tail_exponent)[0], rate_limits(most, count, tail_exponent)[1]
    at_least = rate_limits(least, count, tail_exponent)
    product = (
        first[0] / least * at_least[0] if least > 0 else 0.0,
        first[1] / least * at_least[1] if least > 0 else math.inf,
    )
    return Participation(rate, _divided(contribution, length), _divided(product, length))


def _divided(limits: Limits, length: float) -> Limits:
    return limits[0] / length, limits[1] / length


@dataclass(frozen=True)
class _Noise:
    """Limits on sums over all steps of canaries: of variances, and of their squares; and on the largest variance."""

    least: float
    most: float
    squared: float
    largest: float

    @classmethod
    def of(cls, counts: Floats, variances: list[tuple[Ints, Limits]]) -> _Noise | None:
        least = most = squared = largest = 0.0
        for members, (low, high) in variances:
            count = float(np.sum(counts[members]))
            if count and not math.isfinite(high):
                return None
            if count:
                least, most = least + count * low, most + count * high
                squared, largest = squared + count * high**2, max(largest, high)
        return cls(least, most, squared, largest)

    def limits_beyond(self, squares: float, tail_exponent: float) -> Limits:
        """Return limits on what canaries add to a sum of squares."""
        slack = 2 * self.largest * tail_exponent

        def spread(added: float) -> float:
            return 2 * math.sqrt((self.squared + 2 * self.largest * added) * tail_exponent)

        largest = squares + spread(squares) + 16 * self.largest * tail_exponent + 1.0
        lower = bisect(lambda added: self.most + added + spread(added) + slack >= squares, 0.0, largest)
        upper = largest - bisect(lambda gap: self.least + largest - gap - spread(largest - gap) <= squares, 0.0, largest)
        return max(0.0, lower * (1 - 1e-9)), max(0.0, upper * (1 + 1e-9))
