"""DP-SGD as a mechanism to audit, fast for many small models."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Ints, Singles, read_only
from lidp.errors import InvalidArgument
from lidp.target import Output
from lidp.training.model import Network
from lidp.training.records import TrainingSet
from lidp.training.transcript import ClaimedSteps, Transcript, new_evidence

_MIN_MAGNITUDE, _MAX_MAGNITUDE = 1e-30, 1e30


class Sampling(StrEnum):
    """How a batch is sampled."""

    POISSON = "poisson"
    """Each record with the same probability, independently at every step, as the accountant assumes."""
    SHUFFLE = "shuffle"
    """Batches of fixed size in shuffled order, as in most code. The accountant does *not* cover this."""


@lru_cache(maxsize=4)
def _fixed_start(network: Network, seed: int) -> Singles:
    """Return the initial parameters that all models share; drawing those of a perceptron takes as long as several steps."""
    return network.initial(np.random.default_rng(seed))


@dataclass(frozen=True)
class DPSGD:
    """Differentially private stochastic gradient descent; its output is the final parameters, or the transcript of all steps.

    Each step samples a batch, scales the gradient of each example to norm at most ``clip_norm``, sums the gradients, adds Gaussian
    noise of standard deviation ``sigma * clip_norm`` to every coordinate, and subtracts ``learning_rate / batch_size`` times the
    result from the parameters. The sampling rate is a constant of the mechanism and never computed from the number of records,
    which is private.

    Attributes:
        rate: the probability that a record is in a batch; the expected number of records is ``batch_size / rate``.
        batch_size: the expected size of a batch, by which sums are divided.
        sigma: the noise multiplier.
        clip_norm: the clipping norm. 0 disables clipping, which is a fault for audits to detect; the noise is then ``sigma``.
        random_start: whether each model gets new initial parameters. Otherwise all get the same, drawn from ``start_seed``.
        claimed: what is claimed of each step; if given, the output is the :class:`Transcript` of the watched canaries.
        test: features and labels on which to measure the accuracy, which becomes metadata of the trial.
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
    claimed: ClaimedSteps | None = None
    test: tuple[Singles, Ints] | None = field(default=None, repr=False, compare=False)
    draws_only_from_rng: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.share(rate=self.rate)
        checks.positive(batch_size=self.batch_size)
        checks.count(steps=self.steps)
        checks.positive(learning_rate=self.learning_rate)
        checks.non_negative(sigma=self.sigma)
        checks.non_negative(clip_norm=self.clip_norm)
        # Both are rounded to float32: rounded to 0, either would be disabled; rounded to infinity, it would ruin the model.
        for name, value in (("clip_norm", self.clip_norm), ("noise", self.sigma * (self.clip_norm or 1.0))):
            if value and not _MIN_MAGNITUDE < value < _MAX_MAGNITUDE:
                raise InvalidArgument(
                    f"{name} must be 0 or between {_MIN_MAGNITUDE:g} and {_MAX_MAGNITUDE:g}, got {value:g}"
                )
        object.__setattr__(self, "sampling", checks.member(Sampling, sampling=self.sampling))
        if self.sampling is Sampling.SHUFFLE and self.batch_size < 1:
            raise InvalidArgument(f"shuffled batches need a batch_size of at least 1, got {self.batch_size:g}")

    @property
    def expected_shift(self) -> float:
        """Expected shift of the parameters by a record whose gradient is constant and has length 1."""
        return self.learning_rate / self.batch_size * self.rate * self.steps

    def __call__(self, records: TrainingSet, rng: np.random.Generator) -> Output:
        """Train a model. Initial parameters, batches and noise come from three streams spawned from ``rng``."""
        theta, transcript = self._run(records, rng)
        metadata: dict[str, Any] = {}
        if self.test is not None:
            metadata["accuracy"] = self.network.accuracy(theta, *self.test)
        return Output(theta if transcript is None else transcript, metadata)

    def train(self, records: TrainingSet, rng: np.random.Generator) -> Singles:
        """Return the parameters of a trained model."""
        return self._run(records, rng)[0]

    def _run(self, records: TrainingSet, rng: np.random.Generator) -> tuple[Singles, Transcript | None]:
        from lidp._compiled import dp_sgd

        if not isinstance(records, TrainingSet):
            raise InvalidArgument(f"DPSGD trains on a TrainingSet, got {type(records).__name__}")
        if records.x.shape[1] != self.network.features:
            raise InvalidArgument(
                f"records have {records.x.shape[1]} features, but the model takes {self.network.features}"
            )
        examples, watched_examples = records.examples, records.watched_examples
        for labels in (records.y, examples[1], watched_examples[1]):
            if len(labels) and (labels.min() < 0 or labels.max() >= self.network.classes):
                raise InvalidArgument(
                    f"labels must be 0 to {self.network.classes - 1} for this model, got {labels.min()} to {labels.max()}"
                )
        coordinates, watched_coordinates = records.coordinates, records.watched_coordinates
        for places, _ in (coordinates, watched_coordinates):
            self.network.group_of(places)  # refuses coordinates outside the model
        start_rng, sampling_rng, noise_rng = rng.spawn(3)
        theta = self.network.initial(start_rng) if self.random_start else _fixed_start(self.network, self.start_seed).copy()
        words = sampling_rng.integers(0, 2**64, 4, dtype=np.uint64)
        lanes = noise_rng.integers(0, 2**32, (4, dp_sgd.LANES), dtype=np.uint32)
        clip = np.float32(self.clip_norm)
        watched = 0 if self.claimed is None or records.watched is None else len(records.watched)
        evidence = new_evidence(watched, self.steps)
        order = np.argsort(watched_coordinates[0], kind="stable")  # the compiled loop reads coordinates in ascending order
        poisson = self.sampling is Sampling.POISSON
        schedule = float(self.rate), float(self.batch_size), poisson
        workspace = dp_sgd.workspace_for(self.network.widths, len(records), *schedule, len(watched_examples[0]))
        x, y = read_only(records.x), read_only(records.y)
        in_place = dp_sgd.reads_in_place(x, records.unit, self.network.widths, workspace)
        dp_sgd.train(
            x, np.float32(records.unit), y, *examples,
            records.gradients(self.network.size), *coordinates, *records.signs, theta, np.array(self.network.widths),
            self.steps, *schedule,
            np.float32(self.learning_rate), clip, np.float32(self.sigma * (self.clip_norm or 1.0)), words, lanes,
            *watched_examples, records.watched_gradients(self.network.size), *(part[order] for part in watched_coordinates),
            *records.watched_signs, np.ones(3) if self.claimed is None else self.claimed.numbers, evidence, workspace,
            x if in_place else None,
        )  # fmt: skip
        if self.claimed is None:
            return theta, None
        if not len(order):
            return theta, Transcript(evidence, self.steps)
        ordered = np.empty_like(evidence)
        ordered[order] = evidence
        if len(np.unique(watched_coordinates[0])) < len(order):  # canaries that overlap have no groups
            return theta, Transcript(ordered, self.steps)
        groups = self.network.group_of(watched_coordinates[0])
        return theta, Transcript(ordered, self.steps, groups, self.network.group_names)
