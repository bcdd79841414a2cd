"""Gradient canaries in random directions: with one number per parameter of the model, or given by a few random words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Floats, Singles

Words = NDArray[np.uint32]
_LANES = 16  # of the generators, as in lidp._compiled.vectors, whose import would take a while
_WORDS = 4 * _LANES


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
            gradient *= np.float32(self.radius / np.sqrt(np.dot(gradient, gradient)))
        return gradients


@dataclass(frozen=True)
class RandomSigns:
    """Gradients of length ``radius`` whose coordinates have the same size, each with a fair random sign.

    A canary is a row of random words and the size of a coordinate. Training and scores draw the signs where they need them, in
    a small part of the time of a step, so neither drawing nor keeping canaries of large models takes time or memory. To an audit,
    such a direction is as good as one of :class:`RandomGradients`: noise along it has the same law, and the overlaps of two of them
    have mean 0 and variance 1/dimension too.
    """

    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        checks.count(dimension=self.dimension)
        checks.positive(radius=self.radius)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Return ``size`` canaries, one per row: words, size of a coordinate."""
        words = rng.integers(1, 2**32, (size, _WORDS))
        return np.column_stack([words, np.full(size, self.radius / np.sqrt(self.dimension))])


NO_SIGNS: Floats = np.empty((0, _WORDS + 1))


def words_and_sizes(canaries: NDArray[np.floating]) -> tuple[Words, Singles]:
    """Return the words of the generators of canaries, (canaries, 4, lanes), and the sizes of their coordinates."""
    words = np.ascontiguousarray(canaries[:, :_WORDS].astype(np.uint32))
    return words.reshape(-1, 4, _LANES), canaries[:, _WORDS].astype(np.float32)


def signed_gradient(canary: NDArray[np.floating], dimension: int) -> Singles:
    """Return the numbers of one canary of :class:`RandomSigns`."""
    from lidp._compiled.signs import add_signs

    words, sizes = words_and_sizes(canary[None])
    gradient = np.zeros(dimension, np.float32)
    add_signs(words[0], gradient, sizes[0])
    return gradient


def signed_products(canaries: NDArray[np.floating], vector: NDArray[np.floating]) -> Floats:
    """Return the inner product of each canary of :class:`RandomSigns` with a vector, in single precision."""
    from lidp._compiled.signs import project_signs

    words, sizes = words_and_sizes(canaries)
    products, squares = np.empty(len(sizes)), np.empty(len(sizes))
    project_signs(np.ascontiguousarray(vector, np.float32), words, sizes, products, squares)
    return products
