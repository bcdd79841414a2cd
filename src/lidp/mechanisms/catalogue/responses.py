"""Randomized response: every user adds noise before sending data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lidp.arrays import Ints
from lidp.mechanisms.catalogue.entry import Entry, entry
from lidp.mechanisms.catalogue.laws import discrete_epsilon


@dataclass(frozen=True)
class RandomizedResponse:
    """A bit that is flipped with probability ``flip``."""

    flip: float

    def __call__(self, dataset: Any, rng: np.random.Generator) -> int:
        return int(self.many(dataset, 1, rng)[0])

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Ints:
        """Return ``size`` independent outputs."""
        return int(dataset) ^ (rng.random(size) < self.flip).astype(np.int64)


@dataclass(frozen=True)
class Rappor:
    """A category as a one-hot vector whose bits are flipped with probability ``flip``; the permanent part of RAPPOR."""

    flip: float
    categories: int

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Ints:
        row: Ints = self.many(dataset, 1, rng)[0]
        return row

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Ints:
        """Return ``size`` independent outputs, one per row."""
        truth = (np.arange(self.categories) == dataset).astype(np.int64)
        bits: Ints = truth ^ (rng.random((size, self.categories)) < self.flip).astype(np.int64)
        return bits


def _flip_probability(epsilon: float) -> float:
    return 1 / (1 + math.exp(epsilon))


def _bits_epsilon(flip: float, bits: int, delta: float) -> float:
    """Return ε at δ of ``bits`` flipped bits that differ between the data sets.

    The number of bits that agree with the first data set is a sufficient statistic.
    """
    kept = np.arange(bits + 1)
    ways = np.array([math.comb(bits, k) for k in kept])
    return discrete_epsilon(
        ways * (1 - flip) ** kept * flip ** (bits - kept), ways * flip**kept * (1 - flip) ** (bits - kept), delta
    )


ENTRIES: tuple[Entry, ...] = (
    entry(
        "randomized-response", "a bit, flipped with the right probability", "Warner 1965",
        mechanism=lambda e, _: RandomizedResponse(_flip_probability(e)), pair=(0, 1),
        truth=lambda e, d: _bits_epsilon(_flip_probability(e), 1, d), correct=True,
    ),
    entry(
        "randomized-response-half", "a bit, replaced by a fair coin with probability exp(-ε), and so flipped too rarely",
        "Warner 1965",
        # A fair coin is right half of the time, so the bit is flipped with probability exp(-ε)/2; its ε is log(2 exp(ε) - 1).
        mechanism=lambda e, _: RandomizedResponse(math.exp(-e) / 2), pair=(0, 1),
        truth=lambda e, d: _bits_epsilon(math.exp(-e) / 2, 1, d), correct=False,
    ),
    entry(
        "rappor", "a category as a vector of flipped bits, two of which distinguish two categories",
        "Erlingsson, Pihur, Korolova 2014, Section 3.1",
        mechanism=lambda e, _: Rappor(_flip_probability(e / 2), 4), pair=(0, 1),
        truth=lambda e, d: _bits_epsilon(_flip_probability(e / 2), 2, d), correct=True,
    ),
)  # fmt: skip
