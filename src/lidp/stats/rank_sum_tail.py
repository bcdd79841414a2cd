"""How large a weighted sum of right minus wrong guesses about independent coins can get, for a given privacy curve.

Let w_1, ..., w_N be fixed weights. A rule looks at the outputs about N fair coins, guesses each coin, and gives each guess one of
the weights. T is the sum of the weights of right guesses minus that of wrong ones. Suppose that the outputs about different coins
are independent, and each has a privacy curve. Given all outputs, the guess about coin k is right with probability at most
½(1 + m_k), where m_k is the certainty of that output, independently of other guesses. For a fixed assignment of weights, P[T ≥ c]
given the outputs is linear in each m_k, so its maximum over assignments is convex in each, and its mean is at most that under the
law of :func:`lidp.stats.posterior_law.certainty_law`. Two bounds on it are computed, and the smaller one counts.

Both use this: for any functions K(w, m) and φ(m), every assignment has Σ K(w_k, m_k) ≤ Σ φ(m_k) + Σ φ*(w_j), where φ*(w) is the
maximum of K(w, m) - φ(m) over m. The right side does not depend on the assignment, and Σ φ(m_k) is a sum of independent terms.

- *Exponential*: E[exp(λT)] given the outputs is exp Σ K with K = log(cosh λw + m sinh λw).
- *Normal*: T has mean D = Σ w·m and variance s² = Σ w²(1 - m²), and the Berry-Esseen theorem bounds its distance from the normal
  law. For any a > 0, K = w·m - a·w²·m² bounds D + a·s² by some y. If y is below c, then (c - D)/s is at least 2√(a·(c - y)),
  whatever D and s are. The normal tail there is a convex function of Σ φ(m_k), so rounding each term to a grid at random, with its
  mean kept, can only increase the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.stats.posterior_law import CertaintyLaw

BERRY_ESSEEN = 0.56
"""The constant of the theorem for independent terms with different laws (Shevtsova 2010)."""
_LEVELS = 256  # different weights
_CAPPED_SHARE = 0.9  # the largest tenth of the weights are equal: larger ones would make the normal bound worse
_GRID = 64  # steps of the grid to which terms are rounded
_NEGLIGIBLE_LOG = 40.0  # sums outside the window of the convolution have probability e^-40
_RARE_LOG = 14.0  # the normal bound leaves out an event of probability e^-14, which is added
_NUMERICAL_ERROR = 1e-9
_ERROR_PER_COIN = 1e-15  # powers of a Fourier transform multiply its rounding error
_TILTS = (0.8, 1.0, 1.2)  # values of λ and a that are tried, in units of those for a normal law


@dataclass(frozen=True)
class Weights:
    """The weights of N guesses in increasing order: ``counts[j]`` guesses have the weight ``values[j]``."""

    values: Floats
    counts: Ints

    @classmethod
    def for_law(cls, law: CertaintyLaw, coins: int) -> Weights:
        """Return weights that are as large as the certainties of a law, up to a cap; the largest is 1."""
        levels = min(_LEVELS, coins)
        shares = np.minimum((np.arange(levels) + 0.5) / levels, _CAPPED_SHARE)
        ranks = np.searchsorted(np.cumsum(law.probabilities), shares)
        values = law.values[np.minimum(ranks, len(law.values) - 1)]
        largest = float(values[-1])
        counts = np.diff(np.arange(levels + 1) * coins // levels)
        return cls(np.maximum(values / largest, 1e-3) if largest > 0 else np.ones(levels), counts)

    @property
    def coins(self) -> int:
        """The number of weights."""
        return int(self.counts.sum())

    def total(self, power: int = 1) -> float:
        """Return the sum of a power of the weights."""
        return float(self.counts @ self.values**power)

    def each(self) -> Floats:
        """Return all weights, one by one, in increasing order."""
        return np.repeat(self.values, self.counts)


def tail_bound(total: float, weights: Weights, law: CertaintyLaw) -> float:
    """Return an upper bound on the probability that T is at least ``total``; see the module.

    Guarantee: finite-sample, for every rule and every mechanism whose outputs about the coins are independent and have the curve
    of the law or a smaller one.
    """
    paired = _paired_weights(weights, law)
    mean = weights.coins * float(law.probabilities @ (paired * law.values))
    variance = weights.total(2) - weights.coins * float(law.probabilities @ (paired * law.values) ** 2)
    if total <= mean or variance <= 0:
        return 1.0
    usual = (total - mean) / variance
    bounds = [_exponential_bound(total, weights, law, paired, tilt * usual) for tilt in _TILTS]
    bounds += [_normal_bound(total, weights, law, paired, tilt * usual / 2) for tilt in _TILTS]
    return min(1.0, min(bounds) + max(_NUMERICAL_ERROR, _ERROR_PER_COIN * weights.coins))


def _paired_weights(weights: Weights, law: CertaintyLaw) -> Floats:
    """Return for each certainty the weight of the same rank."""
    middles = np.cumsum(law.probabilities) - law.probabilities / 2
    ranks = (np.cumsum(weights.counts) - weights.counts / 2) / weights.coins
    return np.interp(middles, ranks, weights.values)


def _separate(
    weights: Weights, law: CertaintyLaw, slopes: Floats, joint: Callable[[Floats, Floats], Floats]
) -> tuple[Floats, float]:
    """Return φ at each certainty and the sum of φ* over all weights, for φ with these slopes; any slopes give a valid bound."""
    steps = (slopes[1:] + slopes[:-1]) / 2 * np.diff(law.values)
    terms = np.concatenate([[0.0], np.cumsum(steps)])
    conjugate = (joint(weights.values[:, None], law.values[None, :]) - terms).max(axis=1)
    return terms, float(weights.counts @ conjugate)


def _exponential_bound(total: float, weights: Weights, law: CertaintyLaw, paired: Floats, tilt: float) -> float:
    """Return the bound from the mean of exp(tilt·T)."""
    if tilt * weights.values[-1] > 300:  # hyperbolic functions would overflow
        return 1.0
    cosh, sinh = np.cosh(tilt * paired), np.sinh(tilt * paired)
    terms, rest = _separate(
        weights, law, sinh / (cosh + law.values * sinh), lambda w, m: np.log(np.cosh(tilt * w) + m * np.sinh(tilt * w))
    )
    largest = float(terms.max())
    mean = largest + math.log(float(law.probabilities @ np.exp(terms - largest)))
    return math.exp(min(0.0, weights.coins * mean + rest - tilt * total))


def _normal_bound(total: float, weights: Weights, law: CertaintyLaw, paired: Floats, tilt: float) -> float:
    """Return the bound from the normal law, with ``tilt`` as the a of the module."""
    from scipy.special import ndtr

    distance = _distance_from_normal(weights, law)
    if distance >= 1:
        return 1.0
    terms, rest = _separate(
        weights, law, paired - 2 * tilt * paired**2 * law.values, lambda w, m: w * m - tilt * (w * m) ** 2
    )
    sums, probabilities = _law_of_sum(terms, law.probabilities, weights.coins)
    gaps = total - rest - tilt * weights.total(2) - sums
    least = 0.25 * float(probabilities @ gaps)
    if least <= 0:
        return 1.0
    tails = ndtr(-2 * np.sqrt(tilt * np.maximum(gaps, least)))
    at_least = float(ndtr(-2 * math.sqrt(tilt * least)))
    # Below the least gap, a line through probability 1 at a gap of 0 is larger, and keeps the function convex.
    tails = np.where(gaps >= least, tails, 1 - (1 - at_least) * gaps / least)
    return float(probabilities @ tails) + distance


def _distance_from_normal(weights: Weights, law: CertaintyLaw) -> float:
    """Return an upper bound on the distance of the law of T given the outputs from a normal law; infinity if there is none.

    The variance lost to certainty is Σ w²m² ≤ √(Σ w⁴ · Σ m⁴), and Σ m⁴ is bounded by Bernstein's inequality, except for a rare
    event whose probability is added.
    """
    fourth = float(law.probabilities @ law.values**4)
    spread = float(law.probabilities @ law.values**8) - fourth**2
    most = weights.coins * fourth + math.sqrt(2 * _RARE_LOG * weights.coins * max(spread, 0.0)) + _RARE_LOG
    variance = weights.total(2) - math.sqrt(weights.total(4) * most)
    if variance <= 0:
        return math.inf
    return float(BERRY_ESSEEN * weights.total(3) / variance**1.5 + math.exp(-_RARE_LOG))


def _law_of_sum(terms: Floats, probabilities: Floats, number: int) -> tuple[Floats, Floats]:
    """Return values and probabilities of the sum of ``number`` independent terms, each rounded to a grid with its mean kept.

    The convolution is computed on a window outside which the sum lies with negligible probability, by Bernstein's inequality.
    """
    lowest, step = float(terms.min()), float(np.ptp(terms)) / _GRID
    if step == 0:
        return np.array([number * lowest]), np.ones(1)
    positions = (terms - lowest) / step
    floors = np.minimum(positions.astype(np.int64), _GRID - 1)
    grid = np.zeros(_GRID + 1)
    np.add.at(grid, floors, probabilities * (1 - (positions - floors)))
    np.add.at(grid, floors + 1, probabilities * (positions - floors))
    mean = float(grid @ np.arange(_GRID + 1))
    variance = number * float(grid @ (np.arange(_GRID + 1) - mean) ** 2)
    linear = _NEGLIGIBLE_LOG * _GRID / 3
    half = linear + math.sqrt(linear**2 + 2 * _NEGLIGIBLE_LOG * variance)
    window = 1 << math.ceil(math.log2(2 * half + _GRID + 2))
    law = np.maximum(np.fft.irfft(np.fft.rfft(grid, window) ** number, window), 0.0)
    start = math.floor(number * mean - window / 2)
    sums = start + (np.arange(window) - start) % window
    return (number * lowest + step * sums).astype(np.float64), law.astype(np.float64)
