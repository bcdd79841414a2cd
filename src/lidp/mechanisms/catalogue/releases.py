"""Mechanisms that release several numbers: histograms, means, running sums, and budgets that are split or not."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from lidp.arrays import Floats
from lidp.mechanisms.catalogue.entry import Entry, entry
from lidp.mechanisms.catalogue.laws import (
    discrete_epsilon,
    laplace_density,
    laplace_epsilon,
    quadrature,
    twice_laplace_epsilon,
)


class _Vector(ABC):
    """A mechanism that computes many outputs of fixed length at once."""

    @abstractmethod
    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` independent outputs, one per row."""

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Any:
        return self.many(dataset, 1, rng)[0]


@dataclass(frozen=True)
class NoisyHistogram(_Vector):
    """The number of records with each of the values 0 to ``bins`` - 1, each with Laplace noise."""

    scale: float
    bins: int = 4

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        counts = np.bincount(np.asarray(dataset, np.int64), minlength=self.bins)
        return counts + rng.laplace(0.0, self.scale, (size, self.bins))


@dataclass(frozen=True)
class PrefixSums(_Vector):
    """The sums of the first 1, 2, ... records, each of which lies in [0, 1], with Laplace noise."""

    scale: float

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        sums = np.cumsum(np.clip(np.asarray(dataset, np.float64), 0.0, 1.0))
        return sums + rng.laplace(0.0, self.scale, (size, len(sums)))


@dataclass(frozen=True)
class TwoReleases(_Vector):
    """The number of records twice, with independent Laplace noise."""

    scale: float

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return len(dataset) + rng.laplace(0.0, self.scale, (size, 2))


@dataclass(frozen=True)
class NoisyMean(_Vector):
    """The mean of records in [0, 1]: a noisy sum over a noisy count of at least 1, each for half of ε."""

    epsilon: float

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        total, count = rng.laplace(0.0, 2 / self.epsilon, (2, size))
        total += np.clip(np.asarray(dataset, np.float64), 0.0, 1.0).sum()
        means: Floats = total / np.maximum(1.0, len(dataset) + count)
        return means


@dataclass(frozen=True)
class TrueCountMean(_Vector):
    """The mean of records in [0, 1] with Laplace noise of scale 2/(nε), where n is the true number of records."""

    epsilon: float

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        mean = np.clip(np.asarray(dataset, np.float64), 0.0, 1.0).mean()
        means: Floats = mean + rng.laplace(0.0, 2 / (len(dataset) * self.epsilon), size)
        return means


def _true_count_epsilon(epsilon: float, delta: float) -> float:
    """Return ε at δ of 0 with noise of scale 2/ε against 1/2 with scale 1/ε; infinite at δ = 0, because the tails differ."""
    if delta == 0:
        return math.inf
    at, weights = quadrature(np.array([0.0, 0.5]), 2 / epsilon, 0.05 / epsilon)
    one, two = laplace_density(at, 2 / epsilon), laplace_density(at - 0.5, 1 / epsilon)
    return discrete_epsilon(weights * one, weights * two, delta)


_SUMS = ((0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))  # the first record is in all sums
_MEANS = ((0.0,), (0.0, 1.0))

ENTRIES: tuple[Entry, ...] = (
    entry(
        "noisy-histogram", "counts of disjoint bins, each with the noise of one count",
        "Dwork, McSherry, Nissim, Smith 2006, Section 3.2",
        mechanism=lambda e, _: NoisyHistogram(1 / e), pair=((0, 1, 1, 3), (0, 1, 1, 3, 2)),
        truth=laplace_epsilon, correct=True,
    ),
    entry(
        "noisy-mean-noisy-count", "a noisy sum over a noisy count, each for half the budget",
        "Li, Lyu, Su, Yang 2016, Section 2",
        # An upper bound: the ε of releasing both the sum and the count.
        mechanism=lambda e, _: NoisyMean(e), pair=_MEANS,
        truth=lambda e, d: twice_laplace_epsilon(e / 2, d), correct=True, exact=False,
    ),
    entry(
        "noisy-mean-true-count", "a mean with noise that shrinks with the true number of records",
        "Kong, Muñoz Medina, Ribero, Syed 2023",
        mechanism=lambda e, _: TrueCountMean(e), pair=_MEANS, truth=_true_count_epsilon, correct=False,
    ),
    entry(
        "prefix-sums", "running sums of 4 records, with noise for the record that is in all of them",
        "Dwork, Naor, Pitassi, Rothblum 2010",
        # An upper bound at δ > 0: four numbers leak slightly less than one number that differs by 4.
        mechanism=lambda e, _: PrefixSums(4 / e), pair=_SUMS, truth=lambda e, _: e, correct=True,
    ),
    entry(
        "prefix-sums-wrong", "running sums of 4 records, each with the noise of one sum",
        "Dwork, Naor, Pitassi, Rothblum 2010",
        # An upper bound at δ > 0, as above.
        mechanism=lambda e, _: PrefixSums(1 / e), pair=_SUMS, truth=lambda e, _: 4 * e, correct=False,
    ),
    entry(
        "budget-spent-twice", "a count released twice, each time for the whole budget", "Dwork, Roth 2014, Theorem 3.14",
        mechanism=lambda e, _: TwoReleases(1 / e), pair=((), (1.0,)), truth=twice_laplace_epsilon, correct=False,
    ),
)  # fmt: skip
