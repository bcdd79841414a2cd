"""Trainers whose noise is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from lidp.arrays import Floats
from lidp.training.catalogue.loop import ReferenceLoop

VIRTUAL_BATCHES = 4
WORKERS = 4
FIXED_SEED = 42


class NoiseForLargerBatch(ReferenceLoop):
    """The mean of a batch gets the noise of a mean over twice as many records."""

    def noises(self, rng: np.random.Generator) -> Iterator[Floats]:
        for noise in super().noises(rng):
            mean_noise = noise / (2 * self.batch_size)
            yield mean_noise * self.batch_size  # as the noise of the sum


class NoNoiseInOneLayer(ReferenceLoop):
    """The weights of the last layer get no noise."""

    def noises(self, rng: np.random.Generator) -> Iterator[Floats]:
        last_weights = self.network.group_of(np.arange(self.network.size)) == len(self.network.group_names) - 2
        for noise in super().noises(rng):
            yield np.where(last_weights, 0.0, noise)


class NoiseReusedAcrossSteps(ReferenceLoop):
    """The generator is seeded anew before every step, with a secret seed, so that every step gets the same noise."""

    def noises(self, rng: np.random.Generator) -> Iterator[Floats]:
        noise = next(super().noises(rng))
        while True:
            yield noise


class NoiseFromFixedSeed(ReferenceLoop):
    """The seed of the noise is a constant of the code, which is public.

    The noise does not come from ``rng``, so that audits probe this trainer. Its runs are independent nevertheless: a constant is
    not random.
    """

    draws_only_from_rng: ClassVar[bool] = False

    def noise_seed(self, rng: np.random.Generator) -> int:
        return FIXED_SEED

    def known_seed(self, seed: int) -> int | None:
        return FIXED_SEED


class NoiseSeedLogged(ReferenceLoop):
    """The seed of the noise is random, and the log of the training, which is published, contains it."""

    def known_seed(self, seed: int) -> int | None:
        return seed


class NoiseOnceForVirtualBatches(ReferenceLoop):
    """Parameters move after every virtual batch, but noise is added to every fourth only, as if the four were one batch."""

    def noises(self, rng: np.random.Generator) -> Iterator[Floats]:
        for number, noise in enumerate(super().noises(rng), start=1):
            yield noise if number % VIRTUAL_BATCHES == 0 else 0.0 * noise


class NoisePerWorkerDividedByWorkers(ReferenceLoop):
    """Each worker adds its share of the noise, divided by the number of workers and not by its square root."""

    def noises(self, rng: np.random.Generator) -> Iterator[Floats]:
        noises = super().noises(rng)
        while True:
            yield np.sum([next(noises) / WORKERS for _ in range(WORKERS)], axis=0)


class NoiseTimesLearningRate(ReferenceLoop):
    """Gradients get noise that is meant for parameters, already multiplied by the learning rate."""

    def noises(self, rng: np.random.Generator) -> Iterator[Floats]:
        for noise in super().noises(rng):
            yield self.learning_rate * noise


class NoiseUnderflows(ReferenceLoop):
    """The noise of the mean is rounded to 16 bits, where numbers below 3e-8 are 0."""

    def noises(self, rng: np.random.Generator) -> Iterator[Floats]:
        for noise in super().noises(rng):
            yield (noise / self.batch_size).astype(np.float16).astype(np.float64) * self.batch_size
