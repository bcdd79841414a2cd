"""Small targets for the contract suites. They are in a module, so that worker processes can import them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.target import Output, Target


@dataclass(frozen=True)
class NormalNumbers:
    """Canaries that are standard normal numbers."""

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return ``size`` independent numbers."""
        return rng.standard_normal(size)


def release_with_noise(dataset: Sequence[float], rng: np.random.Generator) -> Output:
    """Return the records with little noise: no privacy at all."""
    return Output([value + 0.01 * rng.standard_normal() for value in dataset], {"records": len(dataset)})


def fail_sometimes(dataset: Sequence[float], rng: np.random.Generator) -> Any:
    """Like ``release_with_noise``, but raise in about a quarter of the runs."""
    if rng.random() < 0.25:
        raise RuntimeError("this run fails, by its own random numbers")
    return release_with_noise(dataset, rng)


@dataclass(frozen=True)
class ReleaseMany:
    """``release_with_noise`` as a mechanism that can run on many data sets at a time."""

    def __call__(self, dataset: Sequence[float], rng: np.random.Generator) -> Output:
        return release_with_noise(dataset, rng)

    def run_many(self, datasets: Sequence[Any], rngs: Sequence[np.random.Generator]) -> list[Output]:
        """Return an output per data set."""
        return [release_with_noise(dataset, rng) for dataset, rng in zip(datasets, rngs, strict=True)]


def closeness(output: Sequence[float], canary: float) -> float:
    """Return minus the distance of the canary from the nearest released number."""
    return -min((abs(canary - value) for value in output), default=10.0)


LEAKY = Target(release_with_noise, NormalNumbers(), closeness, dataset=[0.5, -0.5])
FAILING = Target(fail_sometimes, NormalNumbers(), closeness, dataset=[0.5, -0.5])
LEAKY_MANY = Target(ReleaseMany(), NormalNumbers(), closeness, dataset=[0.5, -0.5])
