"""Say what to claim instead of an event of ``dp-accounting`` for which its PLD accountant has no privacy curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from lidp import checks
from lidp.errors import InvalidArgument
from lidp.rounding import at_most

_POINT = "claim the point that dp-accounting's RDPAccountant states, Claim(epsilon, delta)"
_REPLACE_POINT = (
    "claim the point that dp-accounting's RDPAccountant states, Claim(epsilon, delta, neighbours='replace-one')"
)


def remedy_for(event: Any) -> str | None:
    """Return what to claim for an event without a curve; None if there is nothing better than another event."""
    remedy = _REMEDIES.get(type(event).__name__)
    try:
        return remedy(event) if callable(remedy) else remedy
    except (InvalidArgument, ArithmeticError, TypeError, ValueError):  # an event with values that make no sense
        return None


def _tree_aggregation(event: Any) -> str:
    """Return the Gaussian curve of tree aggregation: of all noisy nodes, one path from a leaf to a root contains a record."""
    noise = checks.positive(noise_multiplier=event.noise_multiplier)
    counts = event.step_counts if isinstance(event.step_counts, (list, tuple)) else [event.step_counts]
    depth = math.ceil(math.log2(max(checks.count(step_counts=count) for count in counts) + 1))
    mu, rho = math.sqrt(depth) / noise, depth / 2 / noise**2
    nodes = "1 node" if depth == 1 else f"{depth} nodes"
    return (
        f"a record changes at most {nodes} with noise multiplier {noise:.6g} each, so claim Claim.gaussian(mu={at_most(mu)}), "
        f"which is exact, or Claim.zcdp(rho={at_most(rho)}); for k epochs, take √k times this mu, or k times this rho"
    )


def _zero_concentrated(event: Any) -> str:
    if event.xi:
        return _POINT
    return f"claim Claim.zcdp(rho={at_most(checks.positive(rho=event.rho))})"


_REMEDIES: Mapping[str, str | Callable[[Any], str]] = {
    "SingleEpochTreeAggregationDpEvent": _tree_aggregation,
    "ZCDpEvent": _zero_concentrated,
    "RepeatAndSelectDpEvent": _POINT,
    "SampledWithoutReplacementDpEvent": _REPLACE_POINT,
}
