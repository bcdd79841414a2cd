"""Trainers whose batches or steps are not those that the accountant assumes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lidp.arrays import Ints
from lidp.training.catalogue.loop import ReferenceLoop


class ShuffledBatches(ReferenceLoop):
    """An epoch is a shuffled order of all records, cut into batches of nearly equal size: each record takes part once."""

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Ints]:
        per_epoch = round(1 / self.rate)
        for _ in range(self.steps // per_epoch):
            yield from np.array_split(rng.permutation(size), per_epoch)


class LastBatchKept(ReferenceLoop):
    """Shuffled batches of a fixed size; the last batch of an epoch holds the records that are left."""

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Ints]:
        length = int(self.batch_size)
        for _ in range(round(self.steps * self.rate)):
            order = rng.permutation(size)
            yield from (order[first : first + length] for first in range(0, size, length))


class LastBatchDropped(ReferenceLoop):
    """Shuffled batches of a fixed size; the records that are left at the end of an epoch are not used."""

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Ints]:
        length = int(self.batch_size)
        for _ in range(round(self.steps * self.rate)):
            order = rng.permutation(size)
            yield from (order[first : first + length] for first in range(0, size - length + 1, length))
