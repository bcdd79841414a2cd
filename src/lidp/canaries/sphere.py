"""Canaries that are uniform on a sphere, for sums of vectors of bounded length and for gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lidp import checks
from lidp.arrays import Floats


@dataclass(frozen=True)
class UniformSphere:
    """Vectors of length ``radius`` in uniformly random directions of R^dimension."""

    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        checks.count(dimension=self.dimension)
        checks.positive(radius=self.radius)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Return an array of shape (size, dimension), one row per canary."""
        vectors = rng.standard_normal((size, self.dimension))
        vectors *= self.radius / np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors
