"""Randomized response: data that are noised before they are sent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.mechanisms.catalogue.entry import Entry, entry
from lidp.mechanisms.catalogue.laws import discrete_epsilon


@dataclass(frozen=True)
class RandomizedResponse:
    """A bit, flipped with probability ``flip``."""

    flip: float

    def __call__(self, dataset: Any, rng: np.random.Generator) -> int:
        return int(self.many(dataset, 1, rng)[0])

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """So many independent outputs."""
        return int(dataset) ^ (rng.random(size) < self.flip).astype(np.int64)


@dataclass(frozen=True)
class Rappor:
    """A category as a vector of bits, one of which is 1, each flipped with probability ``flip``; the permanent part of RAPPOR."""

    flip: float
    categories: int

    def __call__(self, dataset: Any, rng: np.random.Generator) -> NDArray[np.int64]:
        row: NDArray[np.int64] = self.many(dataset, 1, rng)[0]
        return row

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """So many independent outputs, a row each."""
        truth = (np.arange(self.categories) == dataset).astype(np.int64)
        bits: NDArray[np.int64] = truth ^ (rng.random((size, self.categories)) < self.flip).astype(np.int64)
        return bits


def _fair(epsilon: float) -> float:
    return 1 / (1 + math.exp(epsilon))


def _bits_epsilon(flip: float, bits: int, delta: float) -> float:
    """ε at δ from so many bits that differ between the data sets, by how many of them come out as on the first."""
    kept = np.arange(bits + 1)
    ways = np.array([math.comb(bits, k) for k in kept])
    return discrete_epsilon(
        ways * (1 - flip) ** kept * flip ** (bits - kept), ways * flip**kept * (1 - flip) ** (bits - kept), delta
    )


ENTRIES: tuple[Entry, ...] = (
    entry(
        "randomized-response", "a bit, flipped with the right probability", "Warner 1965",
        mechanism=lambda e, _: RandomizedResponse(_fair(e)), pair=(0, 1),
        truth=lambda e, d: _bits_epsilon(_fair(e), 1, d), correct=True,
    ),
    entry(
        "randomized-response-half", "a bit, drawn anew with probability exp(-ε) where it should be flipped about so often",
        "Warner 1965",
        # A bit drawn anew is right half of the time, so it is flipped with probability exp(-ε)/2: ε is log(2 exp(ε) - 1).
        mechanism=lambda e, _: RandomizedResponse(math.exp(-e) / 2), pair=(0, 1),
        truth=lambda e, d: _bits_epsilon(math.exp(-e) / 2, 1, d), correct=False,
    ),
    entry(
        "rappor", "a category as a vector of flipped bits, two of which tell two categories apart",
        "Erlingsson, Pihur, Korolova 2014, Section 3.1",
        mechanism=lambda e, _: Rappor(_fair(e / 2), 4), pair=(0, 1),
        truth=lambda e, d: _bits_epsilon(_fair(e / 2), 2, d), correct=True,
    ),
)  # fmt: skip
