"""Canaries that are gradients along one coordinate: the least that a canary can be, and the least in the way of others."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.errors import InvalidArgument


@dataclass(frozen=True)
class DiracGradients:
    """A uniformly random coordinate of R^dimension, or of some ``places`` in it, and ``radius`` with a random sign.

    Rows of (coordinate, number).
    """

    dimension: int
    places: NDArray[np.int64] | None = field(default=None, repr=False)
    radius: float = 1.0

    def __post_init__(self) -> None:
        checks.count(dimension=self.dimension)
        checks.positive(radius=self.radius)
        if self.places is not None:
            places = np.asarray(self.places)
            if places.ndim != 1 or not len(places) or places.min() < 0 or places.max() >= self.dimension:
                raise InvalidArgument(
                    f"places must be coordinates from 0 to {self.dimension - 1}, and at least one of them"
                )

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """An array (size, 2)."""
        chosen = rng.integers(0, self.dimension if self.places is None else len(self.places), size)
        if self.places is not None:
            chosen = self.places[chosen]
        return np.column_stack([chosen, self.radius * (2.0 * rng.integers(0, 2, size) - 1.0)])


def quiet_coordinates(x: NDArray[np.generic], outputs: int, share: float) -> NDArray[np.int64]:
    """Weights of a first layer (outputs x features, row by row) at the share of features that are smallest in the data.

    Examples hardly move these weights and hardly pull them back, so that a canary's mark on them is kept best.
    """
    features = x.shape[1]
    sizes = np.zeros(features)
    for first in range(0, len(x), 4096):
        sizes += np.square(x[first : first + 4096], dtype=np.float64).sum(axis=0)
    quiet = np.argsort(sizes, kind="stable")[: max(1, round(checks.share(share=share) * features))]
    places: NDArray[np.int64] = (features * np.arange(outputs)[:, None] + np.sort(quiet)[None, :]).ravel()
    return places
