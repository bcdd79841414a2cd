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
from lidp.integrations.record_sets import PooledRecords, are_columns, concatenate, select
from lidp.integrations.torch import Loop, PlantedRecords, Train, cross_entropy, loop_target
from lidp.integrations.trainers import Loss
from lidp.result import AuditResult
from lidp.target import Prepared, Target

__all__ = ["Check", "ConfigurationWarning", "OpacusTarget", "Settings", "audit_opacus", "opacus_target"]


class OpacusPlanting(Planting):
    """A planting that adds canaries to the steps of an Opacus optimizer by itself."""

    def __init__(
        self,
        seeds: NDArray[np.int64],
        rng: np.random.Generator,
        *,
        length: int,
        actual_length: int,
        rehearsal: Rehearsal | None = None,
        measures_noise: bool = False,
        **options: bool,
    ) -> None:
        """Create the planting of one run.

        ``length`` is the stated length of the data set, ``actual_length`` its number of records including canaries. The run must
        have the settings of the ``rehearsal``.
        """
        super().__init__(seeds, rng, **options)
        self._length, self._actual_length = length, actual_length
        self._rehearsal = rehearsal
        self._measures_noise = measures_noise
        self._read_settings: Callable[[], Settings] | None = None
        self._noises: Counter[float] = Counter()
        self._sum_of_squares, self._noise_values = 0.0, 0
        self._batch_count: list[int] | None = None
        self.initial_noise_state: bytes | None = None
        """Digest of the state of the noise generator before the first step; None in secure mode, where it is meaningless."""

    def attach(self, engine: Any, optimizer: Any, loader: Any) -> None:
        """Read the settings, and add canaries to the sums of clipped gradients in Opacus.

        Supports per-sample gradients by hooks, functorch and expanded weights, and ghost and fast gradient clipping, with flat or
        adaptive clipping, on one device. With several virtual steps, a canary is sampled once per real step.

        Raises:
            AuditFailed: if canaries cannot be added in this setup.
        """
        from opacus.data_loader import DPDataLoader
        from opacus.optimizers import DPOptimizer

        if not isinstance(optimizer, DPOptimizer):
            raise AuditFailed(f"attach takes the optimizer that make_private returned, got {type(optimizer).__name__}")
        if type(optimizer).__name__.startswith(("Distributed", "FSDP")) or hasattr(optimizer, "max_grad_norms"):
            raise AuditFailed(f"{type(optimizer).__name__} is not supported: canaries need flat clipping on one device")
        if len(loader.dataset) != self._length:
            raise AuditFailed(
                f"the loader has {len(loader.dataset):,} records, but train got {self._length:,}: train must use the records "
                "that it gets, or canaries are never inserted"
            )
        poisson = isinstance(loader, DPDataLoader)
        if not poisson and not self.required:
            raise AuditFailed(
                "canaries that are records need Poisson sampling: with shuffled batches, the number of steps reveals how many are "
                "inserted. Use poisson_sampling=True, or gradient canaries"
            )
        if poisson:
            self._batch_count = _count_batches(loader, self._actual_length)

        def settings() -> Settings:
            measured = (
                MeasuredNoise((self._sum_of_squares / self._noise_values) ** 0.5, self._noise_values)
                if self._noise_values
                else None
            )
            return Settings.of(
                engine, optimizer, loader, poisson=poisson, steps=self.steps, noises=self._noises, measured=measured
            )

        self._read_settings = settings
        self.watch(optimizer.params)
        self._add_before_noise(engine, optimizer, loader.sample_rate if poisson else 1 / len(loader), poisson, loader)

    def _add_before_noise(self, engine: Any, optimizer: Any, rate: float, poisson: bool, loader: Any) -> None:
        """Wrap ``add_noise``, which every mode of Opacus calls once per real step with clipped sums in ``summed_grad``."""
        add_noise = optimizer.add_noise

        def add_canaries_and_noise() -> None:
            parameters, norm, noise = optimizer.params, float(optimizer.max_grad_norm), optimizer.noise_multiplier
            epoch = None if poisson else max(1, len(loader) // optimizer.accumulated_iterations)
            if not self.steps and not engine.secure_mode:
                self.initial_noise_state = _digest_state(optimizer.generator, parameters[0])
            self.add([p.summed_grad for p in parameters], clip_norm=norm, rate=rate, steps_per_epoch=epoch)
            self._noises[float(noise)] += 1
            if self.noiseless:
                optimizer.noise_multiplier = 0.0
            add_noise()
            optimizer.noise_multiplier = noise  # the accountant reads it next
            if self._measures_noise and noise > 0 and norm > 0:
                self._measure_noise(parameters, float(noise) * norm)
            self.released([p.grad for p in parameters], clip_norm=norm, noise_multiplier=float(noise), rate=rate)

        optimizer.add_noise = add_canaries_and_noise

    def _measure_noise(self, parameters: Any, stated: float) -> None:
        """Add the noise of a step, in units of its stated standard deviation, to the measured noise."""
        for parameter in parameters:
            noise = (parameter.grad - parameter.summed_grad.view_as(parameter.grad)).double() / stated
            self._sum_of_squares += float((noise * noise).sum())
            self._noise_values += noise.numel()

    def settings(self) -> Settings:
        """Return the settings after training, with everything that the accountant has counted."""
        if self._read_settings is None:
            raise AuditFailed("train did not call planting.attach(engine, optimizer, loader)")
        return self._read_settings()

    def outcome(self, model: Any) -> Trained:
        """Return the outcome of the run, for scores.

        Raises:
            AuditFailed: if the run cannot have planted canaries, or differs from the rehearsal.
        """
        settings = self.settings()  # raises if train did not attach
        if self.steps and self._batch_count is not None and not self._batch_count[0]:
            raise AuditFailed(
                "train takes its batches from another loader than the one that make_private returned and that it attached: "
                "iterate over the attached loader, or the accountant describes different training"
            )
        if self._rehearsal is not None:
            if self.initial_noise_state is not None and self.initial_noise_state == self._rehearsal.initial_noise_state:
                raise AuditFailed(
                    "the noise starts from the same random numbers in every run: train seeds the generator itself "
                    "(torch.manual_seed, or noise_generator=). Remove that: the audit seeds every run differently"
                )
            difference = None if self._rehearsal.settings is None else settings.difference(self._rehearsal.settings)
            if difference is not None:
                raise AuditFailed(
                    f"one run had {difference}: the statement of the accountant differs between runs. "
                    "Pass a claim that covers all of them as claim="
                )
        return super().outcome(model)


@dataclass(frozen=True)
class Rehearsal:
    """Facts of a run before the audit, with which later runs are compared.

    Later runs must have the same ``settings``, unless these are None because the claim covers any settings. Their noise must not
    start from the same generator state.
    """

    initial_noise_state: bytes | None
    settings: Settings | None


def _digest_state(generator: Any, parameter: Any) -> bytes:
    """Return a digest of the state of the generator that draws the noise of a parameter."""
    import torch

    if generator is not None:
        state = generator.get_state()
    elif parameter.device.type == "cuda":
        state = torch.cuda.get_rng_state(parameter.device)
    else:
        state = torch.get_rng_state()
    return hashlib.sha256(state.cpu().numpy().tobytes()).digest()


def _count_batches(loader: Any, actual_length: int) -> list[int] | None:
    """Count the batches that a Poisson loader draws, and let it sample from ``actual_length`` records.

    The rate, the steps, the expected batch size and everything else that depends on the length still follow from the stated length
    of the data set.

    Returns:
        A list whose only item is the count; None if the sampler is not that of Opacus, which is then left unchanged.
    """
    import torch
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    batch_count = [0]

    class Sampler(UniformWithReplacementSampler):  # type: ignore[misc]
        def __iter__(self) -> Any:
            for _ in range(self.steps):
                chosen = torch.rand(actual_length, generator=self.generator) < self.sample_rate
                batch_count[0] += 1
                yield chosen.nonzero().reshape(-1).tolist()

    old = loader.batch_sampler
    if type(old) is not UniformWithReplacementSampler:
        if actual_length != old.num_samples:
            raise AuditFailed(f"canaries that are records need the Poisson sampler of Opacus, got {type(old).__name__}")
        return None
    new = Sampler(num_samples=old.num_samples, sample_rate=old.sample_rate, generator=old.generator, steps=old.steps)
    object.__setattr__(loader, "batch_sampler", new)  # the loader forbids plain assignment; it has not been used yet
    return batch_count


class GrownRecords:
    """Records followed by canaries, whose length is that without canaries.

    Opacus computes the sampling rate and the expected batch size from the length of the data set. These are public, and so must not
    depend on which canaries are inserted. Only the sampler uses the actual length.
    """

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


class GrownPool(PooledRecords):
    """Records and a pool of canaries; the stated length of data sets does not depend on which canaries are inserted."""

    def with_canaries(self, canaries: Any) -> GrownRecords:
        """Return the records followed by the records of the pool with these numbers."""
        whole = concatenate(self.records, select(self.pool, np.asarray(canaries, dtype=np.int64)))
        return GrownRecords(whole, len(whole), len(self.records))


@dataclass(frozen=True)
class OpacusLoop(Loop):
    """A training loop that calls ``planting.attach``."""

    rehearsal: Rehearsal | None = None
    measures_noise: bool = field(default=False, compare=False)

    def planting(self, data: Any, rng: np.random.Generator) -> OpacusPlanting:
        """Return the planting of one run."""
        gradients = isinstance(data, PlantedRecords)
        return OpacusPlanting(
            data.seeds if gradients else np.empty(0, np.int64),
            rng,
            length=len(data),
            actual_length=GrownRecords.count(data),
            rehearsal=self.rehearsal,
            measures_noise=self.measures_noise,
            white_box=self.white_box,
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
    loss: Loss = cross_entropy,
    white_box: bool = False,
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
        loss: ``loss(model, record)``, for canaries that are records.
        white_box: whether scores use the noisy gradients of every step instead of the final model.
        pilots: number of models trained before the audit without canaries. Default: 4 without noise for gradients, 8 for records.
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
    loop = OpacusLoop(train, white_box=white_box, threads=checks.count(threads=threads))
    data = None if canaries is None else GrownPool(records, canaries)
    rehearsal = _rehearse(loop, PlantedRecords(records) if data is None else data.with_canaries(()))
    settings = rehearsal.settings()
    inconsistencies = settings.checks()
    for check in inconsistencies:
        warnings.warn(str(check), ConfigurationWarning, stacklevel=2)
    loop = replace(loop, rehearsal=Rehearsal(rehearsal.initial_noise_state, None if settings_may_vary else settings))
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
            **({"warnings": ", ".join(check.name for check in inconsistencies)} if inconsistencies else {}),
            **({"not tested": "clipping (gradient canaries are added after it)"} if data is None else {}),
        },
        pilot_loop=replace(loop, noiseless=True),
        data=data,
    )
    if target.prepare is not None:
        target = replace(target, prepare=_CountRehearsal(target.prepare))
    return OpacusTarget(target, settings)


