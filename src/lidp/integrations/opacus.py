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

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.global_generators import preserve_global_generators
from lidp.claim import Claim
from lidp.designs import Design
from lidp.engine.audit import audit
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.opacus_settings import Check, ConfigurationWarning, MeasuredNoise, Settings
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
        rehearsal: Rehearsal | None = None,
        measures_noise: bool = False,
        **options: bool,
    ) -> None:
        """``length`` is what the data set says, ``real`` how many records there are; runs must be like the ``rehearsal``."""
        super().__init__(seeds, rng, **options)
        self._length, self._real = length, real
        self._rehearsal = rehearsal
        self._measures_noise = measures_noise
        self._settings: Callable[[], Settings] | None = None
        self._noises: Counter[float] = Counter()
        self._squares, self._numbers = 0.0, 0
        self._batches: list[int] | None = None
        self.source: bytes | None = None
        """a digest of the generator that noise came from, as it was before the first step; None if it tells nothing"""

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
        if poisson:
            self._batches = _watch_batches(loader, self._real)

        def settings() -> Settings:
            measured = MeasuredNoise((self._squares / self._numbers) ** 0.5, self._numbers) if self._numbers else None
            return Settings.of(
                engine, optimizer, loader, poisson=poisson, steps=self.steps, noises=self._noises, measured=measured
            )

        self._settings = settings
        self.watch(optimizer.params)
        self._add_before_noise(engine, optimizer, loader.sample_rate if poisson else 1 / len(loader), poisson, loader)

    def _add_before_noise(self, engine: Any, optimizer: Any, rate: float, poisson: bool, loader: Any) -> None:
        """Every mode of Opacus calls ``add_noise`` once a real step, when ``summed_grad`` holds the sum of clipped gradients."""
        add_noise = optimizer.add_noise

        def add_canaries_and_noise() -> None:
            parameters, norm, noise = optimizer.params, float(optimizer.max_grad_norm), optimizer.noise_multiplier
            epoch = None if poisson else max(1, len(loader) // optimizer.accumulated_iterations)
            if not self.steps and not engine.secure_mode:
                self.source = _state_of(optimizer.generator, parameters[0])
            self.add([p.summed_grad for p in parameters], clip_norm=norm, rate=rate, once_in=epoch)
            self._noises[float(noise)] += 1
            if self.noiseless:
                optimizer.noise_multiplier = 0.0
            add_noise()
            optimizer.noise_multiplier = noise  # the accountant looks at it next
            if self._measures_noise and noise > 0 and norm > 0:
                self._measure(parameters, float(noise) * norm)
            self.released([p.grad for p in parameters], clip_norm=norm, noise_multiplier=float(noise), rate=rate)

        optimizer.add_noise = add_canaries_and_noise

    def _measure(self, parameters: Any, stated: float) -> None:
        """Note how large noise was, in units of what the optimizer states."""
        for parameter in parameters:
            noise = (parameter.grad - parameter.summed_grad.view_as(parameter.grad)).double() / stated
            self._squares += float((noise * noise).sum())
            self._numbers += noise.numel()

    def settings(self) -> Settings:
        """The settings after training, with what the accountant has counted."""
        if self._settings is None:
            raise AuditFailed("train did not call planting.attach(engine, optimizer, loader)")
        return self._settings()

    def outcome(self, model: Any) -> Trained:
        """What the run gives to scores.

        Raises:
            AuditFailed: if canaries cannot have been planted, or the run is not like the rehearsal.
        """
        found = self.settings()  # complains if there are none
        if self.steps and self._batches is not None and not self._batches[0]:
            raise AuditFailed(
                "train takes its batches from another loader than the one that it attached, which make_private returned: "
                "iterate over that one, or the accountant speaks of other training than this"
            )
        if self._rehearsal is not None:
            if self.source is not None and self.source == self._rehearsal.source:
                raise AuditFailed(
                    "noise begins with the same random numbers in every run: train seeds its generator itself "
                    "(torch.manual_seed, or noise_generator=). Leave that to the audit, which seeds every run anew"
                )
            difference = None if self._rehearsal.settings is None else found.difference(self._rehearsal.settings)
            if difference is not None:
                raise AuditFailed(
                    f"one run had {difference}: what the accountant says differs from run to run. "
                    "Give the claim that covers all of them as claim="
                )
        return super().outcome(model)


@dataclass(frozen=True)
class Rehearsal:
    """What later runs are held against: where its noise came from, which must not be theirs, and its settings, which must.

    Settings are left out if the claim covers runs of any.
    """

    source: bytes | None
    settings: Settings | None


def _state_of(generator: Any, parameter: Any) -> bytes:
    """A digest of the generator that noise for a parameter is drawn from."""
    import torch

    if generator is not None:
        state = generator.get_state()
    elif parameter.device.type == "cuda":
        state = torch.cuda.get_rng_state(parameter.device)
    else:
        state = torch.get_rng_state()
    return hashlib.sha256(state.cpu().numpy().tobytes()).digest()


def _watch_batches(loader: Any, real: int) -> list[int] | None:
    """Count the batches that a Poisson loader draws, and let it sample from ``real`` records whatever its data set says.

    Rate, steps, expected batch size and everything that is computed from lengths stay what they are for the number that the data
    set says. Returns where they are counted; None for a sampler that is not Opacus' own, which is left as it is.
    """
    import torch
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    drawn = [0]

    class Sampler(UniformWithReplacementSampler):  # type: ignore[misc]
        def __iter__(self) -> Any:
            for _ in range(self.steps):
                chosen = torch.rand(real, generator=self.generator) < self.sample_rate
                drawn[0] += 1
                yield chosen.nonzero().reshape(-1).tolist()

    old = loader.batch_sampler
    if type(old) is not UniformWithReplacementSampler:
        if real != old.num_samples:
            raise AuditFailed(f"canaries that are records need the Poisson sampler of Opacus, got {type(old).__name__}")
        return None
    new = Sampler(num_samples=old.num_samples, sample_rate=old.sample_rate, generator=old.generator, steps=old.steps)
    object.__setattr__(loader, "batch_sampler", new)  # a loader refuses to have it changed; nobody has used it yet
    return drawn


class GrownRecords:
    """Records with canaries behind them, of which the length does not tell.

    Opacus makes the sampling rate and the expected batch size from the length of the data set. They are public, so they must not
    follow who is in: the length is that without canaries, and the sampler knows of the others.
    """

    def __init__(self, records: Any, real: int, length: int) -> None:
        self._records, self._real, self._length = records, real, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: int) -> Any:
        return self._records[place]

    @classmethod
    def count(cls, data: Any) -> int:
        """How many records there really are in a data set."""
        return data._real if isinstance(data, cls) else len(data)


