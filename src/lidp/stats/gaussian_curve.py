"""The privacy curve of the Gaussian mechanism: (ε, δ) of μ-GDP, exactly."""

from __future__ import annotations

import math

from lidp import checks

LARGEST_EPSILON = 1000.0
"""Where the search for an ε ends; a curve that needs more is reported as this."""


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) of a μ-GDP mechanism: Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)."""
    from scipy.special import log_ndtr

    if mu == 0:
        return 0.0
    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    # In logs, so that small δ do not drown in the rounding of two nearly equal numbers.
    return math.exp(first) * -math.expm1(second - first)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest ε at which a μ-GDP mechanism is (ε, δ)-DP.

    A Gaussian mechanism with noise σ and sensitivity 1 is 1/σ-GDP, and this is its exact ε.
    """
    from scipy.optimize import brentq

    checks.non_negative(mu=mu)
    checks.probability(delta=delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if gaussian_delta(mu, LARGEST_EPSILON) > delta:
        return LARGEST_EPSILON
    return float(brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, LARGEST_EPSILON, xtol=1e-12))
