"""``TrainingEntry``: a trainer of the catalogue, with its claim, and with the canaries and the score that find its fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lidp.canaries.coordinates import SpreadCoordinates
from lidp.claim import Claim, Neighbours
from lidp.target import Target
from lidp.training.catalogue.data import CLASSES, FEATURES, LayerSpanningGradients, OpposedGradient, RareFeatures, clusters
from lidp.training.catalogue.loop import ReferenceLoop
from lidp.training.catalogue.scores import NumberOfSteps, VarianceOverSteps
from lidp.training.model import Network
from lidp.training.records import Kind, TrainingSet
from lidp.training.transcript import TranscriptScore

RARE_FEATURES = 32
_RECORDS = 288
SMALL_NETWORK = Network(FEATURES, CLASSES, (16,))
"""A network of one hidden layer, for canaries that are gradients."""
LINEAR_MODEL = Network(FEATURES + RARE_FEATURES, CLASSES)
"""A linear model with features that no record uses, for canaries that are examples."""
_LONG = 10.0  # times the clipping norm


@dataclass(frozen=True)
class Planted:
    """What is planted to find a fault. Gradients are planted before clipping.

    Attributes:
        description: what it is, in words.
        kind: what it is to the trainer.
        distribution: the distribution of canaries.
        separate: whether the gradients of different canaries do not overlap.
    """

    description: str
    kind: Kind
    distribution: Any
    separate: bool = True


def coordinate_gradients(clip_norm: float = 1.0) -> Planted:
    """Return gradients as long as the clipping norm, along one coordinate each, spread over the layers."""
    return Planted("gradients", Kind.COORDINATE, SpreadCoordinates(SMALL_NETWORK.group_sizes, clip_norm))


def long_coordinate_gradients() -> Planted:
    """Return gradients ten times as long as the clipping norm, along one coordinate each, spread over the layers."""
    return Planted("long gradients", Kind.COORDINATE, SpreadCoordinates(SMALL_NETWORK.group_sizes, _LONG))


def layer_spanning_gradients() -> Planted:
    """Return gradients that are ten times as long as the clipping norm in several layers each."""
    distribution = LayerSpanningGradients(SMALL_NETWORK.group_sizes, _LONG)
    return Planted("long gradients in several layers", Kind.GRADIENT, distribution)


def opposed_gradient() -> Planted:
    """Return a gradient that is longer than the sum of a batch, and opposed to it."""
    distribution = OpposedGradient(LINEAR_MODEL, _RECORDS, 1000.0)
    return Planted("gradient against the batch", Kind.GRADIENT, distribution, separate=False)


def examples(scale: float) -> Planted:
    """Return examples with one large feature that no record uses."""
    return Planted("examples", Kind.EXAMPLE, RareFeatures(RARE_FEATURES, scale), separate=False)


class FoundBy(StrEnum):
    """The score that finds a fault."""

    STEPS = "likelihood ratio per step"
    """The log-likelihood ratio of every step, each canary sampled independently."""
    EPOCHS = "likelihood ratio per epoch"
    """The log-likelihood ratio of every epoch, each canary in exactly one of its steps."""
    VARIANCE = "variance over steps"
    """The variance over the steps of the residual along the canary."""
    NUMBER_OF_STEPS = "number of steps"
    """The number of steps of the run."""

    @property
    def score(self) -> Any:
        """The score as a part of a target."""
        return {FoundBy.VARIANCE: VarianceOverSteps, FoundBy.NUMBER_OF_STEPS: NumberOfSteps}.get(self, TranscriptScore)()


@dataclass(frozen=True)
class TrainingEntry:
    """A trainer with exactly one fault, or none.

    Attributes:
        name: its key in the catalogue.
        about: one line that says what is wrong.
        reference: a public issue or a paper that describes the fault.
        loop: the trainer.
        planted: what is planted to find the fault.
        canaries: the number of canaries per trial.
        records: the number of records that are no canaries.
        found_by: the score that finds the fault.
        models: the number of models that suffice to refute the claim.
        correct: whether the claim holds.
    """

    name: str
    about: str
    reference: str
    loop: ReferenceLoop
    planted: Planted = field(default_factory=coordinate_gradients)
    canaries: int = 64
    records: int = _RECORDS
    found_by: FoundBy = FoundBy.STEPS
    models: int = 64
    correct: bool = False

    @property
    def claim(self) -> Claim:
        """The privacy curve that the trainer's accountant states, for what the trainer believes to do."""
        claimed = self.loop.claimed
        return Claim.dpsgd(
            noise_multiplier=claimed.noise_multiplier, sampling_rate=claimed.rate, steps=self.loop.claimed_steps
        )

    @property
    def target(self) -> Target:
        """The trainer as a target."""
        x, y = clusters(self.records, self.loop.network.features - FEATURES)
        return Target(
            self.loop,
            self.planted.distribution,
            self.found_by.score,
            dataset=TrainingSet(x, y, self.planted.kind),
            name=f"training {self.name}",
            facts={"fault": "none" if self.correct else self.about, "score": str(self.found_by)},
            neighbours=Neighbours.ADD_REMOVE,
            interference=self._interference,
        )

    @property
    def _interference(self) -> str | None:
        if not self.planted.separate:
            return "the gradients of canaries overlap"
        if self.found_by is FoundBy.EPOCHS:
            return "in shuffled batches a canary takes the place of another"
        return "all canaries change the number of steps" if self.found_by is FoundBy.NUMBER_OF_STEPS else None
