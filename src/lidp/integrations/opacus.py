"""Audits of training with Opacus: ``train(records, planting) -> model``, and one line after ``make_private``.

    def train(records, planting):
        ...
        model, optimizer, loader = engine.make_private(module=model, optimizer=optimizer, data_loader=loader, ...)
        planting.attach(engine, optimizer, loader)
        ...
        return model

    print(audit_opacus(train, records, delta=1e-5, trials=128))

What the engine was told becomes the claim; what does not fit together is warned about by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.audits import audit
from lidp.claim import Claim
from lidp.designs import Design
from lidp.errors import AuditFailed, InvalidArgument
from lidp.global_generators import kept_global_generators
from lidp.integrations.opacus_settings import Check, ConfigurationWarning, Settings
from lidp.integrations.planting import Planting, Trained
from lidp.integrations.record_sets import PooledRecords, are_columns, joined, pick
from lidp.integrations.torch import Loop, PlantedRecords, Train, cross_entropy, loop_target
from lidp.integrations.trainers import Loss
from lidp.result import AuditResult
from lidp.target import Prepared, Target

__all__ = ["Check", "ConfigurationWarning", "OpacusTarget", "Settings", "audit_opacus", "opacus_target"]


class OpacusPlanting(Planting):
    """A planting that finds its place in Opacus by itself."""

    def __init__(
        self,
        seeds: NDArray[np.int64],
        rng: np.random.Generator,
        *,
        length: int,
        real: int,
        steps_of_all: int | None = None,
        **options: bool,
    ) -> None:
        """``length`` is what the data set says, ``real`` how many records there are; all runs must take ``steps_of_all`` steps."""
        super().__init__(seeds, rng, **options)
        self._length, self._real = length, real
        self._steps_of_all = steps_of_all
        self._settings: Callable[[], Settings] | None = None
        self._noises: set[float] = set()

    def attach(self, engine: Any, optimizer: Any, loader: Any) -> None:
        """Read the settings off, and add canaries where Opacus sums up clipped gradients.

        Works for per-sample gradients by hooks, functorch and expanded weights, and for ghost and fast gradient clipping, with
        flat or adaptive clipping, on one device. With several virtual steps a canary is sampled once per real step.
        """
        from opacus.data_loader import DPDataLoader
        from opacus.optimizers import DPOptimizer

        if not isinstance(optimizer, DPOptimizer):
            raise AuditFailed(f"attach takes the optimizer that make_private returned, got {type(optimizer).__name__}")
        if type(optimizer).__name__.startswith(("Distributed", "FSDP")) or hasattr(optimizer, "max_grad_norms"):
            raise AuditFailed(f"{type(optimizer).__name__} is not supported: canaries need flat clipping on one device")
        if len(loader.dataset) != self._length:
            raise AuditFailed(
                f"the loader has {len(loader.dataset):,} records, train was given {self._length:,}: "
                "it must train on the records it is given, or canaries are never in"
            )
        poisson = isinstance(loader, DPDataLoader)
        if not poisson and not self.required:
            raise AuditFailed(
                "canaries that are records need Poisson sampling: with shuffled batches the number of steps tells how many "
                "there are. Use poisson_sampling=True, or gradient canaries"
            )
        if self._real != self._length:
            _sample_from(loader, self._real)

        def settings() -> Settings:
            return Settings.of(engine, optimizer, loader, poisson=poisson, steps=self.steps, noises=self._noises)

        self._settings = settings
        self.watch(optimizer.params)
        self._add_before_noise(optimizer, loader.sample_rate if poisson else 1 / len(loader), poisson, loader)

    def _add_before_noise(self, optimizer: Any, rate: float, poisson: bool, loader: Any) -> None:
        """Every mode of Opacus calls ``add_noise`` once a real step, when ``summed_grad`` holds the sum of clipped gradients."""
        add_noise = optimizer.add_noise

        def add_canaries_and_noise() -> None:
            parameters, norm, noise = optimizer.params, float(optimizer.max_grad_norm), optimizer.noise_multiplier
            epoch = None if poisson else max(1, len(loader) // optimizer.accumulated_iterations)
            self.add([p.summed_grad for p in parameters], clip_norm=norm, rate=rate, once_in=epoch)
            self._noises.add(float(noise))
            if self.noiseless:
                optimizer.noise_multiplier = 0.0
            add_noise()
            optimizer.noise_multiplier = noise  # the accountant looks at it next
            self.released([p.grad for p in parameters], clip_norm=norm, noise_multiplier=float(noise), rate=rate)

        optimizer.add_noise = add_canaries_and_noise

    def settings(self) -> Settings:
        """The settings after training, with what the accountant has counted."""
        if self._settings is None:
            raise AuditFailed("train did not call planting.attach(engine, optimizer, loader)")
        return self._settings()

    def outcome(self, model: Any) -> Trained:
        """What the run gives to scores."""
        self.settings()  # complains if there are none
        if self._steps_of_all is not None and self.steps != self._steps_of_all:
            raise AuditFailed(
                f"one run took {self.steps} steps, another {self._steps_of_all}: what the accountant says differs from run to run. "
                "Give the claim that covers all of them as claim="
            )
        return super().outcome(model)


def _sample_from(loader: Any, real: int) -> None:
    """Let a Poisson loader sample from ``real`` records, although its data set says another number.

    Rate, steps, expected batch size and everything that is computed from lengths stay what they are for that number.
    """
    import torch
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    class Sampler(UniformWithReplacementSampler):  # type: ignore[misc]
        def __iter__(self) -> Any:
            for _ in range(self.steps):
                chosen = torch.rand(real, generator=self.generator) < self.sample_rate
                yield chosen.nonzero().reshape(-1).tolist()

    old = loader.batch_sampler
    new = Sampler(num_samples=old.num_samples, sample_rate=old.sample_rate, generator=old.generator, steps=old.steps)
    object.__setattr__(loader, "batch_sampler", new)  # a loader refuses to have it changed; nobody has used it yet


class GrownRecords:
    """Records with canaries behind them, of which the length does not tell.

    Opacus makes the sampling rate and the expected batch size from the length of the data set. They are public, so they must not
    follow who is in: the length is that without canaries, and the sampler knows of the others.
    """

    def __init__(self, records: Any, real: int, length: int) -> None:
        self.records, self.real, self.length = records, real, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: int) -> Any:
        return self.records[place]


class GrownPool(PooledRecords):
    """Records and a pool; data sets say the same length whoever is in."""

    def with_canaries(self, canaries: Any) -> GrownRecords:
        """The records with those of the pool that have these numbers."""
        whole = joined(self.records, pick(self.pool, np.asarray(canaries, dtype=np.int64)))
        return GrownRecords(whole, len(whole), len(self.records))


@dataclass(frozen=True)
class OpacusLoop(Loop):
    """A training loop that calls ``planting.attach``."""

    steps_of_all: int | None = None

    def planting(self, data: Any, rng: np.random.Generator) -> OpacusPlanting:
        """One that attaches itself."""
        gradients = isinstance(data, PlantedRecords)
        return OpacusPlanting(
            data.seeds if gradients else np.empty(0, np.int64),
            rng,
            length=len(data),
            real=data.real if isinstance(data, GrownRecords) else len(data),
            steps_of_all=self.steps_of_all,
            white_box=self.white_box,
            noiseless=self.noiseless,
            required=gradients,
        )


@dataclass(frozen=True)
class OpacusTarget:
    """A target, and the settings that its training was found to have."""

    target: Target
    settings: Settings


def opacus_target(
    train: Train,
    records: Any,
    *,
    canaries: Any = None,
    loss: Loss = cross_entropy,
    white_box: bool = False,
    pilots: int | None = None,
    threads: int = 1,
    steps_may_vary: bool = False,
    name: str = "",
) -> OpacusTarget:
    """A target from a training loop with Opacus. One model is trained at once, to see what the engine is told.

    Args:
        train: ``train(records, planting) -> model``, which calls ``planting.attach(engine, optimizer, loader)``.
        records: a data set of PyTorch, or anything that a ``DataLoader`` takes.
        canaries: a pool of records of the same make; left out, canaries are gradients.
        loss: ``loss(model, record)``, for canaries that are records.
        white_box: score what every step releases instead of the final model.
        pilots: models trained beforehand without canaries: 4 without noise for gradients, 8 for records.
        steps_may_vary: whether the claim covers runs of any number of steps; else they must all have as many.

    Warns:
        ConfigurationWarning: for each of :meth:`Settings.checks`.
    """
    if not callable(train):
        raise InvalidArgument(f"train must be callable as train(records, planting), got {train!r}")
    if are_columns(records):
        raise InvalidArgument("records must be a data set for a DataLoader; wrap arrays in a TensorDataset")
    loop = OpacusLoop(train, white_box=white_box, threads=checks.count(threads=threads))
    data = None if canaries is None else GrownPool(records, canaries)
    settings = _rehearse(loop, PlantedRecords(records) if data is None else data.with_canaries(()))
    found = settings.checks()
    for check in found:
        warnings.warn(str(check), ConfigurationWarning, stacklevel=2)
    if not steps_may_vary:
        loop = replace(loop, steps_of_all=settings.steps)
    target = loop_target(
        loop,
        records,
        canaries=canaries,
        loss=loss,
        pilots=4 if pilots is None and canaries is None else pilots,
        name=name,
        facts={
            "noise multiplier": settings.noise_multiplier,
            "sampling rate": settings.sample_rate,
            "steps": settings.steps,
            "accountant": settings.accountant,
            **({"does not fit": ", ".join(check.name for check in found)} if found else {}),
        },
        pilot_loop=replace(loop, noiseless=True),
        data=data,
    )
    if target.prepare is not None:
        target = replace(target, prepare=_Rehearsed(target.prepare))
    return OpacusTarget(target, settings)


def _rehearse(loop: OpacusLoop, data: Any) -> Settings:
    """The settings of a run without canaries."""
    start, own = np.random.default_rng(0).spawn(2)
    planting = loop.planting(data, own)
    with kept_global_generators():
        loop.run(data, planting, start)
    return planting.settings()


@dataclass(frozen=True)
class _Rehearsed:
    """A preparation step after a rehearsal, whose model counts as well."""

    prepare: Any

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Prepared:
        found: Prepared = self.prepare(dataset, rng)
        return replace(found, models=found.models + 1)


def audit_opacus(
    train: Train,
    records: Any,
    *,
    delta: float | None = None,
    claim: Claim | None = None,
    canaries: Any = None,
    design: Design | None = None,
    loss: Loss = cross_entropy,
    white_box: bool = False,
    pilots: int | None = None,
    threads: int = 1,
    name: str = "",
    **options: Any,
) -> AuditResult:
    """Audit training with Opacus against what its own accountant says.

    The claim is the ε that the engine states for ``delta`` after a run, unless one is given. See :func:`opacus_target` for the
    other arguments, and :func:`lidp.audit` for ``options``, such as ``trials``, ``seed``, ``workers`` and ``store``.

    Guarantee: that of :func:`lidp.audit`.
    """
    if (delta is None) == (claim is None):
        raise InvalidArgument("give delta, for the claim of the engine's accountant, or a claim of your own")
    made = opacus_target(
        train,
        records,
        canaries=canaries,
        loss=loss,
        white_box=white_box,
        pilots=pilots,
        threads=threads,
        steps_may_vary=claim is not None,
        name=name,
    )
    if claim is None:
        assert delta is not None  # noqa: S101  # for the type checker
        claim = made.settings.claim(delta)
    return audit(made.target, claim=claim, design=design, **options)
