"""``Dataset``: examples with labels, for training and for testing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lidp import checks
from lidp.arrays import Bytes, Ints, Singles
from lidp.errors import InvalidData


@dataclass(frozen=True)
class Dataset:
    """Features (one row per example) and labels (0 to classes - 1), for training and for testing.

    Training features may be stored as bytes, where a value v means ``v * unit``: every step then reads a quarter of the memory.
    All other features are float32. The arrays are read-only, because trials share them.
    """

    name: str
    x: Singles | Bytes
    y: Ints
    test_x: Singles
    test_y: Ints
    classes: int
    unit: float = 1.0

    def __post_init__(self) -> None:
        checks.count(classes=self.classes)
        checks.positive(unit=self.unit)
        self._check("training", self.x, self.y, self.unit)
        self._check("test", self.test_x, self.test_y, 1.0)
        if self.x.shape[1] != self.test_x.shape[1]:
            raise InvalidData(
                f"{self.name}: training examples have {self.x.shape[1]} features, but test examples {self.test_x.shape[1]}"
            )
        compact = self.x.dtype == np.uint8
        if not compact and self.unit != 1:
            raise InvalidData(f"{self.name}: a unit of {self.unit} needs features stored as bytes, got {self.x.dtype}")
        stored = np.uint8 if compact else np.float32
        for name, kind in (("x", stored), ("y", np.int64), ("test_x", np.float32), ("test_y", np.int64)):
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def _check(self, part: str, features: Any, labels: Any, unit: float) -> None:
        if features.ndim != 2 or labels.ndim != 1 or len(features) != len(labels):
            raise InvalidData(
                f"{self.name}: {part} data must be an array (examples, features) and one label per example, "
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
        index = checks.first_not_finite(features, unit)
        if index is not None:
            scaled = "" if unit == 1 else f" after multiplication by the unit {unit:g}"
            raise InvalidData(
                f"{self.name}: {part} example {index[0]}, feature {index[1]} is not a finite number of 32 bits{scaled}; "
                "leave such examples out, or scale the features"
            )

    def first(self, records: int) -> Dataset:
        """Return the data set with only the first ``records`` training examples."""
        records = checks.count(records=records)
        if records > len(self.x):
            raise InvalidData(f"{self.name} has {len(self.x):,} training examples, {records:,} were requested")
        return replace(self, x=self.x[:records], y=self.y[:records])

    def __len__(self) -> int:
        return len(self.y)
