"""The privacy curve of a claim at a single point (ε, δ)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.curves.curve import PrivacyCurve

_ROUND_UP = 1 + 1e-12


@dataclass(frozen=True)
class PointCurve(PrivacyCurve):
    """The largest curve of any (ε, δ)-DP mechanism.

    It belongs to the mechanism that reveals everything with probability δ and answers by randomised response otherwise.
    """

    at_epsilon: float
    delta: float

    kind: ClassVar[str] = "point"

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_epsilon", checks.non_negative(at_epsilon=self.at_epsilon))
        object.__setattr__(self, "delta", checks.delta(delta=self.delta))

    def forward(self, epsilons: Floats) -> Floats:
        # (e^ε - e^e) / (1 + e^ε) with numerator and denominator divided by e^ε, which may overflow.
        excess = -np.expm1(np.minimum(epsilons - self.at_epsilon, 0.0)) / (1 + np.exp(-self.at_epsilon))
        values: Floats = np.minimum((self.delta + (1 - self.delta) * excess) * _ROUND_UP, 1.0)
        return values

    def backward(self, epsilons: Floats) -> Floats:
        return self.forward(epsilons)

    def rungs(self) -> Floats:
        return np.array([self.at_epsilon])

    def epsilon(self, delta: float) -> float:
        return self.at_epsilon if delta == self.delta else super().epsilon(delta)

    def with_noise(self, ratio: float) -> PointCurve:
        return PointCurve(self.at_epsilon / ratio, self.delta)

    def describe(self) -> str:
        return f"({self.at_epsilon:.6g}, {self.delta:.6g})-DP"

    def describe_noise(self) -> tuple[str, float]:
        return "1/ε", 1 / self.at_epsilon if self.at_epsilon else np.inf

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "at_epsilon": self.at_epsilon, "delta": self.delta}
