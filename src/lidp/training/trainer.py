"""DP-SGD as a mechanism to audit: many small models, fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.errors import InvalidArgument
from lidp.target import Output
from lidp.training.model import Network
from lidp.training.records import TrainingSet

Singles = NDArray[np.float32]

_SMALLEST, _LARGEST = 1e-30, 1e30


class Sampling(StrEnum):
    """How batches are chosen."""

    POISSON = "poisson"
    """every record with the same probability, independently at every step: what the accountant assumes"""
    SHUFFLE = "shuffle"
    """fixed-size batches of a shuffled order, as most code does: *not* covered by the accountant"""


@dataclass(frozen=True)
class DPSGD:
    """Differentially private stochastic gradient descent; its output is the final parameters.

    At each step: a batch, the gradient of each of its examples scaled to norm at most ``clip_norm``, their sum, Gaussian noise of
    standard deviation ``sigma * clip_norm`` in every coordinate, and a move by ``learning_rate / batch_size`` against the result.
    The rate at which records are sampled is a constant of the mechanism, never computed from the records it is given: their number
    is private.

    Attributes:
        rate: the probability of a record to be in a batch; ``batch_size / rate`` records are expected.
        batch_size: the expected size of a batch, by which sums are divided.
        sigma: the noise multiplier.
        clip_norm: 0 switches clipping off, which is a fault to be found and not a way to train; the noise is then ``sigma`` itself.
        random_start: draw the initial parameters anew for each model, instead of taking always the same (from ``start_seed``).
        test: features and labels to measure the accuracy on, kept as metadata.
    """

    network: Network
    rate: float
    batch_size: float
    steps: int
    learning_rate: float
    sigma: float
    clip_norm: float = 1.0
    sampling: Sampling = Sampling.POISSON
    random_start: bool = False
    start_seed: int = 0
    test: tuple[Singles, NDArray[np.int64]] | None = field(default=None, repr=False, compare=False)
    draws_only_from_rng: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.share(rate=self.rate)
        checks.positive(batch_size=self.batch_size)
        checks.count(steps=self.steps)
        checks.positive(learning_rate=self.learning_rate)
        checks.non_negative(sigma=self.sigma)
        checks.non_negative(clip_norm=self.clip_norm)
        # Both are rounded to 32 bits; as 0, either would be switched off, as infinity it would spoil the model.
        for name, value in (("clip_norm", self.clip_norm), ("noise", self.sigma * (self.clip_norm or 1.0))):
            if value and not _SMALLEST < value < _LARGEST:
                raise InvalidArgument(f"{name} must be 0 or between {_SMALLEST:g} and {_LARGEST:g}, got {value:g}")
        if self.sampling not in list(Sampling):
            raise InvalidArgument(f"sampling must be one of {', '.join(Sampling)}, got {self.sampling!r}")
        object.__setattr__(self, "sampling", Sampling(self.sampling))
        if self.sampling is Sampling.SHUFFLE and self.batch_size < 1:
            raise InvalidArgument(f"shuffled batches need a batch_size of at least 1, got {self.batch_size:g}")

    @property
    def moved(self) -> float:
        """How far a record whose gradient is always the same, of length 1, is expected to move the parameters."""
        return self.learning_rate / self.batch_size * self.rate * self.steps

    def __call__(self, records: TrainingSet, rng: np.random.Generator) -> Output:
        """Train a model. Initial parameters, batches and noise come from streams spawned off ``rng``."""
        theta = self.train(records, rng)
        metadata: dict[str, Any] = {}
        if self.test is not None:
            metadata["accuracy"] = self.network.accuracy(theta, *self.test)
        return Output(theta, metadata)

    def train(self, records: TrainingSet, rng: np.random.Generator) -> Singles:
        """The parameters of a trained model."""
        from lidp._compiled import dp_sgd

        if not isinstance(records, TrainingSet):
            raise InvalidArgument(f"DPSGD trains on a TrainingSet, got {type(records).__name__}")
        if records.x.shape[1] != self.network.features:
            raise InvalidArgument(f"records have {records.x.shape[1]} features, the model takes {self.network.features}")
        examples = records.examples
        for labels in (records.y, examples[1]):
            if len(labels) and (labels.min() < 0 or labels.max() >= self.network.classes):
                raise InvalidArgument(
                    f"labels must be 0 to {self.network.classes - 1} for this model, got {labels.min()} to {labels.max()}"
                )
        coordinates = records.coordinates
        if len(coordinates[0]) and (coordinates[0].min() < 0 or coordinates[0].max() >= self.network.size):
            raise InvalidArgument(
                f"coordinates of canaries must be 0 to {self.network.size - 1:,} for this model, "
                f"got {coordinates[0].min():,} to {coordinates[0].max():,}"
            )
        start, sampling, noise = rng.spawn(3)
        theta = self.network.initial(start if self.random_start else np.random.default_rng(self.start_seed))
        words = sampling.integers(0, 2**64, 4, dtype=np.uint64)
        lanes = noise.integers(0, 2**32, (4, dp_sgd.LANES), dtype=np.uint32)
        clip = np.float32(self.clip_norm)
        dp_sgd.train(
            records.x, np.float32(records.unit), records.y, *examples,
            records.gradients(self.network.size), *coordinates, theta, np.array(self.network.widths),
            self.steps, float(self.rate), float(self.batch_size), self.sampling is Sampling.POISSON,
            np.float32(self.learning_rate), clip, np.float32(self.sigma * (self.clip_norm or 1.0)), words, lanes,
        )  # fmt: skip
        return theta