def _rehearse(loop: OpacusLoop, data: Any) -> OpacusPlanting:
    """Run the loop once without canaries, to read its settings and the state of its noise generator."""
    torch_rng, planting_rng = np.random.default_rng(0).spawn(2)
    planting = replace(loop, measures_noise=True).planting(data, planting_rng)
    with preserve_global_generators():
        loop.run(data, planting, torch_rng)
    return planting


@dataclass(frozen=True)
class _CountRehearsal:
    """A preparation step that also counts the model of the rehearsal."""

    prepare: Any

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Prepared:
        prepared: Prepared = self.prepare(dataset, rng)
        return replace(prepared, models=prepared.models + 1)


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
    """Audit training with Opacus against the statement of its accountant.

    The claim is the ε that the engine states for ``delta`` after a run, unless ``claim`` is given. See :func:`opacus_target` for
    the other arguments, and :func:`lidp.audit` for ``options``, such as ``trials``, ``seed``, ``workers`` and ``store``.

    Guarantee: that of :func:`lidp.audit`.
    """
    if (delta is None) == (claim is None):
        raise InvalidArgument("give either delta, for the claim of the engine's accountant, or a claim")
    opacus = opacus_target(
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
        claim = opacus.settings.claim(delta)
    return audit(opacus.target, claim=claim, design=design, **options)
