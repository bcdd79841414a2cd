"""Privacy curves: what an accountant promises at every ε, not only at one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from lidp.curves.curve import PrivacyCurve, field_of
from lidp.curves.gaussian import GaussianCurve
from lidp.curves.laplace import LaplaceCurve
from lidp.curves.loss_distribution import EventCurve
from lidp.curves.point import PointCurve
from lidp.curves.zero_concentrated import ZeroConcentratedCurve
from lidp.errors import InvalidArgument

__all__ = [
    "EventCurve",
    "GaussianCurve",
    "LaplaceCurve",
    "PointCurve",
    "PrivacyCurve",
    "ZeroConcentratedCurve",
    "curve_from_json",
]

_READERS: dict[str, Callable[[Mapping[str, Any]], PrivacyCurve]] = {
    GaussianCurve.kind: lambda plain: GaussianCurve(field_of(plain, "mu")),
    LaplaceCurve.kind: lambda plain: LaplaceCurve(field_of(plain, "noise_scale")),
    ZeroConcentratedCurve.kind: lambda plain: ZeroConcentratedCurve(field_of(plain, "rho")),
    PointCurve.kind: lambda plain: PointCurve(field_of(plain, "at_epsilon"), field_of(plain, "delta")),
    EventCurve.kind: lambda plain: EventCurve(json.dumps(field_of(plain, "event")), field_of(plain, "neighbours")),
}


def curve_from_json(plain: Any) -> PrivacyCurve:
    """Return the curve that ``to_json`` of a curve described."""
    if not isinstance(plain, Mapping) or plain.get("kind") not in _READERS:
        raise InvalidArgument(f"a privacy curve is one of {', '.join(_READERS)}, got {plain!r}")
    return _READERS[plain["kind"]](plain)
