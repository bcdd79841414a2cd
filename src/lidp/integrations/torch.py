"""Audit a training loop in PyTorch: a function ``train(records, planting) -> model``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lidp import checks
from lidp._runtime.global_generators import seed_global_generators, seed_torch
from lidp.arrays import Floats, Ints, NamedArrays, Singles
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.planting import GradientSeeds, Planting, Trained, directions
from lidp.integrations.record_sets import PooledRecords, copy_records
from lidp.integrations.trainers import IDENTICAL_PILOTS, Loss, RecordLoss, pool_target
from lidp.target import Output, Prepared, Target

Train = Callable[[Any, Any], Any]

_NUMBERS_PER_PART = 2**24
"""Total size of the directions that scores hold in memory at a time."""
_MIN_NOISE_MULTIPLIER = 1e-3


@dataclass(frozen=True)
class PlantedRecords:
    """Records, which are copied for every run, and the seeds of gradient canaries that are planted during training."""

    records: Any = field(repr=False)
    seeds: Ints = field(default_factory=lambda: np.empty(0, np.int64), repr=False)

    def __len__(self) -> int:
        return len(self.records)

    def with_canaries(self, canaries: Ints) -> PlantedRecords:
        """Return the same records with these canaries."""
        return PlantedRecords(self.records, np.array(canaries, dtype=np.int64))


@dataclass(frozen=True)
class Loop:
    """A training loop as a mechanism. PyTorch uses ``threads`` threads, so that results do not depend on the machine."""

    train: Train
    white_box: bool = False
    noiseless: bool = False
    threads: int = 1

    def __call__(self, data: Any, rng: np.random.Generator) -> Output:
        # Separate streams for PyTorch's generators and for the sampling of canaries.
        torch_rng, planting_rng = rng.spawn(2)
        trained = self.run(data, self.planting(data, planting_rng), torch_rng)
        return Output(trained, {"steps": trained.steps} if trained.steps else {})

    def run(self, data: Any, planting: Planting, torch_rng: np.random.Generator) -> Trained:
        """Train one model; ``torch_rng`` seeds PyTorch."""
        import torch

        records = copy_records(data.records) if isinstance(data, PlantedRecords) else data
        threads = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        seed_torch(torch, int(torch_rng.integers(2**63)))
        try:
            return planting.outcome(self.train(records, planting))
        finally:
            torch.set_num_threads(threads)

    def planting(self, data: Any, rng: np.random.Generator) -> Planting:
        """Return the planting of one run."""
        gradients = isinstance(data, PlantedRecords)
        seeds = data.seeds if gradients else np.empty(0, np.int64)
        return Planting(seeds, rng, white_box=self.white_box, noiseless=self.noiseless, required=gradients)


@dataclass(frozen=True)
class MovedScore:
    """Minus the inner product of a canary with the change of the parameters, relative to pilot models."""

    def many(self, output: Trained, canaries: Ints, prepared: NamedArrays) -> Floats:
        """Return the score of each canary."""
        moved = (output.moved - prepared["centre"]).astype(np.float32)
        return -_multiply_directions(canaries, moved[:, None])[:, 0]

    def __call__(self, output: Trained, canary: int, prepared: NamedArrays) -> float:
        return float(self.many(output, np.array([canary]), prepared)[0])


@dataclass(frozen=True)
class StepsScore:
    """Log-likelihood ratio of the noisy gradients of all steps, with the canary sampled at the sampling rate against without it.

    This is a white-box score: it uses what every step releases, which the claim of DP-SGD covers, and not only the final model.
    """

    def many(self, output: Trained, canaries: Ints, prepared: NamedArrays) -> Floats:
        """Return the score of each canary."""
        if output.released is None:
            raise AuditFailed("the training loop did not record what its steps release; call planting.released(sums, ...)")
        centre = prepared["centre"]
        if centre.shape != output.released.shape:
            raise AuditFailed(
                f"a run had {len(output.released)} steps, but pilot runs had {len(centre)}; all runs need the same number"
            )
        projections = _multiply_directions(canaries, (output.released - centre).T.astype(np.float32))
        rates, noises = output.weights[:, 0], np.maximum(output.weights[:, 1], _MIN_NOISE_MULTIPLIER)
        log_absent = np.log1p(-np.minimum(rates, 1 - 1e-12))
        scores: Floats = np.logaddexp(log_absent, np.log(rates) + (projections - 0.5) / noises**2).sum(axis=1)
        return scores

    def __call__(self, output: Trained, canary: int, prepared: NamedArrays) -> float:
        return float(self.many(output, np.array([canary]), prepared)[0])


def _multiply_directions(canaries: Ints, matrix: Singles) -> Floats:
    """Return the directions of canaries times a matrix, computed in parts to limit memory."""
    size = len(matrix)
    step = max(1, _NUMBERS_PER_PART // size)
    parts = [directions(canaries[k : k + step], size) @ matrix for k in range(0, len(canaries), step)]
    return np.concatenate(parts).astype(np.float64) if parts else np.empty((0, matrix.shape[1]))


@dataclass(frozen=True)
class LoopPilots:
    """A preparation step: train ``models`` models without canaries, and return the mean change of their parameters.

    For white-box scores, return the mean of the noisy gradients of each step instead.
    """

    loop: Loop
    models: int

    def __call__(self, data: PlantedRecords, rng: np.random.Generator) -> Prepared:
        outcomes = []
        for pilot_rng in rng.spawn(self.models):
            seed_global_generators(pilot_rng)
            trained = self.loop(data, pilot_rng).value
            outcomes.append(trained.released if self.loop.white_box else trained.moved)
        if any(outcome is None or outcome.shape != outcomes[0].shape for outcome in outcomes):
            raise AuditFailed("pilot runs did not record what their steps release, or differ in the number of steps")
        if not self.loop.noiseless and len(outcomes) > 1 and np.array_equal(outcomes[0], outcomes[1]):
            raise AuditFailed(IDENTICAL_PILOTS)
        return Prepared({"centre": np.mean(outcomes, axis=0, dtype=np.float64)}, models=self.models)


def cross_entropy(model: Any, record: Any) -> float:
    """Return the cross-entropy of a classifier in evaluation mode on a record (features, label)."""
    import torch

    features, label = record[0], record[1]
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            logits = model(torch.as_tensor(features)[None].to(next(model.parameters()).device))
            return float(torch.nn.functional.cross_entropy(logits.float().cpu(), torch.as_tensor([int(label)])))
    finally:
        model.train(training)


def _plantable(records: Any) -> PlantedRecords:
    """Return records for gradient canaries; raise if they cannot be copied for every run."""
    copy_records(records)
    return PlantedRecords(records)


def torch_target(
    train: Train,
    records: Any,
    *,
    canaries: Any = None,
    loss: Loss = cross_entropy,
    white_box: bool = False,
    pilots: int | None = None,
    threads: int = 1,
    name: str = "",
    facts: Mapping[str, float | str] | None = None,
) -> Target:
    """Return a target for a training loop.

    Args:
        train: ``train(records, planting) -> model``. With gradient canaries it calls the methods of :class:`Planting`; with
            canaries that are records it may ignore ``planting``. PyTorch's global generators are seeded before each run.
        records: the records for ``train``: a data set of PyTorch, arrays, or a list.
        canaries: a pool of records of the same type; if it is None, canaries are gradients.
        loss: ``loss(model, record)``, for canaries that are records.
        white_box: whether scores use the noisy gradients of every step instead of the final model.
        pilots: number of models trained before the audit without canaries. Default: 16 for gradients, 8 for records.
        threads: number of threads of PyTorch.
        facts: numbers or words by name, which results show.
    """
    if not callable(train):
        raise InvalidArgument(f"train must be callable as train(records, planting), got {train!r}")
    loop = Loop(train, white_box=white_box, threads=checks.count(threads=threads))
    return loop_target(loop, records, canaries=canaries, loss=loss, pilots=pilots, name=name, facts=facts)


def loop_target(
    loop: Loop,
    records: Any,
    *,
    canaries: Any,
    loss: Loss,
    pilots: int | None,
    name: str,
    facts: Mapping[str, float | str] | None,
    pilot_loop: Loop | None = None,
    data: PooledRecords | None = None,
) -> Target:
    """Return a target for a loop that is a mechanism. Pilot models are trained by ``pilot_loop``, by default the same loop."""
    name = name or str(getattr(loop.train, "__qualname__", type(loop.train).__qualname__))
    if canaries is not None:
        if loop.white_box:
            raise InvalidArgument("white-box scores are for gradient canaries; leave out canaries= or white_box=True")
        data = data or PooledRecords(records, canaries)
        record_loss = RecordLoss(_LossOfTrained(loss), data.pool)
        return pool_target(loop, record_loss, data, pilots=8 if pilots is None else pilots, name=name, facts=facts)
    return Target(
        loop,
        GradientSeeds(),
        StepsScore() if loop.white_box else MovedScore(),
        _plantable(records),
        prepare=LoopPilots(pilot_loop or loop, checks.count(pilots=16 if pilots is None else pilots)),
        name=f"{name}, white-box" if loop.white_box else name,
        facts=facts or {},
    )


@dataclass(frozen=True)
class _LossOfTrained:
    """Applies the loss of a model to the outcome of a training run; NaN if the loss is not finite."""

    loss: Loss

    def __call__(self, output: Any, record: Any) -> float:
        trained = output.value if isinstance(output, Output) else output
        loss = float(self.loss(trained.model, record))
        return loss if math.isfinite(loss) else math.nan
