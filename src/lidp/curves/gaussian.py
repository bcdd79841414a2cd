"""The privacy curve of the Gaussian mechanism: (ε, δ) of μ-GDP, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.curves.curve import LARGEST_EPSILON, PrivacyCurve
from lidp.curves.roots import root
from lidp.errors import InvalidArgument

_ROUND_UP = 1 + 1e-8
_ROUNDING_ERROR = 8 * float(np.finfo(np.float64).eps)  # of a logarithm, relative to the numbers that it is computed from
_SMALLEST = float(np.finfo(np.float64).tiny)
_FURTHEST = 100.0  # standard deviations: beyond, every value is below the smallest float


@dataclass(frozen=True)
class GaussianCurve(PrivacyCurve):
    """The curve of μ-GDP: telling two neighbours apart is as hard as telling N(0, 1) from N(μ, 1).

    A Gaussian mechanism with noise σ and sensitivity 1 has μ = 1/σ.
    """

    mu: float

    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.positive(mu=self.mu))
        if self.mu > LARGEST_MU:
            raise InvalidArgument(f"mu must be at most {LARGEST_MU:g}, got {self.mu:g}: such a claim promises nothing")

    def forward(self, epsilons: Floats) -> Floats:
        from scipy.special import log_ndtr

        mu = self.mu
        epsilons = np.minimum(epsilons, _FURTHEST * mu)
        first = log_ndtr(mu / 2 - epsilons / mu)
        second = epsilons + log_ndtr(-mu / 2 - epsilons / mu)
        # For small μ the logarithms nearly cancel, and much of their difference is a rounding error, which is added once more.
        error = _ROUNDING_ERROR * (1 + mu + epsilons / mu + epsilons - first + np.abs(second))
        delta: Floats = np.exp(first) * -np.expm1(-np.maximum(first - second, 0.0) - error)
        return np.minimum(np.maximum(delta * _ROUND_UP, _SMALLEST), 1.0)

    def backward(self, epsilons: Floats) -> Floats:
        return self.forward(epsilons)

    @property
    def scale(self) -> float:
        return self.mu

    def with_noise(self, ratio: float) -> GaussianCurve:
        return GaussianCurve(self.mu / ratio)

    def describe(self) -> str:
        return f"{self.mu:.6g}-GDP"

    def describe_noise(self) -> tuple[str, float]:
        return "noise multiplier", 1 / self.mu

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "mu": self.mu}


LARGEST_MU = 40.0


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return δ(ε) of a μ-GDP mechanism: Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)."""
    from scipy.special import log_ndtr

    if mu == 0:
        return 0.0
    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    # In logs, so that the difference of two nearly equal numbers does not lose a small δ to rounding.
    return math.exp(first) * -math.expm1(second - first)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest ε at which a μ-GDP mechanism is (ε, δ)-DP.

    A Gaussian mechanism with noise σ and sensitivity 1 is 1/σ-GDP, and this is its exact ε.
    """
    checks.non_negative(mu=mu)
    checks.probability(delta=delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if gaussian_delta(mu, LARGEST_EPSILON) > delta:
        return LARGEST_EPSILON
    return root(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, LARGEST_EPSILON)


def renyi_epsilon(mu: float, delta: float) -> float:
    """Return an upper bound on :func:`gaussian_epsilon` by Rényi accounting over all orders, as the paper calibrates its noise.

    inf over α > 1 of αμ²/2 + log(1/(αδ))/(α-1) + log(1-1/α) (Balle et al. 2020), at least 0.
    """
    from scipy.optimize import minimize_scalar

    checks.non_negative(mu=mu)
    checks.probability(delta=delta)
    if mu == 0:
        return 0.0

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return order * mu**2 / 2 - math.log(order * delta) / excess + math.log(excess / order)

    # About where the first two terms balance; the function has its only minimum near there.
    middle = math.log(math.sqrt(2 * math.log(1 / delta)) / mu)
    minimum = minimize_scalar(at, bounds=(middle - 5, middle + 5), method="bounded", options={"xatol": 1e-10})
    return max(0.0, float(minimum.fun))


def sigma_for(epsilon: float, delta: float, *, renyi: bool = False) -> float:
    """Return the noise at which a Gaussian mechanism of sensitivity 1 is (ε, δ)-DP: exactly, or by Rényi accounting."""
    checks.positive(epsilon=epsilon)
    checks.probability(delta=delta)
    if epsilon > 500:
        raise InvalidArgument(f"epsilon must be at most 500 for a Gaussian mechanism, got {epsilon:g}")
    curve = renyi_epsilon if renyi else gaussian_epsilon
    return 1 / root(lambda mu: curve(mu, delta) - epsilon, 1e-6, 1e3)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ, up to rounding, at which μ-GDP is (ε, δ)-DP."""
    low, high = 1e-12, 1.0
    while high < LARGEST_MU and gaussian_delta(high, epsilon) <= delta:
        low, high = high, 2 * high
    if high >= LARGEST_MU:
        return LARGEST_MU
    if gaussian_delta(low, epsilon) > delta:
        return low
    return root(lambda mu: gaussian_delta(mu, epsilon) - delta, low, high)
