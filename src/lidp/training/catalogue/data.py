"""The small data sets of the catalogue, and canaries for faults of clipping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lidp import checks
from lidp.arrays import Floats, Ints, Singles
from lidp.errors import InvalidArgument
from lidp.training.catalogue.gradients import Batch, record_gradients
from lidp.training.model import Network

FEATURES, CLASSES = 12, 4
"""Features that all records use, and classes."""


def clusters(records: int, rare_features: int = 0) -> tuple[Singles, Ints]:
    """Return examples around one centre per class; their last ``rare_features`` features are 0. Always the same."""
    rng = np.random.default_rng(7)
    y = np.arange(records) % CLASSES
    centres = rng.standard_normal((CLASSES, FEATURES))
    x = np.zeros((records, FEATURES + rare_features), np.float32)
    x[:, :FEATURES] = centres[y] + rng.standard_normal((records, FEATURES))
    return x, y


@dataclass(frozen=True)
class RareFeatures:
    """Examples with one large feature each, which no record uses, and a random label.

    The canaries of one draw have different features, so that their gradients hardly overlap. They are not independent, so they are
    for coin-flip designs, whose coins are. A canary is a row: features, label, and the number of its feature.
    """

    rare_features: int
    scale: float

    def __post_init__(self) -> None:
        checks.count(rare_features=self.rare_features)
        checks.positive(scale=self.scale)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Return ``size`` canaries, one per row."""
        if size > self.rare_features:
            raise InvalidArgument(f"there are {self.rare_features} rare features, which is too few for {size} canaries")
        feature = FEATURES + rng.choice(self.rare_features, size, replace=False)
        x = np.zeros((size, FEATURES + self.rare_features))
        x[np.arange(size), feature] = self.scale
        return np.column_stack([x, rng.integers(0, CLASSES, size), feature])


@dataclass(frozen=True)
class LayerSpanningGradients:
    """Gradients with one large number in each group of parameters that has coordinates for all canaries of a draw.

    No two canaries of one draw share a coordinate. They are not independent, so they are for coin-flip designs, whose coins are.
    """

    group_sizes: tuple[int, ...]
    value: float

    def __post_init__(self) -> None:
        for size in self.group_sizes:
            checks.count(group_size=size)
        checks.positive(value=self.value)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Return ``size`` gradients, one per row."""
        gradients, start = np.zeros((size, sum(self.group_sizes))), 0
        if size > max(self.group_sizes):
            raise InvalidArgument(f"no group of parameters has {size} coordinates, one per canary; plant fewer canaries")
        for available in self.group_sizes:
            if available >= size:
                coordinates = start + rng.choice(available, size, replace=False)
                gradients[np.arange(size), coordinates] = self.value * (2.0 * rng.integers(0, 2, size) - 1.0)
            start += available
        return gradients


@dataclass(frozen=True)
class OpposedGradient:
    """A single long gradient against the sum of the gradients of all records, at the initial parameters."""

    network: Network
    records: int
    length: float

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Return ``size`` canaries, one per row, all alike."""
        x, y = clusters(self.records, self.network.features - FEATURES)
        theta = self.network.initial(np.random.default_rng(0)).astype(np.float64)
        records = Batch(x.astype(np.float64), y, np.empty((0, self.network.size)))
        total = record_gradients(self.network, theta, records).sum(axis=0)
        return np.tile(-self.length * total / np.linalg.norm(total), (size, 1))
