"""The sparse vector technique, right and wrong: which answers are above a threshold, for a price that should not count them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.mechanisms.catalogue.laws import Floats, laplace_cdf, laplace_density, quadrature


@dataclass(frozen=True)
class SparseVector:
    """Says of each answer in turn whether it is above a threshold, both with Laplace noise.

    A data set is the sequence of its answers; those of a neighbour differ by at most 1 each. The output is a list of False and
    True, or with ``release`` of False and noisy answers.

    Attributes:
        threshold_scale, answer_scale: of the noise, 0 for none.
        cutoff: after so many True it stops; never, if None.
        resample: whether the threshold's noise is drawn anew after each True.
        release: whether the noisy answer is given instead of True.
    """

    threshold: float
    threshold_scale: float
    answer_scale: float
    cutoff: int | None = None
    resample: bool = False
    release: bool = False

    def __call__(self, dataset: Any, rng: np.random.Generator) -> list[Any]:
        return self.many(dataset, 1, rng)[0]

    def many(self, dataset: Any, size: int, rng: np.random.Generator) -> list[list[Any]]:
        """So many independent outputs."""
        answers = np.asarray(dataset, np.float64)
        noisy = answers + rng.laplace(0.0, self.answer_scale, (size, len(answers)))
        above = self._above(noisy, rng)
        said = above.astype(object) if self.release else above
        if self.release:
            said[above] = noisy[above]
        rows: list[list[Any]] = said.tolist()
        if self.cutoff is None:
            return rows
        stops = (np.cumsum(above, axis=1) < self.cutoff).sum(axis=1) + 1  # past the end if there were too few True
        return [row[:stop] for row, stop in zip(rows, stops.tolist(), strict=True)]

    def _above(self, noisy: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
        size, length = noisy.shape
        if not self.resample:
            return noisy >= self.threshold + rng.laplace(0.0, self.threshold_scale, (size, 1))
        thresholds = self.threshold + rng.laplace(0.0, self.threshold_scale, (size, length))
        above = np.empty((size, length), np.bool_)
        used = np.zeros(size, np.int64)
        for column in range(length):
            above[:, column] = noisy[:, column] >= thresholds[np.arange(size), used]
            used += above[:, column]
        return above


def output_laws(mechanism: SparseVector, d0: Any, d1: Any) -> tuple[Floats, Floats]:
    """The probabilities of all outputs on either data set; outputs that are equally likely on both may be lumped together.

    Given the noisy threshold answers are independent, so an output's probability is an integral over the threshold of a product.
    Not for mechanisms that release noisy answers or have no noise on the threshold.
    """
    pairs = list(zip(map(float, d0), map(float, d1), strict=True))
    breaks = np.array([mechanism.threshold, *(value for pair in pairs for value in pair)])
    # Products of many tails are steep.
    steepest = mechanism.answer_scale * 8 / len(pairs) or mechanism.threshold_scale
    at, weights = quadrature(breaks, mechanism.threshold_scale, min(steepest, mechanism.threshold_scale))
    prior = weights * laplace_density(at - mechanism.threshold, mechanism.threshold_scale)
    start = np.stack([prior, prior])
    ended: dict[Any, Floats] = {}
    live: dict[tuple[Any, ...], Floats] = {(): start}
    for place, pair in enumerate(pairs):
        low = np.stack([laplace_cdf(at - answer, mechanism.answer_scale) for answer in pair])
        high = np.stack([laplace_cdf(answer - at, mechanism.answer_scale) for answer in pair])
        grown: dict[tuple[Any, ...], Floats] = {}
        for said, joint in live.items():
            grown[said] = grown.get(said, 0.0) + joint * low
            told = _after_true(mechanism, said, place, pair)
            joint = joint * high
            if len(told) == mechanism.cutoff:
                ended[told, place] = ended.get((told, place), 0.0) + joint.sum(axis=1)
                continue
            if mechanism.resample:
                joint = joint.sum(axis=1)[:, None] * start
            grown[told] = grown.get(told, 0.0) + joint
        live = grown
    law = np.array([*ended.values(), *(joint.sum(axis=1) for joint in live.values())])
    return law[:, 0], law[:, 1]


def _after_true(mechanism: SparseVector, said: tuple[Any, ...], place: int, pair: tuple[float, float]) -> tuple[Any, ...]:
    # With one threshold for all it only matters how many answers of each kind were True; with new ones, where they were.
    return (*said, place) if mechanism.resample else tuple(sorted([*said, pair]))
