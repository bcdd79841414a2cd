"""Confidence limits for noise and participation that hold for every number of observations.

Each function takes ``tail_exponent``: a limit fails with probability at most e^-tail_exponent. :func:`tail_exponent_of` computes it
so that all limits of a diagnosis hold at once, at every number of trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_SAFETY = 1e-9  # relative rounding error of the limits, which are widened by it
_BISECTIONS = 200


def tail_exponent_of(failure_probability: float, limits: int, trials: int) -> float:
    """Return the tail exponent L of each of ``limits`` limits after ``trials`` trials.

    Guarantee: limits that each fail with probability at most e^-L hold all at once, and after every number of trials, except with
    probability ``failure_probability``. For the probabilities that any limit fails after n trials add up to at most
    failure_probability / (n·(n + 1)), and these to at most ``failure_probability`` over all n. So it does not matter when, and
    why, an audit was stopped.
    """
    return math.log(limits * trials * (trials + 1) / failure_probability)


def variance_limits(squares: float, count: float, tail_exponent: float) -> tuple[float, float]:
    """Return limits on the variance of ``count`` independent centred Gaussian numbers with this sum of squares.

    Guarantee: each limit fails with probability e^-tail_exponent, since the sum is the variance times a chi-squared number. If the
    variances differ, the lower limit is one on the largest of them and the upper limit one on the smallest, for the sum is then at
    most, and at least, what it would be if all were equal to that one.
    """
    from scipy import special

    if count <= 0:
        return 0.0, math.inf
    tail = math.exp(-tail_exponent)
    least, most = 2 * float(special.gammaincinv(count / 2, tail)), 2 * float(special.gammainccinv(count / 2, tail))
    return squares / most * (1 - _SAFETY), _ratio(squares, least) * (1 + _SAFETY)


def dependent_variance_limits(squares: float, count: float, planned: float, tail_exponent: float) -> tuple[float, float]:
    """Return limits on the variance from a mean of sums of squares of centred Gaussian numbers that may depend on one another.

    Each of several sums has ``count`` terms on average, and at most ``planned``. Terms of one sum are independent of one another,
    or become so given what came before; different sums may depend on one another in any way. ``squares`` is the mean of the sums,
    plus such means of other, independent groups of sums; so are ``count`` and ``planned``.

    Guarantee: each limit fails with probability at most e^-tail_exponent. With v the variance, the expectation of
    exp(-λS/v + ½n·log(1 + 2λ)) is 1 for each sum S of n terms, also if n depends on the terms before. By Hölder's inequality the
    expectation of the geometric mean of several such numbers is at most 1, whatever their dependence; and that of the product
    over independent groups too. By Markov's inequality it exceeds e^tail_exponent with at most that probability. λ depends on
    ``planned`` only. The lower limit is the same with -λ, for which ``count`` must not be random. If something else than noise
    adds to the numbers, the upper limit stays valid, for the squares can only grow (Anderson's inequality).
    """
    if count <= 0 or planned <= 0:
        return 0.0, math.inf
    low, high = chernoff_ratios(tail_exponent, planned)
    upper = math.inf
    if low > 0:
        exponent = (1 / low - 1) / 2
        upper = _ratio(exponent * squares, count / 2 * math.log1p(2 * exponent) - tail_exponent)
    return squares / (count * high) * (1 - _SAFETY), upper * (1 + _SAFETY)


def chernoff_ratios(tail_exponent: float, count: float) -> tuple[float, float]:
    """Return x < 1 < y at which ½·count·(x - 1 - log x) is ``tail_exponent``.

    They bound the mean of ``count`` squares of standard Gaussian numbers.
    """
    excess = 2 * tail_exponent / count

    def rate(x: float) -> float:
        return x - 1 - math.log(x)

    low = math.exp(-bisect(lambda u: math.expm1(-u) + u >= excess, 0.0, excess + 1.0))
    high = bisect(lambda x: rate(x) >= excess, 1.0, 2 * excess + 4 * math.sqrt(excess) + 4.0)
    return low, high


def rate_limits(successes: float, count: float, tail_exponent: float) -> tuple[float, float]:
    """Return limits on the probability of ``count`` independent events of which ``successes`` happened.

    Guarantee: each limit fails with probability at most e^-tail_exponent: the Chernoff bound for binomial numbers.
    """
    share = min(1.0, max(0.0, successes / count))

    def excludes(rate: float) -> bool:
        return count * _divergence(share, rate) >= tail_exponent

    lower = 0.0 if share == 0 else share - bisect(lambda gap: excludes(share - gap), 0.0, share)
    upper = 1.0 if share == 1 else share + bisect(lambda gap: excludes(share + gap), 0.0, 1 - share)
    return max(0.0, lower * (1 - _SAFETY)), min(1.0, upper * (1 + _SAFETY))


def bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the point of [low, high] from which on a condition holds, rounded up; ``high`` if it never holds."""
    if holds(low):
        return low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _divergence(share: float, rate: float) -> float:
    """Return the Kullback-Leibler divergence of a coin with probability ``share`` from one with ``rate``."""
    if not 0 < rate < 1:
        return 0.0 if share == rate else math.inf
    first = share * math.log(share / rate) if share > 0 else 0.0
    second = (1 - share) * math.log((1 - share) / (1 - rate)) if share < 1 else 0.0
    return first + second


def _ratio(numerator: float, denominator: float) -> float:
    if denominator <= 0:
        return math.inf
    return numerator / denominator
