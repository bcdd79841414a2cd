"""Audit training with Opacus: a function ``train(records, planting) -> model`` with one extra line after ``make_private``.

    def train(records, planting):
        ...
        model, optimizer, loader = engine.make_private(module=model, optimizer=optimizer, data_loader=loader, ...)
        planting.attach(engine, optimizer, loader)
        ...
        return model

    print(audit_opacus(train, records, delta=1e-5, trials=128))

The claim follows from the settings of the engine. A warning names every inconsistency of these settings.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from lidp import checks
from lidp._runtime.global_generators import preserve_global_generators
from lidp.canaries.gradients import GradientCanary
from lidp.claim import Claim
from lidp.designs import CoinFlip, Design
from lidp.engine.audit import audit
from lidp.errors import InvalidArgument
from lidp.integrations.gradient_canaries import GROUP_SIZES, ScoredOutput
from lidp.integrations.opacus_planting import OpacusPlanting, Rehearsal
from lidp.integrations.opacus_settings import Check, ConfigurationWarning, Settings
from lidp.integrations.record_sets import PooledRecords, are_columns, concatenate, select
from lidp.integrations.torch import (
    GradientPlan,
    Loop,
    LoopPilots,
    PlantedRecords,
    Train,
    cross_entropy,
    gradient_target,
    name_of_loop,
    record_target,
)
from lidp.integrations.trainers import Loss
from lidp.result import AuditResult
from lidp.target import Prepared, Target

__all__ = ["Check", "ConfigurationWarning", "OpacusTarget", "Settings", "audit_opacus", "opacus_target"]

_LARGEST_SHIFT = 10.0


class StatedLength(StrEnum):
    """The length that data sets with canaries state, from which Opacus computes the sampling rate and the batch size."""

    FIXED = "fixed"
    """That of the records without canaries: the length is public, and only the sampler uses the actual one."""
    ACTUAL = "actual"
    """That of the records with canaries, as in neighbouring data sets of a user whose number of records is private."""


class GrownRecords:
    """Records followed by canaries, with a stated length that may differ from the actual one."""

    def __init__(self, records: Any, actual_length: int, length: int) -> None:
        self._records, self._actual_length, self._length = records, actual_length, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return self._records[index]

    @classmethod
    def count(cls, data: Any) -> int:
        """Return the actual number of records in a data set."""
        return data._actual_length if isinstance(data, cls) else len(data)


@dataclass(frozen=True)
class GrownPool(PooledRecords):
    """Records and a pool of canaries. By default, the stated length of data sets does not depend on inserted canaries."""

    stated_length: StatedLength = StatedLength.FIXED

    def with_canaries(self, canaries: Any) -> GrownRecords:
        """Return the records followed by the records of the pool with these numbers."""
        whole = concatenate(self.records, select(self.pool, np.asarray(canaries, dtype=np.int64)))
        fixed = self.stated_length is StatedLength.FIXED
        return GrownRecords(whole, len(whole), len(self.records) if fixed else len(whole))


@dataclass(frozen=True)
class OpacusLoop(Loop):
    """A training loop that calls ``planting.attach``."""

    rehearsal: Rehearsal | None = None
    measures_noise: bool = field(default=False, compare=False)

    def planting(self, data: Any, rng: np.random.Generator) -> OpacusPlanting:
        """Return the planting of one run."""
        gradients = isinstance(data, PlantedRecords)
        return OpacusPlanting(
            data.inserted if gradients else np.empty(0, np.int64),
            rng,
            length=len(data),
            actual_length=GrownRecords.count(data),
            rehearsal=self.rehearsal,
            measures_noise=self.measures_noise,
            watched=data.watched if gradients else None,
            noiseless=self.noiseless,
            required=gradients,
        )


@dataclass(frozen=True)
class OpacusTarget:
    """A target, and the settings of its training."""

    target: Target
    settings: Settings


def opacus_target(
    train: Train,
    records: Any,
    *,
    canaries: Any = None,
    canary: GradientCanary | str | None = None,
    loss: Loss = cross_entropy,
    scores: ScoredOutput | str | None = None,
    stated_length: StatedLength | str = StatedLength.FIXED,
    pilots: int | None = None,
    threads: int = 1,
    settings_may_vary: bool = False,
    name: str = "",
) -> OpacusTarget:
    """Return a target for a training loop with Opacus. This trains one model, to read the settings of the engine.

    Args:
        train: ``train(records, planting) -> model``, which calls ``planting.attach(engine, optimizer, loader)``.
        records: a data set of PyTorch, or anything that a ``DataLoader`` accepts.
        canaries: a pool of records of the same type; if it is None, canaries are gradients.
        canary: the kind of gradient canaries. Default: "random-gradient" for scores of the final model, "dirac-gradient" for
            transcripts.
        loss: ``loss(model, record)``, for canaries that are records.
        scores: what scores look at: "final-model", or "transcript" for what every step releases. A transcript is evidence about
            the claim of the accountant, which covers all steps, and needs far fewer models. Default: the transcript, if canaries
            are gradients, batches are Poisson samples and the optimizer is not SGD, since others hide canaries from the final
            model; otherwise the final model.
        stated_length: for canaries that are records, the length that data sets with canaries state. Opacus computes the sampling
            rate, the steps and the divisor of gradients from it. "fixed" audits training on a public number of records; "actual"
            also finds leaks of a private number of records through the divisor, best with one canary per trial.
        pilots: number of models trained before the audit without canaries. Default: 4 without noise for gradients, 8 for records;
            transcripts need none.
        threads: number of threads of PyTorch.
        settings_may_vary: whether the claim covers runs of any noise, rate and number of steps; otherwise all runs must have the
            same settings.

    Warns:
        ConfigurationWarning: for each of :meth:`Settings.checks`.
    """
    if not callable(train):
        raise InvalidArgument(f"train must be callable as train(records, planting), got {train!r}")
    if are_columns(records):
        raise InvalidArgument("records must be a data set for a DataLoader; wrap arrays in a TensorDataset")
    plan = GradientPlan.choose(canaries, canary, ScoredOutput.FINAL_MODEL if scores is None else scores, pilots)
    loop = OpacusLoop(train, threads=checks.count(threads=threads))
    length = checks.member(StatedLength, stated_length=stated_length)
    if canaries is None and length is not StatedLength.FIXED:
        raise InvalidArgument(
            f"stated_length={str(length)!r} is for canaries that are records; give a pool of them as canaries="
        )
    pool = None if canaries is None else GrownPool(records, canaries, length)
    start = time.monotonic()
    planting = _rehearse(loop, PlantedRecords(records) if pool is None else pool.with_canaries(()))
    seconds = time.monotonic() - start
    settings = planting.settings()
    hidden = scores is None and planting.optimizer_name != "SGD"
    if hidden and pool is None and pilots is None and settings.poisson:
        plan = GradientPlan.choose(None, canary, ScoredOutput.TRANSCRIPT, None)
    inconsistencies = settings.checks()
    for check in inconsistencies:
        warnings.warn(str(check), ConfigurationWarning, stacklevel=2)
    rehearsal = Rehearsal(
        planting.initial_noise_state,
        None if settings_may_vary else settings,
        divisor_may_vary=length is StatedLength.ACTUAL,
    )
    loop = replace(loop, rehearsal=rehearsal)
    name = name or name_of_loop(train)
    facts: dict[str, float | str] = {
        "noise multiplier": settings.noise_multiplier,
        "sampling rate": settings.sample_rate,
        "steps": settings.steps,
        "accountant": settings.accountant,
        **({"warnings": ", ".join(check.name for check in inconsistencies)} if inconsistencies else {}),
    }
    if hidden and not plan.transcript:
        why = "transcripts need gradient canaries, Poisson sampling and no pilots"
        facts["scores see"] = f"the final model, although {planting.optimizer_name} hides canaries there: {why}"
    if pool is not None:
        if length is StatedLength.ACTUAL:
            facts["stated length"] = "actual: with the canaries of each run"
        target = record_target(loop, pool, loss=loss, pilots=pilots, name=name, facts=facts)
        if target.prepare is not None:
            target = replace(target, prepare=_CountRehearsal(target.prepare, seconds))
        return OpacusTarget(target, settings)
    facts["not tested"] = "clipping (gradient canaries are added after it)"
    prepare: Any = _ParameterCounts(tuple(planting.group_sizes))
    if not plan.transcript:
        prepare = LoopPilots(replace(loop, noiseless=True), checks.count(pilots=4 if pilots is None else pilots))
    target = gradient_target(
        loop, records, plan, prepare=_CountRehearsal(prepare, seconds), name=name, facts=facts, poisson=settings.poisson
    )
    canary_count = plan.count_canaries(planting.size, len(records), _shift(settings))
    return OpacusTarget(replace(target, canary_count=canary_count), settings)


def _shift(settings: Settings) -> float:
    """Return how far a canary moves its score of the final model, in standard deviations of the noise."""
    return min(settings.sample_rate * math.sqrt(settings.steps) / max(settings.noise_multiplier, 1e-3), _LARGEST_SHIFT)


def _rehearse(loop: OpacusLoop, data: Any) -> OpacusPlanting:
    """Run the loop once without canaries, to read its settings and the state of its noise generator."""
    torch_rng, planting_rng = np.random.default_rng(0).spawn(2)
    planting = replace(loop, measures_noise=True).planting(data, planting_rng)
    with preserve_global_generators():
        loop.run(data, planting, torch_rng)
    return planting


@dataclass(frozen=True)
class _ParameterCounts:
    """A preparation step that returns the number of parameters of each tensor, as the rehearsal has counted them."""

    group_sizes: tuple[int, ...]

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Prepared:
        return Prepared({GROUP_SIZES: np.array(self.group_sizes)})


@dataclass(frozen=True)
class _CountRehearsal:
    """A preparation step that also counts the model of the rehearsal, which took so many seconds."""

    prepare: Any
    seconds: float = field(compare=False)

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Prepared:
        prepared: Prepared = self.prepare(dataset, rng)
        seconds = self.seconds if prepared.model_seconds is None else min(self.seconds, prepared.model_seconds)
        return replace(prepared, models=prepared.models + 1, model_seconds=seconds)


def audit_opacus(
    train: Train,
    records: Any,
    *,
    delta: float | None = None,
    claim: Claim | None = None,
    canaries: Any = None,
    canary: GradientCanary | str | None = None,
    design: Design | None = None,
    loss: Loss = cross_entropy,
    scores: ScoredOutput | str | None = None,
    stated_length: StatedLength | str = StatedLength.FIXED,
    independent_canaries: bool = False,
    pilots: int | None = None,
    threads: int = 1,
    name: str = "",
    **options: Any,
) -> AuditResult:
    """Audit training with Opacus against the statement of its accountant.

    The claim is the ε that the engine states for ``delta`` after a run, unless ``claim`` is given. See :func:`opacus_target` for
    the other arguments, and :func:`lidp.audit` for ``independent_canaries`` and for ``options``, such as ``trials``, ``seed``,
    ``workers`` and ``store``. ``independent_canaries`` needs ``scores="transcript"``. With ``claim``, scores use the final model
    unless ``scores="transcript"`` says that the claim covers what every step releases.

    Guarantee: that of :func:`lidp.audit`.
    """
    if (delta is None) == (claim is None):
        raise InvalidArgument("give either delta, for the claim of the engine's accountant, or a claim")
    # Transcripts of gradients along single coordinates are for coin flips. And only the accountant's claim is known to cover
    # what every step releases: another claim may be true of the final model alone.
    two_arms = design is not None and not isinstance(design, CoinFlip)
    if scores is None and (claim is not None or two_arms):
        scores = ScoredOutput.FINAL_MODEL
    opacus = opacus_target(
        train,
        records,
        canaries=canaries,
        canary=canary,
        loss=loss,
        scores=scores,
        stated_length=stated_length,
        pilots=pilots,
        threads=threads,
        settings_may_vary=claim is not None,
        name=name,
    )
    if claim is None:
        assert delta is not None  # noqa: S101  # for the type checker
        claim = opacus.settings.claim(delta)
    return audit(opacus.target, claim=claim, design=design, independent_canaries=independent_canaries, **options)
