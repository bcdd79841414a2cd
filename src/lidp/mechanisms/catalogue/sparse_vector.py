"""The sparse vector technique, correct and broken: report which answers exceed a threshold, at a cost per reported answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lidp.arrays import Bools, Floats
from lidp.mechanisms.catalogue.laws import laplace_cdf, laplace_density, quadrature


@dataclass(frozen=True)
class SparseVector:
    """Reports for each answer in turn whether it is above a threshold, both with Laplace noise.

    A data set is the sequence of its answers; each answer of a neighbour differs by at most 1. The output is a list of False and
    True; with ``release``, of False and noisy answers.

    Attributes:
        threshold_scale, answer_scale: scales of the noise; 0 for no noise.
        cutoff: the number of True after which the output ends; None for no limit.
        resample: whether the threshold gets new noise after each True.
        release: whether the output contains the noisy answer instead of True.
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
        """Return ``size`` independent outputs."""
        answers = np.asarray(dataset, np.float64)
        noisy = answers + rng.laplace(0.0, self.answer_scale, (size, len(answers)))
        above = self._above(noisy, rng)
        reports = above.astype(object) if self.release else above
        if self.release:
            reports[above] = noisy[above]
        rows: list[list[Any]] = reports.tolist()
        if self.cutoff is None:
            return rows
        stops = (np.cumsum(above, axis=1) < self.cutoff).sum(axis=1) + 1  # beyond the last answer if there are too few True
        return [row[:stop] for row, stop in zip(rows, stops.tolist(), strict=True)]

    def _above(self, noisy: Floats, rng: np.random.Generator) -> Bools:
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
    """Return the probabilities of all outputs on either data set; outputs of equal likelihood ratio may be merged.

    Given the noisy threshold, answers are independent, so that the probability of an output is an integral of a product over the
    threshold. Mechanisms that release noisy answers, or have no noise on the threshold, are not supported.
    """
    pairs = list(zip(map(float, d0), map(float, d1), strict=True))
    breaks = np.array([mechanism.threshold, *(value for pair in pairs for value in pair)])
    # Products of many tails are steep.
    steepest = mechanism.answer_scale * 8 / len(pairs) or mechanism.threshold_scale
    at, weights = quadrature(breaks, mechanism.threshold_scale, min(steepest, mechanism.threshold_scale))
    prior = weights * laplace_density(at - mechanism.threshold, mechanism.threshold_scale)
    start = np.stack([prior, prior])
    finished: dict[Any, Floats] = {}
    unfinished: dict[tuple[Any, ...], Floats] = {(): start}
    for index, pair in enumerate(pairs):
        low = np.stack([laplace_cdf(at - answer, mechanism.answer_scale) for answer in pair])
        high = np.stack([laplace_cdf(answer - at, mechanism.answer_scale) for answer in pair])
        extended: dict[tuple[Any, ...], Floats] = {}
        for history, joint in unfinished.items():
            extended[history] = extended.get(history, 0.0) + joint * low
            with_true = _append_true(mechanism, history, index, pair)
            joint = joint * high
            if len(with_true) == mechanism.cutoff:
                finished[with_true, index] = finished.get((with_true, index), 0.0) + joint.sum(axis=1)
                continue
            if mechanism.resample:
                joint = joint.sum(axis=1)[:, None] * start
            extended[with_true] = extended.get(with_true, 0.0) + joint
        unfinished = extended
    law = np.array([*finished.values(), *(joint.sum(axis=1) for joint in unfinished.values())])
    return law[:, 0], law[:, 1]


def _append_true(
    mechanism: SparseVector, history: tuple[Any, ...], index: int, pair: tuple[float, float]
) -> tuple[Any, ...]:
    # With a single threshold, only the number of True per kind of answer matters; with new thresholds, their positions matter.
    return (*history, index) if mechanism.resample else tuple(sorted([*history, pair]))
