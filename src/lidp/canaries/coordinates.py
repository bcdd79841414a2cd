"""Gradient canaries along one coordinate each, which interfere least with one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Floats, Ints
from lidp.errors import InvalidArgument


@dataclass(frozen=True)
class DiracGradients:
    """The distribution of gradients of length ``radius`` along a uniformly random coordinate, with a random sign.

    The coordinate is one of ``coordinates``, by default any from 0 to dimension - 1. A canary is a row (coordinate, value).
    """

    dimension: int
    coordinates: Ints | None = field(default=None, repr=False)
    radius: float = 1.0

    def __post_init__(self) -> None:
        checks.count(dimension=self.dimension)
        checks.positive(radius=self.radius)
        if self.coordinates is not None:
            coordinates = np.asarray(self.coordinates)
            if (
                coordinates.ndim != 1
                or not len(coordinates)
                or coordinates.min() < 0
                or coordinates.max() >= self.dimension
            ):
                raise InvalidArgument(f"coordinates must be one or more numbers from 0 to {self.dimension - 1}, in a list")

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Return ``size`` canaries, one per row: coordinate, value."""
        chosen = rng.integers(0, self.dimension if self.coordinates is None else len(self.coordinates), size)
        if self.coordinates is not None:
            chosen = self.coordinates[chosen]
        return np.column_stack([chosen, self.radius * (2.0 * rng.integers(0, 2, size) - 1.0)])


@dataclass(frozen=True)
class SpreadCoordinates:
    """Gradients of length ``radius`` along different coordinates, spread evenly over groups of parameters, with random signs.

    ``group_sizes`` are the numbers of coordinates of consecutive groups, such as the layers of a model. In one draw all groups get
    equally many canaries, as far as they have coordinates, so that a fault in one small layer is found like any other. The
    canaries of one draw are not independent, so they are for coin-flip designs, whose coins are. A canary is a row (coordinate,
    value).
    """

    group_sizes: tuple[int, ...]
    radius: float = 1.0

    def __post_init__(self) -> None:
        for size in self.group_sizes:
            checks.count(group_size=size)
        checks.positive(radius=self.radius)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Return ``size`` canaries, one per row, in random order."""
        coordinates, start = [], 0
        for count, available in zip(self._counts(size), self.group_sizes, strict=True):
            coordinates.append(start + rng.choice(available, count, replace=False))
            start += available
        chosen = rng.permutation(np.concatenate(coordinates))
        return np.column_stack([chosen, self.radius * (2.0 * rng.integers(0, 2, size) - 1.0)])

    def _counts(self, size: int) -> list[int]:
        """Return the number of canaries of each group: equal numbers, except for groups that have too few coordinates."""
        total = sum(self.group_sizes)
        if size > total:
            raise InvalidArgument(f"{size:,} canaries need as many coordinates, and there are {total:,}; plant fewer")
        counts, left = dict.fromkeys(range(len(self.group_sizes)), 0), size
        ascending = sorted(counts, key=lambda group: self.group_sizes[group])
        for position, group in enumerate(ascending):
            counts[group] = min(self.group_sizes[group], left // (len(ascending) - position))
            left -= counts[group]
        return list(counts.values())


def locate(coordinates: Ints, group_sizes: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the group of each coordinate, and its number within that group.

    Raises:
        InvalidArgument: if a coordinate is outside the model.
    """
    ends = np.cumsum(group_sizes)
    if len(coordinates) and not 0 <= coordinates.min() <= coordinates.max() < ends[-1]:
        raise InvalidArgument(
            f"coordinates of canaries must be 0 to {ends[-1] - 1:,} for this model, "
            f"got {coordinates.min():,} to {coordinates.max():,}"
        )
    groups: Ints = np.searchsorted(ends, coordinates, side="right").astype(np.int64)
    starts: Ints = ends - np.asarray(group_sizes)
    return groups, coordinates - starts[groups]


def quiet_coordinates(x: NDArray[np.generic], outputs: int, share: float) -> Ints:
    """Return the coordinates of the first-layer weights that examples hardly change: those of the smallest features.

    The effect of a canary on these weights persists. ``share`` of the features are selected, those with the smallest sums of
    squares. The layer has ``outputs`` x features weights, numbered row by row.
    """
    features = x.shape[1]
    sizes = np.zeros(features)
    for first in range(0, len(x), 4096):
        sizes += np.square(x[first : first + 4096], dtype=np.float64).sum(axis=0)
    quiet = np.argsort(sizes, kind="stable")[: max(1, round(checks.share(share=share) * features))]
    coordinates: Ints = (features * np.arange(outputs)[:, None] + np.sort(quiet)[None, :]).ravel()
    return coordinates
