"""What a ``PrivacyEngine`` was told, as the claim and as what does not fit together."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from lidp import checks
from lidp.claim import Claim
from lidp.errors import AuditFailed

_SLACK = 1 + 1e-9


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
    """What an engine was told, and what a run with it did.

    ``noises`` are the noise multipliers that steps had, ``steps`` how many the optimizer took; ``history`` is what the accountant
    knows: (noise multiplier, sampling rate, steps).
    """

    records: int
    sample_rate: float
    max_grad_norm: float
    expected_batch_size: float
    poisson: bool
    secure_mode: bool
    accountant: str
    steps: int
    noises: frozenset[float]
    history: tuple[tuple[float, float, int], ...]
    counted: Any = field(repr=False, compare=False)
    """the accountant itself"""

    @classmethod
    def of(cls, engine: Any, optimizer: Any, loader: Any, *, poisson: bool, steps: int, noises: set[float]) -> Settings:
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
            noises=frozenset(noises),
            history=tuple((float(n), float(r), int(k)) for n, r, k in engine.accountant.history),
            counted=copy.deepcopy(engine.accountant),
        )

    @property
    def noise_multiplier(self) -> float:
        """The least noise that a step had."""
        return min(self.noises, default=0.0)

    def claim(self, delta: float) -> Claim:
        """The ε that the engine's accountant states for a δ."""
        delta = checks.probability(delta=delta)
        if not self.history:
            raise AuditFailed("the engine's accountant has counted no step; was optimizer.step() called on its optimizer?")
        return Claim(float(self.counted.get_epsilon(delta=delta)), delta)

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
            found.append(Check("steps not counted", f"the optimizer took {self.steps}, the accountant knows of {told}"))
        noise, used = max((noise for noise, _, _ in self.history), default=0.0), max(self.noises, default=0.0)
        if noise > used * _SLACK:
            found.append(Check("noise overstated", f"the accountant was told {noise:g}, the optimizer has {used:g}"))
        rate = min((rate for _, rate, _ in self.history), default=1.0)
        if rate * _SLACK < self.sample_rate:
            found.append(
                Check(
                    "sampling rate understated",
                    f"the accountant was told {rate:g}, the loader samples {self.sample_rate:g}",
                )
            )
        return tuple(found)
