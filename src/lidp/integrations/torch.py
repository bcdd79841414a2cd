"""Audit a training loop in PyTorch: a function ``train(records, planting) -> model``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.global_generators import seed_global_generators, seed_torch
from lidp.arrays import Floats, Ints, NamedArrays, Singles
from lidp.canaries.gradients import GradientCanary
from lidp.errors import AuditFailed, InvalidArgument, LidpError
from lidp.integrations.canary_counts import count_overlapping, count_separate, count_unknown
from lidp.integrations.gradient_canaries import (
    GROUP_SIZES,
    CoordinatesOfModel,
    GradientSeeds,
    ScoredOutput,
    directions,
    interference,
)
from lidp.integrations.parameter_arrays import ParameterArray, flatten
from lidp.integrations.planting import Planting, Trained
from lidp.integrations.record_sets import PooledRecords, copy_records, count
from lidp.integrations.trainers import Loss, RecordLoss, pool_target
from lidp.target import CanaryCount, Output, Prepared, Target
from lidp.training.transcript import SCORES_SEE, TranscriptScore
from lidp.trials.child_processes import run_in_fresh_process
from lidp.trials.repeated_noise import IDENTICAL_FIRST_STEPS, IDENTICAL_PILOTS

Train = Callable[[Any, Any], Any]

_NUMBERS_PER_PART = 2**24
"""Total size of the directions that scores hold in memory at a time."""
_COUNTING_SECONDS = 60.0
_NO_CANARIES = np.empty(0, np.int64)


@dataclass(frozen=True)
class PlantedRecords:
    """Records, which are copied for every run, and the gradient canaries of one run.

    Inserted canaries are added to gradients during the training. Watched ones, which transcript scores test, are only observed.
    """

    records: Any = field(repr=False)
    inserted: NDArray[Any] = field(default_factory=lambda: _NO_CANARIES, repr=False)
    watched: NDArray[Any] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.records)

    def with_canaries(self, canaries: NDArray[Any]) -> PlantedRecords:
        """Return the same records with these canaries inserted."""
        return replace(self, inserted=np.array(canaries))

    def watching(self, canaries: NDArray[Any]) -> PlantedRecords:
        """Return the same records with these canaries watched, inserted or not."""
        return replace(self, watched=np.array(canaries))


@dataclass(frozen=True)
class Loop:
    """A training loop as a mechanism; the output is a :class:`Transcript` if canaries are watched, otherwise :class:`Trained`.

    PyTorch uses ``threads`` threads, so that results do not depend on the machine.
    """

    train: Train
    noiseless: bool = False
    threads: int = 1

    def __call__(self, data: Any, rng: np.random.Generator) -> Output:
        # Separate streams for PyTorch's generators and for the sampling of canaries.
        torch_rng, planting_rng = rng.spawn(2)
        trained = self.run(data, self.planting(data, planting_rng), torch_rng)
        if trained.transcript is not None:
            return Output(trained.transcript)
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
        return Planting(
            data.inserted if gradients else _NO_CANARIES,
            rng,
            watched=data.watched if gradients else None,
            noiseless=self.noiseless,
            required=gradients,
        )


@dataclass(frozen=True)
class MovedScore:
    """Minus the inner product of a canary with the change of the parameters, relative to pilot models."""

    def many(self, output: Trained, canaries: Ints, prepared: NamedArrays) -> Floats:
        """Return the score of each canary."""
        moved = (output.moved - prepared["centre"]).astype(np.float32)
        return -_multiply_directions(canaries, moved[:, None])[:, 0]

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
    """A preparation step: train ``models`` models without canaries, and return the mean change of their parameters."""

    loop: Loop
    models: int

    def __call__(self, data: PlantedRecords, rng: np.random.Generator) -> Prepared:
        outcomes, seconds = [], []
        for pilot_rng in rng.spawn(self.models):
            seed_global_generators(pilot_rng)
            start = time.monotonic()
            outcomes.append(self.loop(data, pilot_rng).value.moved)
            seconds.append(time.monotonic() - start)
        if len({len(moved) for moved in outcomes}) > 1:
            raise AuditFailed(
                "pilot runs differ in the number of parameters that they watch; watch the same ones in every run"
            )
        if not self.loop.noiseless and len(outcomes) > 1 and np.array_equal(outcomes[0], outcomes[1]):
            raise AuditFailed(IDENTICAL_PILOTS)
        centre = np.mean(outcomes, axis=0, dtype=np.float64)
        return Prepared({"centre": centre}, models=self.models, model_seconds=min(seconds))


class _Watched(BaseException):
    """Ends a run when it has told its parameters. It is no ``Exception``, so that loops that handle these do not catch it."""


class _CountingPlanting(Planting):
    """Ends a run as soon as it has told its parameters, before any step."""

    def watch(self, parameters: Iterable[ParameterArray | tuple[str, ParameterArray]]) -> None:
        """See :class:`Planting`.

        Raises:
            _Watched: always.
        """
        super().watch(parameters)
        raise _Watched


def count_parameters(loop: Loop, data: PlantedRecords) -> int | None:
    """Return the number of parameters that a loop trains; None if that cannot be told without training.

    The loop runs up to its call of ``planting.watch``, in a process of its own: GPUs and JAX should be used in workers first.
    """
    try:
        size: int = run_in_fresh_process(partial(_count_parameters, loop, data), _COUNTING_SECONDS, name="the count")
    except (LidpError, RuntimeError):
        return None
    return size or None


def _count_parameters(loop: Loop, data: PlantedRecords) -> int:
    torch_rng, planting_rng = np.random.default_rng(0).spawn(2)
    planting = _CountingPlanting(_NO_CANARIES, planting_rng)
    with suppress(_Watched):
        loop.run(data, planting, torch_rng)
    return planting.size


class FirstStepEnded(BaseException):
    """Ends a run after its first step. It is no ``Exception``, so that loops that handle these do not catch it."""


class FirstStepPlanting(Planting):
    """Ends a run after its first step, and keeps the noise of that step."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(_NO_CANARIES, rng, watched=_NO_CANARIES)
        self._clipped_sums = np.empty(0, np.float32)
        self.noise = np.empty(0, np.float32)

    def add(self, sums: Iterable[ParameterArray], **options: Any) -> None:
        """See :class:`Planting`."""
        tensors = list(sums)
        super().add(tensors, **options)
        self._clipped_sums = flatten(tensors)

    def released(self, sums: Iterable[ParameterArray], *, clip_norm: float, noise_multiplier: float, rate: float) -> None:
        """See :class:`Planting`.

        Raises:
            FirstStepEnded: always.
        """
        tensors = list(sums)
        super().released(tensors, clip_norm=clip_norm, noise_multiplier=noise_multiplier, rate=rate)
        self.noise = flatten(tensors) - self._clipped_sums
        raise FirstStepEnded

    @property
    def rounding_error(self) -> Singles:
        """The largest difference that rounding makes to each number of the noise, which is a difference of two sums."""
        error: Singles = 2 * np.finfo(np.float32).eps * (np.abs(self._clipped_sums) + np.abs(self.noise))
        return error

    def has_noise_of(self, other: FirstStepPlanting) -> bool:
        """Return whether there is noise, and the other step had the same, up to rounding: its sums may differ."""
        if self.noise.shape != other.noise.shape or not (np.abs(self.noise) > self.rounding_error).any():
            return False
        with np.errstate(invalid="ignore"):  # steps that diverge
            return bool((np.abs(self.noise - other.noise) <= self.rounding_error + other.rounding_error).all())


