"""The data of the figure of a diagnosis: limits on the noise of parameter groups and stretches of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lidp.diagnosis import Diagnosis, Measurement, Part, Quantity

MOST_GROUPS = 16
_MOST_SHOWN = 2.0  # times the claimed noise


@dataclass(frozen=True)
class NoiseBar:
    """Limits on the noise of one part, in units of the claimed noise; ``upper`` is infinite if there is no limit."""

    where: str
    lower: float
    upper: float
    deviates: bool
    words: str


@dataclass(frozen=True)
class NoiseByPart:
    """Bars for the whole training, its parameter groups and its stretches; the groups with the least noise if they are many.

    ``most`` is the largest noise that the figure shows, ``left_out`` the number of groups that it does not show.
    """

    bars: tuple[NoiseBar, ...]
    most: float
    left_out: int

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> NoiseByPart:
        """Return the data for a diagnosis."""
        groups = diagnosis.select(Quantity.NOISE, Part.GROUP)
        kept = sorted(groups, key=_upper)[:MOST_GROUPS]
        shown = [
            *diagnosis.select(Quantity.NOISE, Part.ALL),
            *(one for one in groups if one in kept),
            *diagnosis.select(Quantity.NOISE, Part.STRETCH),
        ]
        bars = tuple(_bar(one) for one in shown)
        largest = max(min(bar.upper, _MOST_SHOWN) for bar in bars)
        return cls(bars, max(1.2, 1.05 * largest), len(groups) - len(kept))


def _bar(one: Measurement) -> NoiseBar:
    return NoiseBar(one.where, one.lower or 0.0, _upper(one), not one.as_claimed, one.describe())


def _upper(one: Measurement) -> float:
    return math.inf if one.upper is None else one.upper
