"""The reference loop: correct DP-SGD in plain NumPy. Every broken trainer of the catalogue overrides one method of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Floats, Ints, Singles
from lidp.target import Output
from lidp.training.catalogue.gradients import Batch, clip_rows, record_gradients
from lidp.training.model import Network
from lidp.training.records import TrainingSet
from lidp.training.transcript import ClaimedSteps, TranscriptRecorder

_CLAIMED = ClaimedSteps(noise_multiplier=1.0, rate=0.1, clip_norm=1.0)


@dataclass(frozen=True)
class ReferenceLoop:
    """DP-SGD whose output is the transcript of all steps; correct, unless a subclass breaks it.

    A step samples a batch, sums the clipped gradients of its records, and adds noise. The parameters move along this noisy sum,
    which is what the step releases. All randomness comes from ``rng``.

    Attributes:
        rate: the probability that a record is in a batch.
        steps: the number of steps.
        noise_multiplier: the standard deviation of the noise, in units of the clipping norm.
        batch_size: the expected size of a batch, a constant, by which sums are divided.
        claimed: what the trainer claims of each step, for the score.
        claimed_steps: the number of steps that the trainer's accountant knows of.
        additive: whether the sum of a step is a sum of contributions, one per record, that do not depend on other records.
    """

    network: Network
    rate: float = 0.1
    steps: int = 100
    noise_multiplier: float = 1.0
    clip_norm: float = 1.0
    batch_size: float = 32.0
    learning_rate: float = 0.5
    claimed: ClaimedSteps = _CLAIMED
    claimed_steps: int = 100
    draws_only_from_rng: ClassVar[bool] = True
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.share(rate=self.rate)
        checks.count(steps=self.steps)
        checks.positive(noise_multiplier=self.noise_multiplier)
        checks.positive(clip_norm=self.clip_norm)

    def __call__(self, records: TrainingSet, rng: np.random.Generator) -> Output:
        batch_rng, seed_rng = rng.spawn(2)
        seed = self.noise_seed(seed_rng)
        noises, replayed = self.noises(np.random.default_rng(seed)), self.replayed_noises(seed)
        data, canaries = self._data(records), self._watched(records)
        recorder = TranscriptRecorder(len(canaries))
        theta = self.network.initial(np.random.default_rng(0)).astype(np.float64)
        for chosen in self.batches(len(data), batch_rng):
            released = self.step_sum(theta, data.take(chosen)) + next(noises)
            # The score: what the step released beyond its sum without canaries, along what each canary may add by the claim.
            others = data.take(chosen[chosen < len(records.y)])
            without_canaries = self.step_sum(theta, others)
            allowed = clip_rows(self.influences(theta, others, without_canaries, canaries), self.clip_norm)
            residual = released - without_canaries - next(replayed)
            recorder.add(allowed @ residual, np.square(allowed).sum(axis=1), self.claimed)
            theta = theta - self.learning_rate / self.batch_size * released
        return Output(recorder.transcript(*self._groups(records)), self.log(seed))

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Ints]:
        """Yield for each step the numbers of its records: each record with probability ``rate``."""
        for _ in range(self.steps):
            yield np.flatnonzero(rng.random(size) < self.rate)

    def gradients(self, theta: Floats, batch: Batch) -> Floats:
        """Return the gradient of each record, one row each."""
        return record_gradients(self.network, theta, batch)

    def clip(self, gradients: Floats) -> Floats:
        """Return the rows, each scaled to norm at most ``clip_norm``."""
        return clip_rows(gradients, self.clip_norm)

    def contributions(self, theta: Floats, batch: Batch) -> Floats:
        """Return what each record adds to the sum of a step, one row each."""
        return self.clip(self.gradients(theta, batch))

    def step_sum(self, theta: Floats, batch: Batch) -> Floats:
        """Return the sum to which a step adds noise."""
        total: Floats = self.contributions(theta, batch).sum(axis=0)
        return total

    def noise_seed(self, rng: np.random.Generator) -> int:
        """Return the seed of the noise of a run, which must stay secret."""
        return int(rng.integers(2**63))

    def noises(self, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield the noise of each step."""
        while True:
            yield self.noise_multiplier * self.clip_norm * rng.standard_normal(self.network.size)

    def known_seed(self, seed: int) -> int | None:
        """Return the seed of the noise if it is public; None for a correct trainer."""
        return None

    def log(self, seed: int) -> dict[str, Any]:
        """Return what the trainer publishes besides the released sums."""
        known = self.known_seed(seed)
        return {} if known is None else {"noise seed": str(known)}

    def replayed_noises(self, seed: int) -> Iterator[Floats]:
        """Yield what an adversary knows of the noise of each step: all of it if the seed is known, otherwise nothing."""
        known = self.known_seed(seed)
        if known is not None:
            yield from self.noises(np.random.default_rng(known))
        while True:
            yield np.zeros(self.network.size)

    def influences(self, theta: Floats, others: Batch, without_canaries: Floats, canaries: Batch) -> Floats:
        """Return for each canary the sum of the step with it minus the sum without it, by the trainer's own code.

        In a correct trainer this is the clipped gradient of the canary.
        """
        if self.additive:
            return self.contributions(theta, canaries)
        parts = [
            self.step_sum(theta, others + canaries.take(np.array([k]))) - without_canaries for k in range(len(canaries))
        ]
        return np.array(parts).reshape(len(canaries), self.network.size)

    def _data(self, records: TrainingSet) -> Batch:
        """Return all records, those that are no canaries first."""
        x, size = records.x.astype(np.float64) * records.unit, self.network.size
        examples = Batch(x, records.y, np.empty((0, size)))
        return examples + self._canaries(*records.examples, records.gradients(size), *records.coordinates)

    def _watched(self, records: TrainingSet) -> Batch:
        gradients = records.watched_gradients(self.network.size)
        return self._canaries(*records.watched_examples, gradients, *records.watched_coordinates)

    def _canaries(self, x: Singles, y: Ints, gradients: Singles, coordinates: Ints, values: Singles) -> Batch:
        rows = np.zeros((len(coordinates), self.network.size))
        rows[np.arange(len(coordinates)), coordinates] = values
        return Batch(x.astype(np.float64), y, np.concatenate([gradients, rows]))

    def _groups(self, records: TrainingSet) -> tuple[Ints | None, tuple[str, ...]]:
        coordinates = records.watched_coordinates[0]
        if not 0 < len(np.unique(coordinates)) == len(coordinates):  # canaries that overlap have no groups
            return None, ()
        return self.network.group_of(coordinates), self.network.group_names
