"""Audits of a training loop in PyTorch: ``train(records, planting) -> model``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.global_generators import seed_global_generators, seed_torch
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.planting import GradientSeeds, Planting, Trained, directions
from lidp.integrations.record_sets import PooledRecords, copied
from lidp.integrations.trainers import SAME_RUNS, Loss, RecordLoss, pool_target
from lidp.target import Output, Prepared, Target

Floats = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]
Train = Callable[[Any, Any], Any]

_TOGETHER = 2**24
"""Numbers of directions that are drawn at a time for scores."""
_LEAST_NOISE = 1e-3


@dataclass(frozen=True)
class PlantedRecords:
    """Records, of which every run gets a copy, and gradient canaries that are planted while training."""

    records: Any = field(repr=False)
    seeds: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)

    def __len__(self) -> int:
        return len(self.records)

    def with_canaries(self, canaries: NDArray[np.int64]) -> PlantedRecords:
        """The same records with these canaries."""
        return PlantedRecords(self.records, np.array(canaries, dtype=np.int64))


@dataclass(frozen=True)
class Loop:
    """A training loop as a mechanism. PyTorch computes with ``threads`` threads, so that results do not depend on the machine."""

    train: Train
    white_box: bool = False
    noiseless: bool = False
    threads: int = 1

    def __call__(self, data: Any, rng: np.random.Generator) -> Output:
        # What PyTorch's own generators start from, and which canaries are sampled, have streams of their own.
        start, own = rng.spawn(2)
        trained = self.run(data, self.planting(data, own), start)
        return Output(trained, {"steps": trained.steps} if trained.steps else {})

    def run(self, data: Any, planting: Planting, start: np.random.Generator) -> Trained:
        """Train once."""
        import torch

        records = copied(data.records) if isinstance(data, PlantedRecords) else data
        threads = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        seed_torch(torch, int(start.integers(2**63)))
        try:
            return planting.outcome(self.train(records, planting))
        finally:
            torch.set_num_threads(threads)

    def planting(self, data: Any, rng: np.random.Generator) -> Planting:
        """What a run is given beside its records."""
        gradients = isinstance(data, PlantedRecords)
        seeds = data.seeds if gradients else np.empty(0, np.int64)
        return Planting(seeds, rng, white_box=self.white_box, noiseless=self.noiseless, required=gradients)


@dataclass(frozen=True)
class MovedScore:
    """Minus the inner product of a canary with how far the parameters moved, relative to pilot models."""

    def many(self, output: Trained, canaries: NDArray[np.int64], prepared: Arrays) -> Floats:
        """The scores of some canaries."""
        moved = (output.moved - prepared["centre"]).astype(np.float32)
        return -_in_parts(canaries, moved[:, None])[:, 0]

    def __call__(self, output: Trained, canary: int, prepared: Arrays) -> float:
        return float(self.many(output, np.array([canary]), prepared)[0])


@dataclass(frozen=True)
class StepsScore:
    """How much likelier all noisy gradients are if a canary took part by the sampling rate: a log-likelihood ratio, step by step.

    A white-box score: it looks at what every step releases, which the claim of DP-SGD covers, and not only at the model.
    """

    def many(self, output: Trained, canaries: NDArray[np.int64], prepared: Arrays) -> Floats:
        """The scores of some canaries."""
        if output.released is None:
            raise AuditFailed("the training loop did not tell what its steps released; call planting.released(sums, ...)")
        centre = prepared["centre"]
        if centre.shape != output.released.shape:
            raise AuditFailed(f"a run had {len(output.released)} steps, pilot runs had {len(centre)}; let all have as many")
        along = _in_parts(canaries, (output.released - centre).T.astype(np.float32))
        rates, noises = output.weights[:, 0], np.maximum(output.weights[:, 1], _LEAST_NOISE)
        absent = np.log1p(-np.minimum(rates, 1 - 1e-12))
        found: Floats = np.logaddexp(absent, np.log(rates) + (along - 0.5) / noises**2).sum(axis=1)
        return found

    def __call__(self, output: Trained, canary: int, prepared: Arrays) -> float:
        return float(self.many(output, np.array([canary]), prepared)[0])


def _in_parts(canaries: NDArray[np.int64], matrix: NDArray[np.float32]) -> Floats:
    """Directions of canaries times a matrix, some canaries at a time."""
    size = len(matrix)
    step = max(1, _TOGETHER // size)
    parts = [directions(canaries[k : k + step], size) @ matrix for k in range(0, len(canaries), step)]
    return np.concatenate(parts).astype(np.float64) if parts else np.empty((0, matrix.shape[1]))


@dataclass(frozen=True)
class LoopPilots:
    """A preparation step: train ``models`` without canaries and note how far their parameters move on average.

    For white-box scores: what their steps release on average.
    """

    loop: Loop
    models: int

    def __call__(self, data: PlantedRecords, rng: np.random.Generator) -> Prepared:
        found = []
        for own in rng.spawn(self.models):
            seed_global_generators(own)
            trained = self.loop(data, own).value
            found.append(trained.released if self.loop.white_box else trained.moved)
        if any(one is None or one.shape != found[0].shape for one in found):
            raise AuditFailed("pilot runs did not tell what their steps released, or differ in the number of steps")
        if not self.loop.noiseless and len(found) > 1 and np.array_equal(found[0], found[1]):
            raise AuditFailed(SAME_RUNS)
        return Prepared({"centre": np.mean(found, axis=0, dtype=np.float64)}, models=self.models)


def cross_entropy(model: Any, record: Any) -> float:
    """The loss of a classifier on (features, label), without its training-time randomness."""
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


def _checked(records: Any) -> PlantedRecords:
    """Return records to plant gradients beside; those that cannot be copied for every run are refused here already."""
    copied(records)
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
    """A target from a training loop.

    Args:
        train: ``train(records, planting) -> model``. With gradient canaries it calls the methods of :class:`Planting`; with
            canaries that are records it may ignore it. PyTorch's global generators are seeded for each run.
        records: what ``train`` takes: a data set of PyTorch, arrays, a list.
        canaries: a pool of records of the same make; left out, canaries are gradients.
        loss: ``loss(model, record)``, for canaries that are records.
        white_box: score what every step releases instead of the final model.
        pilots: models trained beforehand without canaries: 16 for gradients, 8 for records.
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
    """A target from a loop that is a mechanism already. Pilots run ``pilot_loop``, if that is another."""
    name = name or str(getattr(loop.train, "__qualname__", type(loop.train).__qualname__))
    if canaries is not None:
        if loop.white_box:
            raise InvalidArgument("white-box scores are for gradient canaries; leave out canaries= or white_box=True")
        data = data or PooledRecords(records, canaries)
        of_model = RecordLoss(_OnModel(loss), data.pool)
        many = 8 if pilots is None else pilots
        return pool_target(loop, of_model, data, pilots=many, name=name, facts=facts)
    return Target(
        loop,
        GradientSeeds(),
        StepsScore() if loop.white_box else MovedScore(),
        _checked(records),
        prepare=LoopPilots(pilot_loop or loop, checks.count(pilots=16 if pilots is None else pilots)),
        name=f"{name}, white-box" if loop.white_box else name,
        facts=facts or {},
    )


@dataclass(frozen=True)
class _OnModel:
    """A loss of a model as one of what a loop gives."""

    loss: Loss

    def __call__(self, output: Any, record: Any) -> float:
        trained = output.value if isinstance(output, Output) else output
        found = float(self.loss(trained.model, record))
        return found if math.isfinite(found) else math.nan