class GrownPool(PooledRecords):
    """Records and a pool; data sets say the same length whoever is in."""

    def with_canaries(self, canaries: Any) -> GrownRecords:
        """The records with those of the pool that have these numbers."""
        whole = joined(self.records, pick(self.pool, np.asarray(canaries, dtype=np.int64)))
        return GrownRecords(whole, len(whole), len(self.records))


@dataclass(frozen=True)
class OpacusLoop(Loop):
    """A training loop that calls ``planting.attach``."""

    rehearsal: Rehearsal | None = None
    measures_noise: bool = field(default=False, compare=False)

    def planting(self, data: Any, rng: np.random.Generator) -> OpacusPlanting:
        """One that attaches itself."""
        gradients = isinstance(data, PlantedRecords)
        return OpacusPlanting(
            data.seeds if gradients else np.empty(0, np.int64),
            rng,
            length=len(data),
            real=GrownRecords.count(data),
            rehearsal=self.rehearsal,
            measures_noise=self.measures_noise,
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
    settings_may_vary: bool = False,
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
        settings_may_vary: whether the claim covers runs of any noise, rate and number of steps; else all must have the same.

    Warns:
        ConfigurationWarning: for each of :meth:`Settings.checks`.
    """
    if not callable(train):
        raise InvalidArgument(f"train must be callable as train(records, planting), got {train!r}")
    if are_columns(records):
        raise InvalidArgument("records must be a data set for a DataLoader; wrap arrays in a TensorDataset")
    loop = OpacusLoop(train, white_box=white_box, threads=checks.count(threads=threads))
    data = None if canaries is None else GrownPool(records, canaries)
    rehearsed = _rehearse(loop, PlantedRecords(records) if data is None else data.with_canaries(()))
    settings = rehearsed.settings()
    found = settings.checks()
    for check in found:
        warnings.warn(str(check), ConfigurationWarning, stacklevel=2)
    loop = replace(loop, rehearsal=Rehearsal(rehearsed.source, None if settings_may_vary else settings))
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
            **({"not looked for": "missing clipping, behind which gradient canaries are planted"} if data is None else {}),
        },
        pilot_loop=replace(loop, noiseless=True),
        data=data,
    )
    if target.prepare is not None:
        target = replace(target, prepare=_Rehearsed(target.prepare))
    return OpacusTarget(target, settings)


def _rehearse(loop: OpacusLoop, data: Any) -> OpacusPlanting:
    """A run without canaries, to see its settings and where its noise comes from."""
    start, own = np.random.default_rng(0).spawn(2)
    planting = replace(loop, measures_noise=True).planting(data, own)
    with preserve_global_generators():
        loop.run(data, planting, start)
    return planting


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
        settings_may_vary=claim is not None,
        name=name,
    )
    if claim is None:
        assert delta is not None  # noqa: S101  # for the type checker
        claim = made.settings.claim(delta)
    return audit(made.target, claim=claim, design=design, **options)
