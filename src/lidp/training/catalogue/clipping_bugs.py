"""Trainers in which one record can change a step by more than the clipping norm."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from lidp.arrays import Floats
from lidp.training.catalogue.gradients import Batch, batch_norm_gradients
from lidp.training.catalogue.loop import ReferenceLoop

AUGMENTATIONS = (0.8, 0.9, 1.1, 1.2)
"""Factors of the features: each gives another version of an example."""


class ClipAfterAveraging(ReferenceLoop):
    """The mean gradient of the batch is clipped, and gets the noise of a mean of clipped gradients."""

    additive: ClassVar[bool] = False

    def step_sum(self, theta: Floats, batch: Batch) -> Floats:
        if not len(batch):
            return np.zeros_like(theta)
        mean = self.gradients(theta, batch).mean(axis=0, keepdims=True)
        clipped: Floats = self.clip(mean)[0]
        return clipped * self.batch_size


class ClipPerBatch(ReferenceLoop):
    """The sum of the gradients of the batch is clipped, so that another record may turn it round."""

    additive: ClassVar[bool] = False

    def step_sum(self, theta: Floats, batch: Batch) -> Floats:
        clipped: Floats = self.clip(self.gradients(theta, batch).sum(axis=0, keepdims=True))[0]
        return clipped


class ClipPerLayer(ReferenceLoop):
    """The weights and the biases of each layer are clipped to the norm that the whole gradient should have."""

    def clip(self, gradients: Floats) -> Floats:
        groups = np.split(gradients, np.cumsum(self.network.group_sizes)[:-1], axis=1)
        return np.concatenate([super(ClipPerLayer, self).clip(group) for group in groups], axis=1)


class BiasNotClipped(ReferenceLoop):
    """Biases are left out of the clipping."""

    def clip(self, gradients: Floats) -> Floats:
        groups = self.network.group_of(np.arange(self.network.size))
        is_bias = groups % 2 == 1  # weights and biases take turns
        return np.where(is_bias, gradients, super().clip(np.where(is_bias, 0.0, gradients)))


class BatchNorm(ReferenceLoop):
    """The hidden layer is normalised over the batch, so that a record changes the gradients of all others."""

    additive: ClassVar[bool] = False

    def gradients(self, theta: Floats, batch: Batch) -> Floats:
        return batch_norm_gradients(self.network, theta, batch)


class AugmentationsCountedSeparately(ReferenceLoop):
    """The gradients of all augmentations of a record are clipped and added, instead of their mean being clipped."""

    def contributions(self, theta: Floats, batch: Batch) -> Floats:
        versions = (Batch(factor * batch.x, batch.y, batch.gradients) for factor in AUGMENTATIONS)
        total: Floats = np.sum(
            [super(AugmentationsCountedSeparately, self).contributions(theta, v) for v in versions], axis=0
        )
        return total
