"""Canaries that are gradients along one coordinate: the least that a canary can be, and the least in the way of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lidp import checks


@dataclass(frozen=True)
class DiracGradients:
    """A uniformly random coordinate of R^dimension, and a random sign. Rows of (coordinate, sign)."""

    dimension: int

    def __post_init__(self) -> None:
        checks.count(dimension=self.dimension)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """An array (size, 2)."""
        places = rng.integers(0, self.dimension, size)
        return np.column_stack([places, 2.0 * rng.integers(0, 2, size) - 1.0])
