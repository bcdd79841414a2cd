"""Gradient canaries in random directions, with one number per parameter of the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lidp import checks
from lidp.arrays import Singles


@dataclass(frozen=True)
class RandomGradients:
    """Gradients of length ``radius`` in uniformly random directions of R^dimension.

    The distribution is that of :class:`lidp.UniformSphere`, in single precision and several times faster: drawing the canaries of a
    perceptron took almost as long as training it.
    """

    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        checks.count(dimension=self.dimension)
        checks.positive(radius=self.radius)

    def draw(self, rng: np.random.Generator, size: int) -> Singles:
        """Return an array of shape (size, dimension), one row per canary."""
        from lidp._compiled.noise import LANES, fill_noise

        gradients = np.empty((size, self.dimension), np.float32)
        state = rng.integers(1, 2**32, (4, LANES), dtype=np.uint32)
        for gradient in gradients:
            fill_noise(state, gradient, np.float32(1.0))
            gradient *= np.float32(self.radius / np.sqrt(np.einsum("i,i", gradient, gradient, dtype=np.float64)))
        return gradients
