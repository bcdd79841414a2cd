"""Pilot models: trained before the audit on the data without canaries, as a reference for scores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Singles
from lidp.canaries.difficulty import difficulty
from lidp.canaries.examples import ExamplePool
from lidp.target import Prepared
from lidp.training.records import TrainingSet
from lidp.training.trainer import DPSGD


@dataclass(frozen=True)
class Pilots:
    """A preparation step: train ``count`` models without canaries.

    The step returns the mean of their parameters (``centre``). For a pool of examples it also returns their labels
    (``pool_labels``; those of highest mean loss if the pool has none), and the mean loss at the label and its spread
    (``pool_losses``, ``pool_spreads``; see :func:`lidp.canaries.difficulty.difficulty`).

    If ``noiseless``, pilot models are trained without noise. A few of them estimate the mean of noisy models better than many noisy
    models, because models differ in little else than the noise. Their spread is then meaningless.
    """

    trainer: DPSGD
    count: int
    pool: ExamplePool | None = None
    threads: int = 2
    noiseless: bool = False

    def __post_init__(self) -> None:
        checks.count(count=self.count)

    def __call__(self, records: TrainingSet, rng: np.random.Generator) -> Prepared:
        trainer = replace(self.trainer, sigma=0.0) if self.noiseless else self.trainer
        with ThreadPoolExecutor(self.threads) as pool:
            models = list(pool.map(lambda model_rng: trainer.train(records, model_rng), rng.spawn(self.count)))
        arrays: dict[str, NDArray[Any]] = {"centre": np.asarray(np.mean(models, axis=0, dtype=np.float64))}
        if self.pool is not None:
            arrays |= self._difficulty(models)
        return Prepared(arrays, models=self.count)

    def _difficulty(self, models: list[Singles]) -> dict[str, NDArray[Any]]:
        assert self.pool is not None  # noqa: S101  # for the type checker
        network, features = self.trainer.network, self.pool.features
        # losses[model, example, class]
        classes = np.arange(network.classes)
        losses = np.array(
            [
                network.losses(theta, np.repeat(features, len(classes), axis=0), np.tile(classes, len(features)))
                for theta in models
            ]
        ).reshape(len(models), len(features), len(classes))
        labels = losses.mean(axis=0).argmax(axis=1) if self.pool.labels is None else self.pool.labels
        means, spreads = difficulty(losses[:, np.arange(len(features)), labels])
        return {"pool_labels": labels, "pool_losses": means, "pool_spreads": spreads}
