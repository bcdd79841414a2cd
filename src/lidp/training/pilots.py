"""Pilot models: trained before the audit on the data without canaries, for scores to be relative to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.canaries.difficulty import difficulty
from lidp.canaries.examples import ExamplePool
from lidp.target import Prepared
from lidp.training.records import TrainingSet
from lidp.training.trainer import DPSGD


@dataclass(frozen=True)
class Pilots:
    """A preparation step: train ``count`` models without canaries.

    Gives the mean of their parameters (``centre``) and, for a pool of examples, the label of highest mean loss where the pool
    has none (``pool_labels``), the mean loss at the label and its spread (``pool_losses``, ``pool_spreads``; see
    :func:`lidp.canaries.difficulty.difficulty`).

    If ``noiseless``, no noise is added: a few such models know the mean of noisy ones better than many noisy ones do, as all but
    the noise is nearly the same in every model. The spread among them says nothing then.
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
            models = list(pool.map(lambda own: trainer.train(records, own), rng.spawn(self.count)))
        arrays: dict[str, NDArray[Any]] = {"centre": np.asarray(np.mean(models, axis=0, dtype=np.float64))}
        if self.pool is not None:
            arrays |= self._difficulty(models)
        return Prepared(arrays, models=self.count)

    def _difficulty(self, models: list[NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
        assert self.pool is not None  # noqa: S101  # for the type checker
        network, features = self.trainer.network, self.pool.features
        # losses[model, example, class]
        every = np.arange(network.classes)
        losses = np.array(
            [
                network.losses(theta, np.repeat(features, len(every), axis=0), np.tile(every, len(features)))
                for theta in models
            ]
        ).reshape(len(models), len(features), len(every))
        labels = losses.mean(axis=0).argmax(axis=1) if self.pool.labels is None else self.pool.labels
        own = losses[:, np.arange(len(features)), labels]
        means, spreads = difficulty(own)
        return {"pool_labels": labels, "pool_losses": means, "pool_spreads": spreads}
