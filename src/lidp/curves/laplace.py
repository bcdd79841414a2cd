"""The privacy curve of the Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.curves.curve import PrivacyCurve

_RUNGS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)  # shares of the largest privacy loss, 1/scale
_ROUND_UP = 1 + 1e-12


@dataclass(frozen=True)
class LaplaceCurve(PrivacyCurve):
    """The curve of Laplace noise of this scale, for sensitivity 1: 1 - exp((ε - 1/scale)/2) below 1/scale, and 0 from there on."""

    noise_scale: float

    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_scale", checks.positive(scale=self.noise_scale))

    @property
    def largest_loss(self) -> float:
        """The ε at which the mechanism is (ε, 0)-DP."""
        return 1 / self.noise_scale

    def forward(self, epsilons: Floats) -> Floats:
        below = -np.expm1(np.minimum(epsilons - self.largest_loss, 0.0) / 2)
        return np.minimum(below * _ROUND_UP, 1.0)

    def backward(self, epsilons: Floats) -> Floats:
        return self.forward(epsilons)

    def rungs(self) -> Floats:
        return self.largest_loss * np.array(_RUNGS)

    def epsilon(self, delta: float) -> float:
        return self.largest_loss if delta == 0 else super().epsilon(delta)

    def with_noise(self, ratio: float) -> LaplaceCurve:
        return LaplaceCurve(self.noise_scale * ratio)

    def describe(self) -> str:
        return f"Laplace noise of scale {self.noise_scale:.6g} at sensitivity 1"

    def describe_noise(self) -> tuple[str, float]:
        return "Laplace scale", self.noise_scale

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "noise_scale": self.noise_scale}
