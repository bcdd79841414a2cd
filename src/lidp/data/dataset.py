"""``Dataset``: examples with labels, to train on and to test with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.errors import InvalidData

Singles = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """Features (a row each) and labels (0 .. classes-1), for training and for testing.

    Training features may be kept as bytes, of which a value v means ``v * unit``: a quarter of the memory to read at every step.
    All others are float32. The arrays are read-only: trials share them.
    """

    name: str
    x: Singles | Bytes
    y: Labels
    test_x: Singles
    test_y: Labels
    classes: int
    unit: float = 1.0

    def __post_init__(self) -> None:
        checks.count(classes=self.classes)
        checks.positive(unit=self.unit)
        self._check("training", self.x, self.y, self.unit)
        self._check("test", self.test_x, self.test_y, 1.0)
        if self.x.shape[1] != self.test_x.shape[1]:
            raise InvalidData(
                f"{self.name}: training examples have {self.x.shape[1]} features, test examples {self.test_x.shape[1]}"
            )
        compact = self.x.dtype == np.uint8
        if not compact and self.unit != 1:
            raise InvalidData(f"{self.name}: a unit of {self.unit} is for features kept as bytes, got {self.x.dtype}")
        stored = np.uint8 if compact else np.float32
        for name, kind in (("x", stored), ("y", np.int64), ("test_x", np.float32), ("test_y", np.int64)):
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def _check(self, part: str, features: Any, labels: Any, unit: float) -> None:
        if features.ndim != 2 or labels.ndim != 1 or len(features) != len(labels):
            raise InvalidData(
                f"{self.name}: {part} data must be examples x features and as many labels, "
                f"got shapes {features.shape} and {labels.shape}"
            )
        if labels.dtype.kind not in "iu":
            raise InvalidData(f"{self.name}: {part} labels must be whole numbers, got {labels.dtype}")
        if features.dtype.kind not in "biuf":
            raise InvalidData(f"{self.name}: {part} features must be real numbers, got {features.dtype}")
        if len(labels) and (labels.min() < 0 or labels.max() >= self.classes):
            raise InvalidData(
                f"{self.name}: {part} labels must be 0 to {self.classes - 1}, got {labels.min()} to {labels.max()}"
            )
        place = checks.first_not_finite(features, unit)
        if place is not None:
            scaled = "" if unit == 1 else f" after it is multiplied by the unit {unit:g}"
            raise InvalidData(
                f"{self.name}: {part} example {place[0]}, feature {place[1]} is not a finite number of 32 bits{scaled}; "
                "leave such examples out, or scale the features"
            )

    def first(self, records: int) -> Dataset:
        """The same with the first so many training examples."""
        records = checks.count(records=records)
        if records > len(self.x):
            raise InvalidData(f"{self.name} has {len(self.x):,} training examples, {records:,} were asked for")
        return replace(self, x=self.x[:records], y=self.y[:records])

    def __len__(self) -> int:
        return len(self.y)
