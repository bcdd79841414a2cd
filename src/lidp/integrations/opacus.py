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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.audits import audit
from lidp.claim import Claim
from lidp.designs import CoinFlip, Design
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.planting import Planting, Trained
from lidp.integrations.record_sets import PooledRecords, count, joined, pick
from lidp.integrations.torch import Loop, Train, cross_entropy, loop_target
from lidp.integrations.trainers import Loss
from lidp.result import AuditResult
from lidp.target import Target


class ConfigurationWarning(UserWarning):
    """Training was set up in a way that its accountant does not cover."""


@dataclass(frozen=True)
class Check:
    """Something that does not fit together: its name, and what it means."""

    name: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.name}: {self.meaning}"


@dataclass(frozen=True)
class Settings:
    """What a ``PrivacyEngine`` was told, and what a run with it did."""

    records: int
    sample_rate: float
    noise_multiplier: float
    max_grad_norm: float
    expected_batch_size: float
    poisson: bool
    secure_mode: bool
    accountant: str
    history: tuple[tuple[float, float, int], ...] = ()
    """(noise multiplier, sampling rate, steps) as the accountant knows them"""
    steps: int = 0
    """as the optimizer took them"""
    epsilon_of: Callable[[float], float] | None = field(default=None, repr=False, compare=False)

    def claim(self, delta: float) -> Claim:
        """The ε that the engine's accountant states for a δ, after training."""
        if self.epsilon_of is None or not self.history:
            raise AuditFailed("the engine's accountant has counted no step; was optimizer.step() called on its optimizer?")
        return Claim(float(self.epsilon_of(checks.probability(delta=delta))), delta)

    def checks(self) -> tuple[Check, ...]:
        """All that does not fit together."""
        found = []
        if not self.poisson:
            found.append(
                Check(
                    "fixed-size batches",
                    f"the {self.accountant} accountant assumes Poisson sampling, the loader cuts a shuffled data set into batches; "
                    "a final model does not show the difference. Use poisson_sampling=True",
                )
            )
        exact = self.records * self.sample_rate
        if abs(exact - self.expected_batch_size) > 1e-9 * exact:
            found.append(
                Check(
                    "batch size floored",
                    f"a batch has {exact:g} records on average, gradients are divided by {self.expected_batch_size:g}",
                )
            )
        if not self.secure_mode:
            found.append(
                Check(
                    "secure_mode off",
                    "noise is made with floating-point numbers of an ordinary generator, which can be attacked",
                )
            )
        told = sum(steps for _, _, steps in self.history)
        if self.history and told != self.steps:
            found.append(
                Check("steps not counted", f"the optimizer took {self.steps} steps, the accountant knows of {told}")
            )
        for noise, rate, _ in self.history:
            if noise > self.noise_multiplier * (1 + 1e-9):
                found.append(
                    Check(
                        "noise overstated",
                        f"the accountant was told {noise:g}, the optimizer adds {self.noise_multiplier:g}",
                    )
                )
            if rate < self.sample_rate * (1 - 1e-9):
                found.append(
                    Check(
                        "sampling rate understated",
                        f"the accountant was told {rate:g}, the loader samples {self.sample_rate:g}",
                    )
                )
        return tuple(dict.fromkeys(found))


class OpacusPlanting(Planting):
    """A planting that finds its place in Opacus by itself."""

    def __init__(
        self, seeds: NDArray[np.int64], rng: np.random.Generator, records: Any, *, rehearsal: bool = False, **options: bool
    ) -> None:
        """If it is a ``rehearsal``, training is ended as soon as the settings are known."""
        super().__init__(seeds, rng, **options)
        self.settings: Settings | None = None
        self._records = records
        self._rehearsal = rehearsal
        self._history: Any = ()

    def attach(self, engine: Any, optimizer: Any, loader: Any) -> None:
        """Read the settings off, and add canaries where Opacus sums up clipped gradients.

        Works for per-sample gradients by hooks, functorch and expanded weights, and for ghost and fast gradient clipping, with
        flat or adaptive clipping, on one device. With several virtual steps a canary is sampled once per real step.
        """
        from opacus.data_loader import DPDataLoader
        from opacus.optimizers import DPOptimizer

        if not isinstance(optimizer, DPOptimizer):
            raise InvalidArgument(f"attach takes the optimizer that make_private returned, got {type(optimizer).__name__}")
        if type(optimizer).__name__.startswith(("Distributed", "FSDP")) or hasattr(optimizer, "max_grad_norms"):
            raise InvalidArgument(
                f"{type(optimizer).__name__} is not supported: gradient canaries need flat clipping on one device"
            )
        if len(loader.dataset) != len(self._records):
            raise InvalidArgument(
                f"the loader has {len(loader.dataset):,} records, train was given {len(self._records):,}: "
                "it must train on the records it is given, or canaries are never in"
            )
        poisson = isinstance(loader, DPDataLoader)
        rate = loader.sample_rate if poisson else 1 / len(loader)
        self.settings = Settings(
            records=len(loader.dataset),
            sample_rate=rate,
            noise_multiplier=float(optimizer.noise_multiplier),
            max_grad_norm=float(optimizer.max_grad_norm),
            expected_batch_size=float(optimizer.expected_batch_size or len(loader.dataset) * rate),
            poisson=poisson,
            secure_mode=bool(engine.secure_mode),
            accountant=type(engine.accountant).__name__.removesuffix("Accountant"),
            epsilon_of=engine.get_epsilon,
        )
        if self._rehearsal:
            raise Rehearsed(self.settings)
        if isinstance(self._records, PaddedRecords):
            # The places of absent canaries stand last; the sampler must not know of them.
            loader.batch_sampler.num_samples = self._records.real
        if self.noiseless:
            optimizer.noise_multiplier = 0.0
        self.watch(optimizer.params)
        self._history = engine.accountant.history
        _add_before_noise(self, optimizer, rate, None if poisson else len(loader))

    def outcome(self, model: Any) -> Trained:
        """What the run gives to scores."""
        if self.settings is None:
            raise InvalidArgument("train did not call planting.attach(engine, optimizer, loader)")
        return super().outcome(model)

    def found(self) -> Settings:
        """The settings after training, with what the accountant has counted."""
        if self.settings is None:
            raise InvalidArgument("train did not call planting.attach(engine, optimizer, loader)")
        history = tuple((float(noise), float(rate), int(steps)) for noise, rate, steps in self._history)
        return replace(self.settings, history=history, steps=self.steps)


