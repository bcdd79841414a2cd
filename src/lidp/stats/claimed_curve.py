"""Checks and conversions that methods for claimed privacy curves share."""

from __future__ import annotations

import math

import numpy as np

from lidp.arrays import Floats
from lidp.curves import PrivacyCurve
from lidp.designs import Design
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.stats.curve_family import CurveFamily, family_of

_GRID = 1024  # values of e
_LARGEST_RUNG = 500.0  # e^e must not overflow
_TAILS = (
    0.0,
    *(10.0**-power for power in range(9, 0, -1)),
)  # the grid ends where h is this small; the first that is possible


def check_curve(curve: object) -> None:
    """Raise ``InvalidArgument`` unless ``curve`` is a privacy curve or None."""
    if curve is not None and not isinstance(curve, PrivacyCurve):
        raise InvalidArgument(f"curve must be a PrivacyCurve, such as GaussianCurve(mu=0.5), got {curve!r}")


def check_neighbours(curve: PrivacyCurve | None, design: Design) -> None:
    """Raise ``MethodNotApplicable`` if a curve is for other neighbours than a design."""
    relation = getattr(curve, "neighbours", design.neighbours)
    if relation != design.neighbours:
        raise MethodNotApplicable(
            f"the curve is for {relation} neighbours, these scores are for {design.neighbours} neighbours: "
            "claim the curve for the neighbours of the scores"
        )


def checked_family(curve: PrivacyCurve, delta: float) -> CurveFamily:
    """Return the family of a curve.

    Raises:
        InvalidArgument: if the curve has no finite ε at this δ, in which a bound could be stated.
    """
    if math.isinf(curve.epsilon(delta)):
        raise InvalidArgument(f"{curve} has no finite ε at delta={delta:g}; name a larger delta")
    return family_of(curve, delta)


def epsilon_after(family: CurveFamily, rejected: int) -> float:
    """Return the ε of the last of the first ``rejected`` members; 0 if there are none."""
    return float(family.epsilons[rejected - 1]) if rejected else 0.0


def noise_after(family: CurveFamily, rejected: int) -> float | None:
    """Return the noise that a mechanism has at most if the first ``rejected`` members are false; None if there are none."""
    return float(family.noise[rejected - 1]) if rejected else None


def grid_of(curve: PrivacyCurve) -> Floats:
    """Return the values of e at which a test uses a whole curve, in increasing order from 0."""
    ends = (curve.epsilon(tail) for tail in _TAILS)
    rungs = curve.rungs()
    end = min(next((end for end in ends if math.isfinite(end)), float(rungs[-1])), _LARGEST_RUNG)
    return np.union1d(np.linspace(0.0, end, _GRID), rungs[rungs <= _LARGEST_RUNG])
