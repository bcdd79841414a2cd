"""Counts and sums with noise, and common mistakes about their sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lidp.arrays import Floats
from lidp.mechanisms.catalogue.entry import Entry, entry
from lidp.mechanisms.catalogue.laws import laplace_epsilon

_LAPLACE = "Dwork, McSherry, Nissim, Smith 2006"
_GAUSSIAN = "Balle, Wang 2018"
_SENSITIVITY = "Casacuberta, Shoemate, Vadhan, Wagaman 2022"
_RARE = "with ε below 1/2 and δ of 1e-5 or less, no event exceeds the claim by more than 0.5 % of all runs"


@dataclass(frozen=True)
class NoisySum:
    """The sum of the records, each clipped to [0, upper], plus noise. Without ``upper``, nothing is clipped."""

    scale: float
    upper: float | None = 1.0
    gaussian: bool = False

    def __call__(self, dataset: Any, rng: np.random.Generator) -> float:
        return float(self.many(dataset, 1, rng)[0])

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` independent outputs."""
        records = np.asarray(dataset, np.float64)
        if self.upper is not None:
            records = np.clip(records, 0.0, self.upper)
        noise = rng.normal if self.gaussian else rng.laplace
        sums: Floats = records.sum() + noise(0.0, self.scale, size)
        return sums


@dataclass(frozen=True)
class NoisyRecords:
    """Every record, clipped to [0, 1], plus independent Laplace noise. The output has the length of the data set."""

    scale: float

    def __call__(self, dataset: Any, rng: np.random.Generator) -> list[float]:
        return self.many(dataset, 1, rng)[0]

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> list[list[float]]:
        """Return ``size`` independent outputs."""
        records = np.clip(np.asarray(dataset, np.float64), 0.0, 1.0)
        outputs: list[list[float]] = (records + rng.laplace(0.0, self.scale, (size, len(records)))).tolist()
        return outputs


def _gaussian(noise_factor: float = 1.0, upper: float = 1.0) -> Any:
    def mechanism(epsilon: float, delta: float) -> NoisySum:
        from lidp.curves.gaussian import sigma_for

        return NoisySum(sigma_for(epsilon, delta) * noise_factor, upper, gaussian=True)

    return mechanism


def _gaussian_truth(relative_sensitivity: float) -> Any:
    def truth(epsilon: float, delta: float) -> float:
        from lidp.curves.gaussian import gaussian_epsilon, sigma_for

        return gaussian_epsilon(relative_sensitivity / sigma_for(epsilon, delta), delta)

    return truth


ENTRIES: tuple[Entry, ...] = (
    entry(
        "laplace", "a count with Laplace noise", _LAPLACE,
        mechanism=lambda e, _: NoisySum(1 / e), pair=((), (1.0,)), truth=laplace_epsilon, correct=True,
    ),
    entry(
        "laplace-half-scale", "a count with half the Laplace noise it needs", _LAPLACE,
        mechanism=lambda e, _: NoisySum(1 / (2 * e)), pair=((), (1.0,)),
        truth=lambda e, d: laplace_epsilon(2 * e, d), correct=False,
    ),
    entry(
        "laplace-wrong-sensitivity", "a sum of values up to 2 with Laplace noise for values up to 1", _SENSITIVITY,
        mechanism=lambda e, _: NoisySum(1 / e, upper=2.0), pair=((), (2.0,)),
        truth=lambda e, d: laplace_epsilon(2 * e, d), correct=False,
    ),
    entry(
        "unclipped-sum", "a sum of unclipped values with Laplace noise for values up to 1", _LAPLACE,
        # The mechanism is not private for any ε, but this pair of inputs has only 5 times the claimed ε.
        mechanism=lambda e, _: NoisySum(1 / e, upper=None), pair=((), (5.0,)),
        truth=lambda e, d: laplace_epsilon(5 * e, d), correct=False,
    ),
    entry(
        "nan-through-clipping", "a sum of clipped values where a NaN stays a NaN", "numpy.clip keeps NaN",
        mechanism=lambda e, _: NoisySum(1 / e), pair=((0.5,), (0.5, math.nan)),
        truth=lambda _e, _d: math.inf, correct=False,
    ),
    entry(
        "true-length", "one noisy value per record, which reveals the number of records", "Dwork, Roth 2014, Definition 2.4",
        # Noise on every record would suffice if the number of records were public.
        mechanism=lambda e, _: NoisyRecords(1 / e), pair=((0.5, 0.5), (0.5, 0.5, 0.5)),
        truth=lambda _e, _d: math.inf, correct=False,
    ),
    entry(
        "gaussian", "a count with just enough Gaussian noise", _GAUSSIAN,
        mechanism=_gaussian(), pair=((), (1.0,)), truth=_gaussian_truth(1.0), correct=True, needs_delta=True,
    ),
    entry(
        "gaussian-half-scale", "a count with half the Gaussian noise it needs", _GAUSSIAN,
        mechanism=_gaussian(noise_factor=0.5), pair=((), (1.0,)),
        truth=_gaussian_truth(2.0), correct=False, needs_delta=True, hard=_RARE,
    ),
    entry(
        "gaussian-wrong-sensitivity", "a sum of values up to 2 with Gaussian noise for values up to 1", _SENSITIVITY,
        mechanism=_gaussian(upper=2.0), pair=((), (2.0,)),
        truth=_gaussian_truth(2.0), correct=False, needs_delta=True, hard=_RARE,
    ),
)  # fmt: skip