class Rehearsed(BaseException):  # not an error: the settings are all that was asked for
    """Ends a training run that was only to show its settings."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.settings = settings


def _add_before_noise(planting: OpacusPlanting, optimizer: Any, rate: float, once_in: int | None) -> None:
    """Every mode of Opacus calls ``add_noise`` once a real step, when ``summed_grad`` holds the sum of clipped gradients."""
    add_noise = optimizer.add_noise

    def add_canaries_and_noise() -> None:
        parameters = optimizer.params
        norm = float(optimizer.max_grad_norm)
        planting.add([p.summed_grad for p in parameters], clip_norm=norm, rate=rate, once_in=once_in)
        add_noise()
        noise = float(optimizer.noise_multiplier)
        planting.released([p.grad for p in parameters], clip_norm=norm, noise_multiplier=noise, rate=rate)

    optimizer.add_noise = add_canaries_and_noise


class PaddedRecords:
    """A data set of constant length: records, canaries that are in, and places of those that are not.

    Opacus makes the sampling rate and the expected batch size from the length of the data set. They are public, so the length must
    not tell how many canaries are in. The sampler is kept away from the empty places; whoever reads them all the same is told.
    """

    def __init__(self, records: Any, real: int, length: int) -> None:
        self.records, self.real, self.length = records, real, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: int) -> Any:
        if place >= self.real:
            raise InvalidArgument(
                "an empty place of the data set was read: train must read records through the loader of make_private only"
            )
        return self.records[place]


@dataclass(frozen=True)
class PaddedPool(PooledRecords):
    """Records and a pool; data sets have room for ``room`` canaries, whoever is in."""

    room: int = 0

    def with_canaries(self, canaries: Any) -> Any:
        """A data set of constant length with these canaries."""
        numbers = np.asarray(canaries, dtype=np.int64)
        if len(numbers) > self.room:
            raise InvalidArgument(
                f"{len(numbers)} canaries are to be planted, there is room for {self.room}; set room= to as many"
            )
        whole = joined(self.records, pick(self.pool, numbers))
        return PaddedRecords(whole, count(whole), count(self.records) + self.room)


@dataclass(frozen=True)
class OpacusLoop(Loop):
    """A training loop that calls ``planting.attach``."""

    def planting(self, records: Any, seeds: NDArray[np.int64], rng: np.random.Generator) -> OpacusPlanting:
        """One that attaches itself."""
        return OpacusPlanting(seeds, rng, records, white_box=self.white_box, noiseless=self.noiseless)


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
    room: int = 64,
    loss: Loss = cross_entropy,
    white_box: bool = False,
    pilots: int | None = None,
    threads: int = 1,
    name: str = "",
) -> OpacusTarget:
    """A target from a training loop with Opacus. One model is trained at once, to see what the engine is told.

    Args:
        train: ``train(records, planting) -> model``, which calls ``planting.attach(engine, optimizer, loader)``.
        records: a data set of PyTorch, or anything that a ``DataLoader`` takes.
        canaries: a pool of records of the same make; left out, canaries are gradients.
        room: canaries a trial at most, for canaries that are records.
        loss: ``loss(model, record)``, for canaries that are records.
        white_box: score what every step releases instead of the final model.
        pilots: models trained beforehand without canaries: 4 without noise for gradients, 8 for records.

    Warns:
        ConfigurationWarning: for each of :meth:`Settings.checks`.
    """
    if not callable(train):
        raise InvalidArgument(f"train must be callable as train(records, planting), got {train!r}")
    loop = OpacusLoop(train, white_box=white_box, threads=checks.count(threads=threads))
    data = None
    if canaries is not None:
        data = PooledRecords(records, canaries)
        # Only a Poisson sampler can be kept away from empty places.
        if _rehearse(loop, records, to_the_end=False).poisson:
            data = PaddedPool(records, canaries, checks.count(room=room))
    settings = _rehearse(loop, records if data is None else data.with_canaries(()), to_the_end=True)
    found = settings.checks()
    for check in found:
        warnings.warn(str(check), ConfigurationWarning, stacklevel=2)
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
    return OpacusTarget(target, settings)


def _rehearse(loop: OpacusLoop, records: Any, *, to_the_end: bool) -> Settings:
    """The settings of a run without canaries."""
    import torch

    planting = OpacusPlanting(np.empty(0, np.int64), np.random.default_rng(0), records, rehearsal=not to_the_end)
    torch.set_num_threads(loop.threads)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            loop.train(records, planting)
        except Rehearsed as stopped:
            return stopped.settings
    return planting.found()


def audit_opacus(
    train: Train,
    records: Any,
    *,
    delta: float,
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
    design = design or CoinFlip(64)
    made = opacus_target(
        train,
        records,
        canaries=canaries,
        room=design.canaries,
        loss=loss,
        white_box=white_box,
        pilots=pilots,
        threads=threads,
        name=name,
    )
    return audit(made.target, claim=claim or made.settings.claim(delta), design=design, **options)
