"""Report noisy max: select the largest of several noisy counts for the privacy cost of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.mechanisms.catalogue.entry import Entry, entry
from lidp.mechanisms.catalogue.laws import discrete_epsilon, laplace_cdf, laplace_density, quadrature


@dataclass(frozen=True)
class NoisyMax:
    """The index of the largest count after Laplace noise; with ``release``, its noisy value instead.

    A data set is the sequence of its counts; each count of a neighbour differs by at most 1, in either direction.
    """

    scale: float
    release: bool = False

    def __call__(self, dataset: Any, rng: np.random.Generator) -> float | int:
        output = self.many(dataset, 1, rng)[0]
        return float(output) if self.release else int(output)

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats | Ints:
        """Return ``size`` independent outputs."""
        counts = np.asarray(dataset, np.float64)
        noisy = counts + rng.laplace(0.0, self.scale, (size, len(counts)))
        outputs: Floats | Ints = noisy.max(axis=1) if self.release else noisy.argmax(axis=1)
        return outputs


def index_law(counts: Any, scale: float) -> Floats:
    """Return the probability of each index to be reported."""
    counts = np.asarray(counts, np.float64)
    at, weights = quadrature(counts, scale, scale)
    below = np.stack([laplace_cdf(at - count, scale) for count in counts])
    law = [
        (weights * laplace_density(at - count, scale) * np.delete(below, index, axis=0).prod(axis=0)).sum()
        for index, count in enumerate(counts)
    ]
    return np.array(law)


def _value_epsilon(count: int, scale: float, delta: float) -> float:
    """Return ε at δ of the largest of ``count`` noisy counts, all of which are 0 or all 1.

    Its density is n f F^(n-1). Below both counts, f and F differ by the factor exp(1/scale), so that ε at δ = 0 is n/scale.
    """
    at, weights = quadrature(np.array([0.0, 1.0]), scale, scale / 20)
    laws = [weights * laplace_density(at - c, scale) * laplace_cdf(at - c, scale) ** (count - 1) * count for c in (0, 1)]
    return discrete_epsilon(laws[0], laws[1], delta)


_COUNTS = ((1.0, 0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 1.0, 1.0, 1.0))

ENTRIES: tuple[Entry, ...] = (
    entry(
        "noisy-max", "the index of the largest noisy count", "Dwork, Roth 2014, Section 3.3",
        # Noise of scale 2/ε and not 1/ε, because some counts may increase while others decrease.
        mechanism=lambda e, _: NoisyMax(2 / e), pair=_COUNTS,
        truth=lambda e, d: discrete_epsilon(index_law(_COUNTS[0], 2 / e), index_law(_COUNTS[1], 2 / e), d), correct=True,
    ),
    entry(
        "noisy-max-value", "the largest noisy count itself, with the noise of the index", "Ding, Wang, Wang, Zhang, Kifer 2018",
        mechanism=lambda e, _: NoisyMax(2 / e, release=True), pair=((0.0,) * 5, (1.0,) * 5),
        truth=lambda e, d: _value_epsilon(5, 2 / e, d), correct=False,
    ),
)  # fmt: skip
