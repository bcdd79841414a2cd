"""Privacy curves: what an accountant promises at every ε, not only at one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from reprlib import repr as short
from typing import Any

from lidp.curves.curve import PrivacyCurve
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


def _event_curve(event: Any, neighbours: Any) -> EventCurve:
    try:
        text = json.dumps(event)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"the event of a privacy curve must be plain data: {error}") from None
    return EventCurve(text, neighbours)


_READERS: dict[str, tuple[Callable[..., PrivacyCurve], tuple[str, ...]]] = {
    GaussianCurve.kind: (GaussianCurve, ("mu",)),
    LaplaceCurve.kind: (LaplaceCurve, ("noise_scale",)),
    ZeroConcentratedCurve.kind: (ZeroConcentratedCurve, ("rho",)),
    PointCurve.kind: (PointCurve, ("at_epsilon", "delta")),
    EventCurve.kind: (_event_curve, ("event", "neighbours")),
}


def curve_from_json(plain: Any) -> PrivacyCurve:
    """Return the curve that ``to_json`` of a curve described."""
    kind = plain.get("kind") if isinstance(plain, Mapping) else None
    if not isinstance(kind, str) or kind not in _READERS:
        raise InvalidArgument(f"a privacy curve has a kind, one of {', '.join(_READERS)}; got {short(plain)}")
    make, fields = _READERS[kind]
    if set(plain) != {"kind", *fields}:
        raise InvalidArgument(
            f"a privacy curve of kind {kind} has {', '.join(fields)}; got {short(sorted(map(str, plain)))}"
        )
    return make(*(plain[field] for field in fields))
