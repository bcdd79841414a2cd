"""``TrainingSet``: records that trials share, with the canaries of one trial beside them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.errors import InvalidArgument, InvalidData

Singles = NDArray[np.float32]
Ints = NDArray[np.int64]


class Kind(StrEnum):
    """What a canary is to a trainer, and how a row of an array tells it."""

    EXAMPLE = "example"
    """an example: its features, its label, and a number that scores may look it up by"""
    GRADIENT = "gradient"
    """a gradient: one number for each parameter"""
    COORDINATE = "coordinate"
    """a gradient along one coordinate: the coordinate, and the number there"""


@dataclass(frozen=True)
class TrainingSet:
    """Examples, shared and never copied, and planted canaries, which are a trial's own.

    The features of an example are its row of ``x`` times ``unit``; those of planted ones are as they are.
    If ``replaces``, canaries take the places of the last examples, so that their number is the same with and without; else they
    are added.
    """

    x: Singles | NDArray[np.uint8]
    y: Ints
    kind: Kind
    replaces: bool = False
    unit: float = 1.0
    planted: NDArray[np.floating] | None = None
    _checked: bool = field(default=False, repr=False, compare=False)
    """whether the examples, which trials share, were checked already"""

    def __post_init__(self) -> None:
        checks.positive(unit=self.unit)
        if not self._checked:
            place = checks.first_not_finite(self.x, self.unit)
            if place is not None:
                scaled = "" if self.unit == 1 else f" after it is multiplied by the unit {self.unit:g}"
                raise InvalidData(
                    f"training example {place[0]}: feature {place[1]} is not a finite number of 32 bits{scaled}"
                )
            if len(self.y) and self.y.min() < 0:
                raise InvalidData(f"labels must be whole numbers from 0, got {self.y.min()}")
            object.__setattr__(self, "_checked", True)
        if self.planted is not None:
            place = checks.first_not_finite(self.planted)
            if place is not None:
                raise InvalidArgument(
                    f"canary {place[0]}: number {place[1]} is not finite in 32 bits; canaries must be finite to be clipped"
                )

    def with_canaries(self, canaries: NDArray[np.floating]) -> TrainingSet:
        """The same examples with these canaries planted."""
        count = len(canaries)
        planted = np.array(canaries)
        if not self.replaces:
            return replace(self, planted=planted)
        if count > len(self.y):
            raise InvalidArgument(f"{count} canaries cannot replace {len(self.y)} records")
        kept = len(self.y) - count
        return replace(self, x=self.x[:kept], y=self.y[:kept], planted=planted)

    def __len__(self) -> int:
        return len(self.y) + (0 if self.planted is None else len(self.planted))

    @property
    def examples(self) -> tuple[Singles, Ints]:
        """Features and labels of planted examples."""
        if self.planted is None or self.kind is not Kind.EXAMPLE or not len(self.planted):
            return np.empty((0, self.x.shape[1]), np.float32), np.empty(0, np.int64)
        features = self.x.shape[1]
        return (
            np.ascontiguousarray(self.planted[:, :features], dtype=np.float32),
            self.planted[:, features].astype(np.int64),
        )

    def gradients(self, size: int) -> Singles:
        """Planted gradients of so many parameters, a row each."""
        if self.planted is None or self.kind is not Kind.GRADIENT or not len(self.planted):
            return np.empty((0, size), np.float32)
        if self.planted.shape[1] != size:
            raise InvalidArgument(
                f"gradient canaries have {self.planted.shape[1]:,} numbers, the model {size:,} parameters"
            )
        return np.ascontiguousarray(self.planted, dtype=np.float32)

    @property
    def coordinates(self) -> tuple[Ints, Singles]:
        """Places of gradients along one coordinate, and the numbers there."""
        if self.planted is None or self.kind is not Kind.COORDINATE or not len(self.planted):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return self.planted[:, 0].astype(np.int64), self.planted[:, 1].astype(np.float32)
