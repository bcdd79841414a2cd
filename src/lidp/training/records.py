"""``TrainingSet``: records that all trials share, and the canaries of one trial."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Bytes, Ints, Singles
from lidp.errors import InvalidArgument, InvalidData
from lidp.training.gradients import NO_SIGNS, Words, words_and_sizes


class Kind(StrEnum):
    """What a canary is to a trainer, and how one row of an array represents it."""

    EXAMPLE = "example"
    """An example. The row holds its features, its label, and a number by which scores may look it up."""
    GRADIENT = "gradient"
    """A gradient. The row holds one number per parameter."""
    COORDINATE = "coordinate"
    """A gradient along one coordinate. The row holds the coordinate, and the value at it."""
    SIGNS = "signs"
    """A gradient of the same size at all coordinates, with random signs. The row holds the words that give them, and the size."""


@dataclass(frozen=True)
class TrainingSet:
    """Examples, which all trials share without copies, and the planted canaries of one trial.

    The features of an example are its row of ``x`` times ``unit``; those of planted examples are not multiplied. Features
    become numbers of 32 bits unless they are bytes, and labels become whole numbers of 64 bits: training is compiled for these.
    If ``replaces``, canaries replace the last examples, so that the number of records stays the same; otherwise they are added.
    Watched canaries are scored at every step of the training; they are not part of the data unless they are planted too.
    """

    x: Singles | Bytes
    y: Ints
    kind: Kind
    replaces: bool = False
    unit: float = 1.0
    planted: NDArray[np.floating] | None = None
    watched: NDArray[np.floating] | None = None
    _checked: bool = field(default=False, repr=False, compare=False)
    """Whether the shared examples have been checked already."""

    def __post_init__(self) -> None:
        checks.positive(unit=self.unit)
        if not self._checked:
            if self.x.ndim != 2 or self.y.shape != self.x.shape[:1]:
                raise InvalidData(
                    "training data must be an array (examples, features) and one label per example, "
                    f"got shapes {self.x.shape} and {self.y.shape}"
                )
            if self.x.dtype.kind not in "biuf":
                raise InvalidData(f"features must be real numbers, got {self.x.dtype}")
            index = checks.first_not_finite(self.x, self.unit)
            if index is not None:
                scaled = "" if self.unit == 1 else f" after multiplication by the unit {self.unit:g}"
                raise InvalidData(
                    f"training example {index[0]}: feature {index[1]} is not a finite number of 32 bits{scaled}"
                )
            object.__setattr__(
                self, "x", np.ascontiguousarray(self.x, self.x.dtype if self.x.dtype == np.uint8 else np.float32)
            )
            object.__setattr__(self, "y", _as_labels(self.y))
            object.__setattr__(self, "_checked", True)
        for canaries in (self.planted, self.watched):
            index = None if canaries is None else checks.first_not_finite(canaries)
            if index is not None:
                raise InvalidArgument(
                    f"canary {index[0]}: number {index[1]} is not finite in 32 bits; clipping needs finite canaries"
                )

    def with_canaries(self, canaries: NDArray[np.floating]) -> TrainingSet:
        """Return the same examples with these canaries planted."""
        count = len(canaries)
        planted = np.array(canaries)
        if not self.replaces:
            return replace(self, planted=planted)
        if count > len(self.y):
            raise InvalidArgument(f"{count} canaries cannot replace {len(self.y)} records")
        kept = len(self.y) - count
        return replace(self, x=self.x[:kept], y=self.y[:kept], planted=planted)

    def watching(self, canaries: NDArray[np.floating]) -> TrainingSet:
        """Return the same data with these canaries watched."""
        return replace(self, watched=np.array(canaries))

    def __len__(self) -> int:
        return len(self.y) + (0 if self.planted is None else len(self.planted))

    @property
    def examples(self) -> tuple[Singles, Ints]:
        """Features and labels of planted examples."""
        return self._as_examples(self.planted)

    def gradients(self, size: int) -> Singles:
        """Return the planted gradients, one row per canary, of ``size`` numbers each."""
        return self._as_gradients(self.planted, size)

    @property
    def coordinates(self) -> tuple[Ints, Singles]:
        """Coordinates of planted gradients along one coordinate, and the values at them."""
        return self._as_coordinates(self.planted)

    @property
    def watched_examples(self) -> tuple[Singles, Ints]:
        """Features and labels of watched examples."""
        return self._as_examples(self.watched)

    def watched_gradients(self, size: int) -> Singles:
        """Return the watched gradients, one row per canary, of ``size`` numbers each."""
        return self._as_gradients(self.watched, size)

    @property
    def watched_coordinates(self) -> tuple[Ints, Singles]:
        """Coordinates of watched gradients along one coordinate, and the values at them."""
        return self._as_coordinates(self.watched)

    @property
    def signs(self) -> tuple[Words, Singles]:
        """Words of generators, and sizes, of planted gradients with random signs."""
        return self._as_signs(self.planted)

    @property
    def watched_signs(self) -> tuple[Words, Singles]:
        """Words of generators, and sizes, of watched gradients with random signs."""
        return self._as_signs(self.watched)

    def _as_signs(self, canaries: NDArray[np.floating] | None) -> tuple[Words, Singles]:
        return words_and_sizes(canaries if canaries is not None and self.kind is Kind.SIGNS else NO_SIGNS)

    def _as_examples(self, canaries: NDArray[np.floating] | None) -> tuple[Singles, Ints]:
        features = self.x.shape[1]
        if canaries is None or self.kind is not Kind.EXAMPLE or not len(canaries):
            return np.empty((0, features), np.float32), np.empty(0, np.int64)
        return np.ascontiguousarray(canaries[:, :features], dtype=np.float32), canaries[:, features].astype(np.int64)

    def _as_gradients(self, canaries: NDArray[np.floating] | None, size: int) -> Singles:
        if canaries is None or self.kind is not Kind.GRADIENT or not len(canaries):
            return np.empty((0, size), np.float32)
        if canaries.shape[1] != size:
            raise InvalidArgument(
                f"gradient canaries have {canaries.shape[1]:,} numbers, but the model has {size:,} parameters"
            )
        return np.ascontiguousarray(canaries, dtype=np.float32)

    def _as_coordinates(self, canaries: NDArray[np.floating] | None) -> tuple[Ints, Singles]:
        if canaries is None or self.kind is not Kind.COORDINATE or not len(canaries):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return canaries[:, 0].astype(np.int64), canaries[:, 1].astype(np.float32)


def _as_labels(y: NDArray[Any]) -> Ints:
    if y.dtype.kind not in "biuf":
        raise InvalidData(f"labels must be whole numbers from 0, got {y.dtype}")
    values = y.astype(np.float64)
    wrong = y[~((values >= 0) & (values < 2**63) & (values == np.floor(values)))]
    if len(wrong):
        raise InvalidData(f"labels must be whole numbers from 0, got {wrong[0]}")
    return np.ascontiguousarray(y, np.int64)
