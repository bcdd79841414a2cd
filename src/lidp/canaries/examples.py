"""Canaries that are labelled examples. A canary is a row: features, label, and its index in the pool, which scores use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.workers import use_one_core
from lidp.arrays import Bytes, Floats, Ints, NamedArrays
from lidp.errors import InvalidArgument


@dataclass(frozen=True)
class ExamplePool:
    """The uniform distribution over a pool of examples.

    If ``labels`` is None, a preparation step supplies them as its array ``pool_labels``: for example the labels that pilot models
    find hardest. The pool must not depend on which canaries are inserted: it is fixed before the first trial.
    """

    features: Floats = field(repr=False)
    labels: Ints | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if np.ndim(self.features) != 2 or not len(self.features):
            raise InvalidArgument(f"a pool needs an array (examples, features), got shape {np.shape(self.features)}")
        index = checks.first_not_finite(np.asarray(self.features))
        if index is not None:
            raise InvalidArgument(
                f"example {index[0]} of a pool: feature {index[1]} is not a finite number of 32 bits; leave such examples out, "
                "or scale them down"
            )
        if self.labels is not None and np.asarray(self.labels).dtype.kind not in "iu":
            raise InvalidArgument(f"labels of a pool must be whole numbers, got {np.asarray(self.labels).dtype}")
        if self.labels is not None and np.shape(self.labels) != (len(self.features),):
            raise InvalidArgument(
                f"a pool of {len(self.features)} examples needs one label per example, got {np.shape(self.labels)}"
            )

    def prepared(self, arrays: NamedArrays) -> ExamplePool:
        """Return this pool; if it has no labels, with those of the preparation step."""
        return replace(self, labels=arrays["pool_labels"].astype(np.int64)) if self.labels is None else self

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Return ``size`` canaries, one per row: features, label, index in the pool."""
        if self.labels is None:
            raise InvalidArgument("the labels of this pool come from a preparation step, which has not run")
        chosen = rng.integers(0, len(self.features), size)
        return np.column_stack([self.features[chosen], self.labels[chosen], chosen])


def tail_singular_vectors(x: NDArray[np.floating] | Bytes, count: int, scale: float) -> Floats:
    """Return the right singular vectors of the ``count`` smallest singular values of x, times ``scale``, one per row.

    The data hardly vary in these directions, so that little else affects a model there (ClipBKD, Jagielski et al. 2020).
    """
    if not 1 <= count <= x.shape[1]:
        raise InvalidArgument(
            f"the number of singular vectors must be 1 to {x.shape[1]}, the number of features, got {count}"
        )
    # Eigenvectors of the small matrix xᵀx, in ascending order: the same vectors at a fraction of the cost.
    square = np.zeros((x.shape[1], x.shape[1]))
    # If singular values are equal, rounding determines the vectors; with one thread it is the same on similar machines.
    with use_one_core():
        for first in range(0, len(x), 4096):  # in parts: all of it in double precision may not fit into memory
            part = np.asarray(x[first : first + 4096], dtype=np.float64)
            square += part.T @ part
        _, vectors = np.linalg.eigh(square)
    scaled: Floats = scale * vectors[:, :count].T
    return scaled


def mislabelled(
    x: NDArray[np.floating], y: NDArray[np.integer], classes: int, rng: np.random.Generator
) -> tuple[Floats, Ints]:
    """Return all examples, each with a wrong label that is drawn uniformly from the other classes."""
    if classes < 2:
        raise InvalidArgument(f"mislabelling needs at least 2 classes, got {classes}")
    shift = rng.integers(1, classes, len(y))
    return np.asarray(x, dtype=np.float64), (np.asarray(y) + shift) % classes


def blank(features: int, classes: int) -> tuple[Floats, Ints]:
    """Return one example for each label, with all features 0."""
    return np.zeros((classes, features)), np.arange(classes)
