"""The privacy curve that follows from zero-concentrated DP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.curves.curve import PrivacyCurve

_ORDERS = 1 + np.geomspace(1e-3, 1e5, 1200)
_ROUND_UP = 1 + 1e-9


@dataclass(frozen=True)
class ZeroConcentratedCurve(PrivacyCurve):
    """The smallest curve at hand that every ρ-zCDP mechanism stays below: its Rényi divergence of each order α is at most αρ.

    At each ε it is the minimum over α of exp((α - 1)(αρ - ε)) (1 - 1/α)^α / (α - 1) (Canonne, Kamath, Steinke 2020), and of the
    total variation distances that follow from a Kullback-Leibler divergence of at most ρ (Pinsker; Bretagnolle and Huber).
    """

    rho: float

    kind: ClassVar[str] = "zcdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checks.positive(rho=self.rho))

    def forward(self, epsilons: Floats) -> Floats:
        excess = _ORDERS - 1
        with np.errstate(over="ignore"):  # a huge ρ promises nothing
            logs = (
                excess * (_ORDERS * self.rho - np.asarray(epsilons, dtype=np.float64)[:, None])
                + _ORDERS * np.log1p(-1 / _ORDERS)
                - np.log(excess)
            )
        by_renyi = np.exp(np.minimum(logs.min(axis=1), 0.0))
        by_total_variation = min(math.sqrt(self.rho / 2), math.sqrt(-math.expm1(-self.rho)))
        values: Floats = np.minimum(np.minimum(by_renyi, by_total_variation) * _ROUND_UP, 1.0)
        return values

    def backward(self, epsilons: Floats) -> Floats:
        return self.forward(epsilons)

    def with_noise(self, ratio: float) -> ZeroConcentratedCurve:
        return ZeroConcentratedCurve(self.rho / ratio**2)

    def describe(self) -> str:
        return f"{self.rho:.6g}-zCDP"

    def describe_noise(self) -> tuple[str, float]:
        return "noise multiplier", 1 / math.sqrt(2 * self.rho)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "rho": self.rho}