@dataclass(frozen=True)
class FirstSteps:
    """A preparation step for transcripts: run the first step of the loop twice, and count the parameters of each watched tensor.

    It trains no model. It ends the audit if the noise of both steps is the same.
    """

    loop: Loop

    def __call__(self, data: PlantedRecords, rng: np.random.Generator) -> Prepared:
        first, second = (self._run(data, step_rng) for step_rng in rng.spawn(2))
        if first.has_noise_of(second):
            raise AuditFailed(IDENTICAL_FIRST_STEPS)
        return Prepared({GROUP_SIZES: np.array(first.group_sizes)})

    def _run(self, data: PlantedRecords, rng: np.random.Generator) -> FirstStepPlanting:
        seed_global_generators(rng)
        torch_rng, planting_rng = rng.spawn(2)
        planting = FirstStepPlanting(planting_rng)
        with suppress(FirstStepEnded):
            self.loop.run(data, planting, torch_rng)
        return planting


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


def torch_target(
    train: Train,
    records: Any,
    *,
    canaries: Any = None,
    canary: GradientCanary | str | None = None,
    loss: Loss = cross_entropy,
    scores: ScoredOutput | str = ScoredOutput.FINAL_MODEL,
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
        canary: the kind of gradient canaries. Default: "random-gradient" for scores of the final model, "dirac-gradient" for
            transcripts.
        loss: ``loss(model, record)``, for canaries that are records.
        scores: what scores look at: "final-model", or "transcript" for what every step releases. A transcript is evidence about
            the claim of an accountant, which covers all steps, and needs far fewer models.
        pilots: number of models trained before the audit without canaries. Default: 8; transcripts need none.
        threads: number of threads of PyTorch.
        facts: numbers or words by name, which results show.
    """
    if not callable(train):
        raise InvalidArgument(f"train must be callable as train(records, planting), got {train!r}")
    plan = GradientPlan.choose(canaries, canary, scores, pilots)
    loop = Loop(train, threads=checks.count(threads=threads))
    name = name or name_of_loop(train)
    if canaries is not None:
        return record_target(loop, PooledRecords(records, canaries), loss=loss, pilots=pilots, name=name, facts=facts)
    prepare = (
        FirstSteps(loop) if plan.transcript else LoopPilots(loop, checks.count(pilots=8 if pilots is None else pilots))
    )
    target = gradient_target(loop, records, plan, prepare=prepare, name=name, facts=facts)
    return replace(target, canary_count=plan.count_canaries(count_parameters(loop, target.dataset), count(records)))


@dataclass(frozen=True)
class GradientPlan:
    """What scores look at, and the kind of gradient canaries; None if canaries are records."""

    scored: ScoredOutput
    canary: GradientCanary | None

    @property
    def transcript(self) -> bool:
        """Whether scores use what every step releases."""
        return self.scored is ScoredOutput.TRANSCRIPT

    def count_canaries(self, parameters: int | None, records: int, shift: float = 1.0) -> CanaryCount:
        """Return the default number of gradient canaries; ``parameters`` is None if nobody could count them."""
        if parameters is None:
            return count_unknown()
        if self.canary is GradientCanary.DIRAC_GRADIENT:
            return count_separate(parameters)
        return count_overlapping(parameters, records, shift)

    @classmethod
    def choose(
        cls, canaries: Any, canary: GradientCanary | str | None, scores: ScoredOutput | str, pilots: int | None
    ) -> GradientPlan:
        """Return the plan for the options of a target, if they fit together."""
        scored = checks.member(ScoredOutput, scores=scores)
        kind = None if canary is None else checks.member(GradientCanary, canary=canary)
        transcript = scored is ScoredOutput.TRANSCRIPT
        if canaries is not None:
            if transcript:
                raise InvalidArgument(
                    "transcript scores are for gradient canaries, and canaries= gives records; leave out canaries=, or use "
                    "scores='final-model'"
                )
            if kind is not None:
                raise InvalidArgument(
                    f"canary={str(kind)!r} is for gradients, and canaries= gives records; leave one of them out"
                )
            return cls(scored, None)
        if transcript and pilots is not None:
            raise InvalidArgument(f"transcripts are relative to no pilot models; leave pilots out, got {pilots}")
        if not transcript and kind is GradientCanary.DIRAC_GRADIENT:
            raise InvalidArgument(
                "the data move single parameters of a final model too much for canaries along one coordinate; use "
                "scores='transcript', or canary='random-gradient'"
            )
        default = GradientCanary.DIRAC_GRADIENT if transcript else GradientCanary.RANDOM_GRADIENT
        return cls(scored, kind or default)


def name_of_loop(train: Train) -> str:
    """Return the name of a training function, for results."""
    return str(getattr(train, "__qualname__", type(train).__qualname__))


def gradient_target(
    loop: Loop,
    records: Any,
    plan: GradientPlan,
    *,
    prepare: Any,
    name: str,
    facts: Mapping[str, float | str] | None = None,
    poisson: bool = True,
) -> Target:
    """Return a target whose canaries are gradients; ``prepare`` is the preparation step that fits the plan."""
    copy_records(records)  # raises if they cannot be copied for every run
    facts = dict(facts or {})
    if plan.transcript:
        name += ", all steps"
        facts["scores see"] = SCORES_SEE
    return Target(
        loop,
        CoordinatesOfModel() if plan.canary is GradientCanary.DIRAC_GRADIENT else GradientSeeds(),
        TranscriptScore() if plan.transcript else MovedScore(),
        PlantedRecords(records),
        prepare=prepare,
        name=name,
        facts=facts,
        interference=interference(plan.scored, plan.canary, poisson=poisson),
    )


def record_target(
    loop: Loop,
    data: PooledRecords,
    *,
    loss: Loss,
    pilots: int | None,
    name: str,
    facts: Mapping[str, float | str] | None = None,
) -> Target:
    """Return a target whose canaries are records of a pool."""
    record_loss = RecordLoss(_LossOfTrained(loss), data.pool)
    target = pool_target(loop, record_loss, data, pilots=8 if pilots is None else pilots, name=name, facts=facts)
    return replace(target, interference=interference(ScoredOutput.FINAL_MODEL, None))


@dataclass(frozen=True)
class _LossOfTrained:
    """Applies the loss of a model to the outcome of a training run; NaN if the loss is not finite."""

    loss: Loss

    def __call__(self, output: Any, record: Any) -> float:
        trained = output.value if isinstance(output, Output) else output
        loss = float(self.loss(trained.model, record))
        return loss if math.isfinite(loss) else math.nan
