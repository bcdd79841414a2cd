"""What a ``PrivacyEngine`` was told and what its optimizer did, as the claim and as what does not fit together."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lidp import checks
from lidp.claim import Claim
from lidp.errors import AuditFailed

_SLACK = 1 + 1e-9
_LEAST_SHORTFALL = 0.02  # of noise that is measured
_STANDARD_ERRORS = 6.0


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
class MeasuredNoise:
    """The noise that steps added, over the noise that the optimizer stated: a root mean square over so many numbers."""

    share: float
    numbers: int

    @property
    def falls_short(self) -> bool:
        """Whether there was less than stated, by more than chance."""
        return self.share < 1 - max(_LEAST_SHORTFALL, _STANDARD_ERRORS / math.sqrt(2 * max(1, self.numbers)))


@dataclass(frozen=True)
class Settings:
    """What an engine was told, and what a run with it did.

    ``noises`` are the noise multipliers that steps had, with the number of steps of each; ``history`` is what the accountant
    knows: (noise multiplier, sampling rate, steps).
    """

    records: int
    sample_rate: float
    max_grad_norm: float = field(compare=False)
    """after the run: adaptive clipping changes it"""
    expected_batch_size: float
    poisson: bool
    secure_mode: bool
    accountant: str
    steps: int
    noises: tuple[tuple[float, int], ...]
    history: tuple[tuple[float, float, int], ...]
    counted: Any = field(repr=False, compare=False)
    """the accountant itself"""
    measured: MeasuredNoise | None = field(default=None, compare=False)
    """if it was measured"""

    @classmethod
    def of(
        cls,
        engine: Any,
        optimizer: Any,
        loader: Any,
        *,
        poisson: bool,
        steps: int,
        noises: Mapping[float, int],
        measured: MeasuredNoise | None = None,
    ) -> Settings:
        """The settings of a run that has ended."""
        rate = loader.sample_rate if poisson else 1 / len(loader)
        return cls(
            records=len(loader.dataset),
            sample_rate=rate,
            max_grad_norm=float(optimizer.max_grad_norm),
            expected_batch_size=float(optimizer.expected_batch_size or len(loader.dataset) * rate),
            poisson=poisson,
            secure_mode=bool(engine.secure_mode),
            accountant=type(engine.accountant).__name__.removesuffix("Accountant"),
            steps=steps,
            noises=tuple(sorted(noises.items())),
            history=tuple((float(n), float(r), int(k)) for n, r, k in engine.accountant.history),
            counted=copy.deepcopy(engine.accountant),
            measured=measured,
        )

    @property
    def noise_multiplier(self) -> float:
        """The least noise that a step had."""
        return min((noise for noise, _ in self.noises), default=0.0)

    def claim(self, delta: float) -> Claim:
        """The ε that the engine's accountant states for a δ."""
        delta = checks.probability(delta=delta)
        if not self.history:
            raise AuditFailed("the engine's accountant has counted no step; was optimizer.step() called on its optimizer?")
        return Claim(float(self.counted.get_epsilon(delta=delta)), delta)

    def difference(self, other: Settings) -> str | None:
        """Which setting of this run another run had otherwise, in words; None if they are the same."""
        for name in ("steps", "noises", "sample_rate", "expected_batch_size", "history"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                return f"{name.replace('_', ' ')} {ours}, another {theirs}"
        return None

    def checks(self) -> tuple[Check, ...]:
        """All that does not fit together."""
        return tuple(self._checks())

    def _checks(self) -> Iterator[Check]:
        if not self.poisson:
            yield Check(
                "fixed-size batches",
                f"the {self.accountant} accountant assumes Poisson sampling, the loader cuts a shuffled data set into batches; "
                "a final model does not show the difference. Use poisson_sampling=True",
            )
        exact = self.records * self.sample_rate
        if abs(exact - self.expected_batch_size) > 1e-9 * exact:
            yield Check(
                "batch size floored",
                f"a batch has {exact:g} records on average, gradients are divided by {self.expected_batch_size:g}",
            )
        if not self.secure_mode:
            yield Check(
                "secure_mode off",
                "noise is made with floating-point numbers of an ordinary generator, which can be attacked",
            )
        told = sum(steps for _, _, steps in self.history)
        if told != self.steps:
            yield Check("steps not counted", f"the optimizer took {self.steps}, the accountant knows of {told}")
        overstated = self._overstated()
        if overstated is not None:
            yield Check(
                "noise overstated", f"the accountant was told {overstated[0]:g}, the optimizer had {overstated[1]:g}"
            )
        if self.measured is not None and self.measured.falls_short:
            yield Check("noise missing", f"steps added {self.measured.share:.3g} times the noise that the optimizer states")
        rate = min((rate for _, rate, _ in self.history), default=1.0)
        if rate * _SLACK < self.sample_rate:
            yield Check(
                "sampling rate understated",
                f"the accountant was told {rate:g}, the loader samples {self.sample_rate:g}",
            )

    def _overstated(self) -> tuple[float, float] | None:
        """A noise that the accountant was told and a smaller one that a step had in its place, from the least upwards."""
        told: Counter[float] = Counter()
        for noise, _, steps in self.history:
            told[noise] += steps
        pairs = zip(sorted(told.elements()), sorted(Counter(dict(self.noises)).elements()), strict=False)
        return next(((stated, had) for stated, had in pairs if stated > had * _SLACK), None)
