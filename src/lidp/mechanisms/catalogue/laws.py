"""Compute ε at a given δ exactly: for a pair of discrete distributions, for Laplace noise, and by quadrature."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from lidp import checks
from lidp.arrays import Floats


def discrete_epsilon(p: Floats, q: Floats, delta: float) -> float:
    """Return the smallest ε ≥ 0 at which two discrete distributions are (ε, δ)-indistinguishable in both directions.

    Both are given by the probabilities of the same outcomes.
    """
    checks.delta(delta=delta)
    return max(_one_sided_epsilon(np.asarray(p, np.float64), np.asarray(q, np.float64), delta) for p, q in ((p, q), (q, p)))


def _one_sided_epsilon(p: Floats, q: Floats, delta: float) -> float:
    # By the Neyman-Pearson lemma, the event that needs the largest ε consists of all outcomes above some likelihood ratio.
    possible = p > 0
    p, q = p[possible], q[possible]
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(q) - np.log(p), kind="stable")
        above_p, above_q = np.cumsum(p[order]) - delta, np.cumsum(q[order])
        # An excess of the size of rounding errors does not count.
        exceeds = above_p > 1e-14 if delta > 0 else above_p > 0
        return max(0.0, float(np.max(np.log(above_p[exceeds]) - np.log(above_q[exceeds]), initial=0.0)))


def laplace_epsilon(epsilon: float, delta: float) -> float:
    """Return ε at δ of one number with Laplace noise that is ε-DP at δ = 0, from δ(ε') = 1 - exp((ε' - ε)/2)."""
    return max(0.0, checks.positive(epsilon=epsilon) + 2 * math.log1p(-checks.delta(delta=delta)))


def twice_laplace_epsilon(epsilon: float, delta: float) -> float:
    """Return ε at δ of two independent numbers with Laplace noise, each of which is ε-DP at δ = 0.

    The privacy loss of one number is ε with probability 1/2, and has the density exp(-(ε - l)/2)/4 in -ε < l < ε. For the sum of
    two, this gives δ(2ε - g) = 1 - exp(-g/2)(1 + g/4) for 0 ≤ g ≤ 2ε, which is inverted by bisection.
    """
    low, high = 0.0, 2 * checks.positive(epsilon=epsilon)
    checks.delta(delta=delta)
    for _ in range(100):
        middle = (low + high) / 2
        if 1 - math.exp(-middle / 2) * (1 + middle / 4) <= delta:
            low = middle
        else:
            high = middle
    return 2 * epsilon - low


def laplace_cdf(x: Floats, scale: float) -> Floats:
    """Return P(noise ≤ x) of Laplace noise; scale 0 gives a step at 0. The left tail has full relative accuracy."""
    if scale == 0:
        return (x >= 0).astype(np.float64)
    half = np.exp(-np.abs(x) / scale) / 2
    cdf: Floats = np.where(x < 0, half, 1 - half)
    return cdf


def laplace_density(x: Floats, scale: float) -> Floats:
    """Return the density of Laplace noise at x."""
    density: Floats = np.exp(-np.abs(x) / scale) / (2 * scale)
    return density


def quadrature(breaks: Floats, scale: float, width: float) -> tuple[Floats, Floats]:
    """Return nodes and weights for integrals over the line.

    Integrands must be smooth between the breaks, and negligible 40 scales beyond them. The rule is Gauss-Legendre on panels no
    wider than ``width``, which is practically exact for products of exponentials.
    """
    ends = np.unique(np.concatenate([breaks, [breaks.min() - 40 * scale, breaks.max() + 40 * scale]]))
    edges = np.unique(np.concatenate([np.linspace(a, b, 1 + math.ceil((b - a) / width)) for a, b in pairwise(ends)]))
    x, w = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
