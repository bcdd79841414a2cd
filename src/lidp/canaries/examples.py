"""Canaries that are examples with labels: rows of features, label, and their number in a pool that scores look them up by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.workers import use_one_core
from lidp.errors import InvalidArgument

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ExamplePool:
    """Uniform over a pool of examples.

    ``labels`` may be left to a preparation step (``pool_labels`` of its arrays), as when they are those that reference models find
    hardest. The pool must not depend on who is inserted: it is fixed before the first trial.
    """

    features: Floats = field(repr=False)
    labels: NDArray[np.int64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if np.ndim(self.features) != 2 or not len(self.features):
            raise InvalidArgument(f"a pool needs examples x features, got shape {np.shape(self.features)}")
        place = checks.first_not_finite(np.asarray(self.features))
        if place is not None:
            raise InvalidArgument(
                f"example {place[0]} of a pool: feature {place[1]} is not a finite number of 32 bits; leave such examples out, "
                "or scale them down"
            )
        if self.labels is not None and np.asarray(self.labels).dtype.kind not in "iu":
            raise InvalidArgument(f"labels of a pool must be whole numbers, got {np.asarray(self.labels).dtype}")
        if self.labels is not None and np.shape(self.labels) != (len(self.features),):
            raise InvalidArgument(
                f"a pool of {len(self.features)} examples needs as many labels, got {np.shape(self.labels)}"
            )

    def prepared(self, arrays: Mapping[str, NDArray[Any]]) -> ExamplePool:
        """The same with the labels that the preparation step found, if it did."""
        return replace(self, labels=arrays["pool_labels"].astype(np.int64)) if self.labels is None else self

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """An array (size, features + 2)."""
        if self.labels is None:
            raise InvalidArgument("the labels of this pool come from a preparation step, which has not run")
        chosen = rng.integers(0, len(self.features), size)
        return np.column_stack([self.features[chosen], self.labels[chosen], chosen])


def tail_singular_vectors(x: NDArray[np.floating] | NDArray[np.uint8], count: int, scale: float) -> Floats:
    """The right singular vectors of the ``count`` smallest singular values of x, times ``scale``, a row each.

    Directions in which the data hardly extend, so that a model has no other reason to look there (ClipBKD, Jagielski et al. 2020).
    """
    if not 1 <= count <= x.shape[1]:
        raise InvalidArgument(
            f"the number of singular vectors must be 1 to {x.shape[1]}, the number of features, got {count}"
        )
    # Eigenvectors of the small matrix xᵀx, in ascending order: the same vectors at a fraction of the cost.
    square = np.zeros((x.shape[1], x.shape[1]))
    # Where values are equal, rounding decides on the vectors: with one core it is the same on all machines of a kind.
    with use_one_core():
        for first in range(0, len(x), 4096):  # a part at a time: the whole in double precision may not fit
            part = np.asarray(x[first : first + 4096], dtype=np.float64)
            square += part.T @ part
        _, vectors = np.linalg.eigh(square)
    found: Floats = scale * vectors[:, :count].T
    return found


def mislabelled(
    x: NDArray[np.floating], y: NDArray[np.integer], classes: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """Examples with labels that are wrong, uniformly among the wrong ones."""
    if classes < 2:
        raise InvalidArgument(f"mislabelling needs at least 2 classes, got {classes}")
    shift = rng.integers(1, classes, len(y))
    return np.asarray(x, dtype=np.float64), (np.asarray(y) + shift) % classes


def blank(features: int, classes: int) -> tuple[Floats, NDArray[np.int64]]:
    """An empty example under every label."""
    return np.zeros((classes, features)), np.arange(classes)
