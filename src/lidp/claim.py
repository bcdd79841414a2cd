"""What is claimed, about which neighbours, and which of the two inequalities is tested."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lidp import checks
from lidp.curves import (
    EventCurve,
    GaussianCurve,
    LaplaceCurve,
    PointCurve,
    PrivacyCurve,
    ZeroConcentratedCurve,
    curve_from_json,
)
from lidp.curves.events import event_to_plain
from lidp.curves.neighbours import Neighbours
from lidp.errors import InvalidArgument
from lidp.rounding import at_most, claimed, exact

__all__ = ["Claim", "Direction", "Neighbours"]

USUAL_DELTA = 1e-5
"""The δ at which a curve's ε is stated if none is named."""
_SAME_EPSILON = 1e-3  # versions of the accountant agree on ε up to this, relatively


class Direction(StrEnum):
    """Which DP inequality is tested.

    ``FORWARD`` is the paper's: P[A(D1) ∈ R] ≤ e^ε P[A(D0) ∈ R] + δ, where D1 has the canary.
    ``BACKWARD`` swaps D0 and D1. ``BOTH`` tests the two at one failure probability, so each test is a little weaker.
    """

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "both"

    @property
    def parts(self) -> tuple[Direction, ...]:
        """The single directions that this one consists of: two for ``BOTH``, else itself."""
        if self is Direction.BOTH:
            return (Direction.FORWARD, Direction.BACKWARD)
        return (self,)


@dataclass(frozen=True)
class Claim:
    """The statement under audit: the mechanism is (ε, δ)-differentially private, or stays below a whole privacy curve.

    ``Claim(epsilon=2, delta=1e-5)`` claims one point. The class methods claim a curve: all that an accountant promises. Then
    ``epsilon`` is what the curve promises at ``delta``, or more, so that the claim can be said in one sentence.
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    curve: PrivacyCurve | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.non_negative(epsilon=self.epsilon))
        object.__setattr__(self, "delta", checks.delta(delta=self.delta))
        object.__setattr__(self, "neighbours", checks.member(Neighbours, neighbours=self.neighbours))
        curve: Any = self.curve
        if isinstance(curve, Mapping):
            object.__setattr__(self, "curve", curve_from_json(curve))
        elif curve is not None and not isinstance(curve, PrivacyCurve):
            raise InvalidArgument(f"curve must be a PrivacyCurve, got {curve!r}; try Claim.gaussian(mu=0.5)")
        if self.curve is None:
            return
        if isinstance(self.curve, EventCurve) and self.curve.neighbours is not self.neighbours:
            raise InvalidArgument(
                f"the curve is for {self.curve.neighbours} neighbours, the claim for {self.neighbours}; "
                "a curve for one relation says nothing about the other"
            )
        stated = self.curve.epsilon(self.delta)
        if stated > self.epsilon * (1 + _SAME_EPSILON):
            raise InvalidArgument(
                f"{self.curve} has ε = {stated:.6g} at δ = {self.delta:g}, above the {self.epsilon:g} that is claimed; "
                "make the claim with Claim.of_curve, which computes ε"
            )

    @classmethod
    def of_curve(
        cls, curve: PrivacyCurve, *, delta: float = USUAL_DELTA, neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    ) -> Claim:
        """Return the claim that a mechanism stays below a curve; its ε is stated at ``delta``."""
        if not isinstance(curve, PrivacyCurve):
            raise InvalidArgument(f"curve must be a PrivacyCurve, got {curve!r}; try Claim.gaussian(mu=0.5)")
        delta = checks.delta(delta=delta)
        epsilon = curve.epsilon(delta)
        if math.isinf(epsilon):
            remedy = "name a delta above 0" if delta == 0 else "name a larger delta, or claim less"
            raise InvalidArgument(f"{curve} has no finite ε at delta={delta:g}; {remedy}")
        return cls(epsilon, delta, checks.member(Neighbours, neighbours=neighbours), curve)

    @classmethod
    def gaussian(
        cls, mu: float, *, delta: float = USUAL_DELTA, neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    ) -> Claim:
        """Claim μ-GDP, which a Gaussian mechanism with noise σ and sensitivity 1 has for μ = 1/σ."""
        return cls.of_curve(GaussianCurve(mu), delta=delta, neighbours=neighbours)

    @classmethod
    def laplace(cls, scale: float, *, delta: float = 0.0, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Claim:
        """Claim the curve of Laplace noise of this scale, for sensitivity 1."""
        return cls.of_curve(LaplaceCurve(scale), delta=delta, neighbours=neighbours)

    @classmethod
    def zcdp(cls, rho: float, *, delta: float = USUAL_DELTA, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Claim:
        """Claim ρ-zCDP, by the smallest curve at hand that follows from it."""
        return cls.of_curve(ZeroConcentratedCurve(rho), delta=delta, neighbours=neighbours)

    @classmethod
    def dpsgd(
        cls,
        *,
        noise_multiplier: float,
        sampling_rate: float,
        steps: int,
        delta: float = USUAL_DELTA,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Claim:
        """Claim what accounting with privacy loss distributions promises for DP-SGD with Poisson sampling."""
        step: dict[str, Any] = {
            "event": "GaussianDpEvent",
            "noise_multiplier": checks.positive(noise_multiplier=noise_multiplier),
        }
        rate = checks.share(sampling_rate=sampling_rate)
        if rate < 1:
            step = {"event": "PoissonSampledDpEvent", "sampling_probability": rate, "of": step}
        event = {"event": "SelfComposedDpEvent", "count": checks.count(steps=steps), "of": step}
        return cls._of_event(event, delta, neighbours)

    @classmethod
    def from_event(
        cls, event: Any, *, delta: float = USUAL_DELTA, neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    ) -> Claim:
        """Claim the curve of an event of ``dp-accounting``, by its PLD accountant."""
        return cls._of_event(event_to_plain(event), delta, neighbours)

    @classmethod
    def _of_event(cls, plain: Mapping[str, Any], delta: float, neighbours: Neighbours | str) -> Claim:
        relation = checks.member(Neighbours, neighbours=neighbours)
        return cls.of_curve(EventCurve(json.dumps(plain), relation), delta=delta, neighbours=relation)

    def with_curve(self, curve: PrivacyCurve) -> Claim:
        """Return the claim about a point and the curve from which it follows; the claim itself if it does not follow."""
        if curve.epsilon(self.delta) > self.epsilon * (1 + _SAME_EPSILON):
            return self
        return Claim(self.epsilon, self.delta, self.neighbours, curve)

    @property
    def point(self) -> Claim:
        """The claim about the point (ε, δ) alone, which follows from the curve."""
        return self if self.curve is None else Claim(self.epsilon, self.delta, self.neighbours)

    @property
    def whole_curve(self) -> PrivacyCurve:
        """The claimed curve; for a claim about a point, the largest curve that it allows."""
        return self.curve or PointCurve(self.epsilon, self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, from which ``Claim(**plain)`` makes an equal claim."""
        plain: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "neighbours": str(self.neighbours)}
        return plain if self.curve is None else plain | {"curve": self.curve.to_json()}

    def __str__(self) -> str:
        point = f"({claimed(self.epsilon)}, {exact(self.delta)})-DP under {self.neighbours} neighbours"
        if self.curve is None:
            return point
        rounded = f"({at_most(self.epsilon)}, {exact(self.delta)})-DP under {self.neighbours} neighbours"
        return f"the privacy curve of {self.curve}, which is {rounded}"
