"""The privacy curve of an event of ``dp-accounting``, by its privacy loss distribution (PLD)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from reprlib import repr as short
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.curves.curve import PrivacyCurve
from lidp.curves.events import (
    Plain,
    check_event,
    count_steps,
    describe_event,
    event_from_plain,
    has_scalable_noise,
    noise_of,
    scale_noise,
)
from lidp.curves.neighbours import Neighbours
from lidp.errors import InvalidArgument

SLACK = 1e-10
SLACK_PER_STEP = 5e-15
"""These are added to every value of the curve: the errors of the accountant's Fourier transforms, in either direction, grow with
the number of steps, to 4e-12 for 18,000 and 2e-10 for a million."""
_LARGEST_EXPONENT = 700.0
# Privacy losses are rounded up to multiples of an interval, which makes ε larger by about the number of steps times the square of
# the interval. The interval is chosen so that this is a small share of ε, and no finer, because that takes long.
_ROUNDING_SHARE = 5e-4
_COARSEST, _FINEST = 2e-3, 1e-4
_ROUGH_DELTA = 1e-5


@dataclass(frozen=True)
class EventCurve(PrivacyCurve):
    """The curve of an event, which ``dp-accounting`` computes with pessimistic rounding.

    ``event`` is the event's plain data as JSON text; see :mod:`lidp.curves.events`. Under add/remove neighbours the
    accountant's loss distribution for removing a record gives h⁺, that for adding one h⁻.
    """

    event: str
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    kind: ClassVar[str] = "dp-event"

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.member(Neighbours, neighbours=self.neighbours))
        try:
            plain = json.loads(self.event)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"an event curve needs an event as JSON text: {error}") from None
        object.__setattr__(self, "event", json.dumps(check_event(plain), sort_keys=True))

    @property
    def plain(self) -> Plain:
        """The plain data of the event."""
        event: Plain = json.loads(self.event)
        return event

    def forward(self, epsilons: Floats) -> Floats:
        return self._values(_losses(self.event, self.neighbours)[0], epsilons)

    def backward(self, epsilons: Floats) -> Floats:
        return self._values(_losses(self.event, self.neighbours)[1], epsilons)

    def _values(self, losses: _Losses, epsilons: Floats) -> Floats:
        values = losses.curve(np.asarray(epsilons, dtype=np.float64)) + self._slack
        return np.asarray(np.minimum(values, 1.0))

    @property
    def _slack(self) -> float:
        return SLACK + SLACK_PER_STEP * count_steps(self.plain)

    @property
    def least_value(self) -> float:
        return 2 * self._slack

    @property
    def has_family(self) -> bool:
        return has_scalable_noise(self.plain)

    def with_noise(self, ratio: float) -> EventCurve:
        if not self.has_family:
            raise InvalidArgument(f"{self.describe()} has a part without an amount of noise, so its noise cannot be scaled")
        return EventCurve(json.dumps(scale_noise(self.plain, ratio)), self.neighbours)

    def describe(self) -> str:
        return describe_event(self.plain)

    def describe_noise(self) -> tuple[str, float]:
        noise = noise_of(self.plain)
        return ("noise multiplier", noise) if noise is not None else ("noise relative to the claim", 1.0)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "event": self.plain, "neighbours": str(self.neighbours)}


class _Losses(NamedTuple):
    """A distribution of privacy losses, as the sums from which its curve is computed.

    With p the probabilities of the losses l, ``above[i]`` is the sum of p from the i-th loss on, and ``discounted[i]`` that
    of p·e^-l.
    """

    losses: Floats
    above: Floats
    discounted: Floats
    infinite: float

    @classmethod
    def of(cls, masses: Any) -> _Losses:
        dense = masses.to_dense_pmf()
        losses = (np.arange(dense.size) + dense._lower_loss) * dense._discretization
        positive = losses > 0  # the others do not count at any ε ≥ 0
        losses, probabilities = losses[positive], np.maximum(np.asarray(dense._probs)[positive], 0.0)
        above = np.cumsum(probabilities[::-1])[::-1]
        discounted = np.cumsum((probabilities * np.exp(-losses))[::-1])[::-1]
        return cls(losses, np.append(above, 0.0), np.append(discounted, 0.0), float(dense._infinity_mass))

    def curve(self, epsilons: Floats) -> Floats:
        """Return the hockey-stick divergence at each ε: the sum of p·(1 - e^(ε-l)) over all losses l above ε."""
        first = np.searchsorted(self.losses, epsilons, side="right")
        # Beyond the largest exponent of a float nothing is subtracted: what is returned is too large there.
        factors = np.where(epsilons <= _LARGEST_EXPONENT, np.exp(np.minimum(epsilons, _LARGEST_EXPONENT)), 0.0)
        deltas = self.infinite + self.above[first] - factors * self.discounted[first]
        return np.asarray(np.maximum(deltas, 0.0))


# A distribution may have a million numbers, and the curves of a family are used one after the other: few are kept.
@lru_cache(maxsize=4)
def _losses(event: str, neighbours: Neighbours) -> tuple[_Losses, _Losses]:
    """Return the losses for removing a record, which give h⁺, and for adding one, which give h⁻."""
    distribution = _compose(event, neighbours, _COARSEST)
    with np.errstate(over="ignore"):  # a very large ε is infinite
        rough_epsilon = float(distribution.get_epsilon_for_delta(_ROUGH_DELTA))
    interval = math.sqrt(_ROUNDING_SHARE * max(rough_epsilon, 0.1) / count_steps(json.loads(event)))
    if interval < _COARSEST:
        distribution = _compose(event, neighbours, max(interval, _FINEST))
    return _Losses.of(distribution._pmf_remove), _Losses.of(distribution._pmf_add)


def _compose(event: str, neighbours: Neighbours, interval: float) -> Any:
    from dp_accounting import pld
    from dp_accounting.privacy_accountant import NeighboringRelation, UnsupportedEventError

    relation = (
        NeighboringRelation.ADD_OR_REMOVE_ONE if neighbours is Neighbours.ADD_REMOVE else NeighboringRelation.REPLACE_ONE
    )
    accountant = pld.PLDAccountant(relation, value_discretization_interval=interval)
    composed = event_from_plain(json.loads(event))
    try:
        accountant.compose(composed)
    except (ValueError, TypeError, ArithmeticError, MemoryError, UnsupportedEventError) as error:
        reason = " ".join(str(error).split())
        raise InvalidArgument(
            f"the PLD accountant has no curve for {short(composed)} under {neighbours} neighbours: {reason}"
        ) from None
    return accountant._pld  # the accountant itself returns the larger of both directions only
