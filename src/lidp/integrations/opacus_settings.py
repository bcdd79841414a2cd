"""Derive the claim from the settings of a ``PrivacyEngine``, and compare them with what its optimizer did."""

from __future__ import annotations

import bisect
import copy
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lidp import checks
from lidp.claim import Claim
from lidp.curves import EventCurve, PrivacyCurve
from lidp.errors import AuditFailed, InvalidArgument

_SLACK = 1 + 1e-9
_MIN_SHORTFALL = 0.02  # smaller shortfalls of measured noise are not reported
_STANDARD_ERRORS = 6.0


class ConfigurationWarning(UserWarning):
    """The accountant does not cover training with these settings."""


@dataclass(frozen=True)
class Check:
    """An inconsistency between the settings, the accountant and the training: its short name and an explanation."""

    name: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.name}: {self.meaning}"


@dataclass(frozen=True)
class MeasuredNoise:
    """Noise that the steps added, relative to the noise that the optimizer states."""

    share: float
    """Root mean square of the measured noise, divided by the stated standard deviation."""
    numbers: int
    """Number of noise values that were measured."""

    @property
    def is_too_small(self) -> bool:
        """Whether the measured noise is smaller than stated, by more than chance explains."""
        return self.share < 1 - max(_MIN_SHORTFALL, _STANDARD_ERRORS / math.sqrt(2 * max(1, self.numbers)))


class CountedSteps:
    """What an accountant has counted for each step: noise multiplier and sampling rate."""

    def __init__(self, history: Sequence[tuple[float, float, int]]) -> None:
        """Create it from triples (noise multiplier, sampling rate, number of steps)."""
        self._counted = [(noise, rate) for noise, rate, _ in history]
        self._ends = list(itertools.accumulate(steps for _, _, steps in history))

    def at(self, step: int) -> tuple[float, float]:
        """Return the numbers for a step, from 0; for steps that were not counted, those of the last one."""
        return self._counted[min(bisect.bisect_right(self._ends, step), len(self._counted) - 1)]


@dataclass(frozen=True)
class Settings:
    """Settings of an engine, and what a run with it did.

    ``noises`` holds pairs (noise multiplier, number of steps) of the run. ``history`` holds what the accountant has counted, as
    triples (noise multiplier, sampling rate, number of steps).
    """

    records: int
    sample_rate: float
    max_grad_norm: float = field(compare=False)
    """Value after the run; adaptive clipping changes it."""
    expected_batch_size: float
    poisson: bool
    secure_mode: bool
    accountant: str
    steps: int
    noises: tuple[tuple[float, int], ...]
    history: tuple[tuple[float, float, int], ...]
    accountant_copy: Any = field(repr=False, compare=False)
    """Copy of the accountant after the run."""
    measured: MeasuredNoise | None = field(default=None, compare=False)
    """None if the noise was not measured."""

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
        """Return the settings of a run that has ended."""
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
            accountant_copy=copy.deepcopy(engine.accountant),
            measured=measured,
        )

    @property
    def noise_multiplier(self) -> float:
        """The smallest noise multiplier of any step."""
        return min((noise for noise, _ in self.noises), default=0.0)

    def claim(self, delta: float) -> Claim:
        """Return the claim of the engine's accountant: the ε that it states for this δ, and the curve of the steps it counted.

        An accountant that states a smaller ε than follows from the curve claims the point only.
        """
        delta = checks.probability(delta=delta)
        if not self.history:
            raise AuditFailed("the engine's accountant has counted no step; was optimizer.step() called on its optimizer?")
        point = Claim(float(self.accountant_copy.get_epsilon(delta=delta)), delta)
        curve = self._curve()
        return point if curve is None else point.with_curve(curve)

    def _curve(self) -> PrivacyCurve | None:
        """Return the privacy curve of the steps that the accountant has counted; None if a step had no noise."""
        events = [
            {
                "event": "SelfComposedDpEvent",
                "count": steps,
                "of": {
                    "event": "PoissonSampledDpEvent",
                    "sampling_probability": rate,
                    "of": {"event": "GaussianDpEvent", "noise_multiplier": noise},
                },
            }
            for noise, rate, steps in self.history
        ]
        whole = events[0] if len(events) == 1 else {"event": "ComposedDpEvent", "events": events}
        try:
            return EventCurve(json.dumps(whole))
        except InvalidArgument:
            return None

    def difference(self, other: Settings, ignore: Sequence[str] = ()) -> str | None:
        """Describe the first setting, except those to ignore, in which another run differs from this one; None if there is none."""
        for name in ("steps", "noises", "sample_rate", "expected_batch_size", "history"):
            if name in ignore:
                continue
            this_value, other_value = getattr(self, name), getattr(other, name)
            if this_value != other_value:
                return f"{name.replace('_', ' ')} {this_value}, another {other_value}"
        return None

    def checks(self) -> tuple[Check, ...]:
        """Return all inconsistencies."""
        return tuple(self._checks())

    def _checks(self) -> Iterator[Check]:
        if not self.poisson:
            yield Check(
                "fixed-size batches",
                f"the {self.accountant} accountant assumes Poisson sampling, but the loader splits a shuffled data set into "
                "batches; an audit of the final model cannot detect the difference. Use poisson_sampling=True",
            )
        exact = self.records * self.sample_rate
        if abs(exact - self.expected_batch_size) > 1e-9 * exact:
            yield Check(
                "batch size floored",
                f"a batch has {exact:g} records on average, but gradients are divided by {self.expected_batch_size:g}, "
                "which follows from the number of records. If that number is private, neighbouring data sets have different "
                "divisors, and no accountant covers that. Set optimizer.expected_batch_size to a number fixed beforehand",
            )
        if not self.secure_mode:
            yield Check(
                "secure_mode off",
                "noise comes from an ordinary generator of floating-point numbers, which can be attacked",
            )
        counted_steps = sum(steps for _, _, steps in self.history)
        if counted_steps != self.steps:
            yield Check(
                "steps not counted",
                f"the optimizer took {self.steps} steps, but the accountant has counted {counted_steps}",
            )
        overstated = self._overstated_noise()
        if overstated is not None:
            yield Check(
                "noise overstated",
                f"the accountant has counted a noise multiplier of {overstated[0]:g}, but the optimizer used {overstated[1]:g}",
            )
        if self.measured is not None and self.measured.is_too_small:
            yield Check(
                "noise missing", f"the steps added {self.measured.share:.3g} times the noise that the optimizer states"
            )
        rate = min((rate for _, rate, _ in self.history), default=1.0)
        if rate * _SLACK < self.sample_rate:
            yield Check(
                "sampling rate understated",
                f"the accountant has counted a rate of {rate:g}, but the loader samples at {self.sample_rate:g}",
            )

    def _overstated_noise(self) -> tuple[float, float] | None:
        """Return a noise multiplier that the accountant has counted and a smaller one that a step used; None if there is none.

        Counted and used multipliers are compared in increasing order, whatever the order of the steps.
        """
        counted: Counter[float] = Counter()
        for noise, _, steps in self.history:
            counted[noise] += steps
        pairs = zip(sorted(counted.elements()), sorted(Counter(dict(self.noises)).elements()), strict=False)
        return next(((stated, used) for stated, used in pairs if stated > used * _SLACK), None)
