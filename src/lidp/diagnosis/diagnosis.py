"""``Diagnosis``: what the steps of a training show, in numbers and in sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from lidp.rounding import at_least, at_most, counted, exact

NO_BOUND = "A diagnosis is no privacy bound: it does not change the verdict of the audit."


@dataclass(frozen=True)
class Claimed:
    """What is claimed of the training."""

    noise_multiplier: float
    sampling_rate: float
    steps: int


class Quantity(StrEnum):
    """What a measurement is about."""

    NOISE = "noise"
    """The noise multiplier, in units of the claimed one."""
    CORRELATION = "correlation"
    """The correlation of noise with the noise of the step before."""
    PRODUCT = "rate times contribution"
    """The sampling rate times what a canary adds when it takes part, in units of its gradient."""
    RATE = "sampling rate"
    """The share of steps in which a canary takes part."""
    CONTRIBUTION = "contribution"
    """What a canary adds when it takes part, in units of its gradient, which clipping should leave as it is."""


class Part(StrEnum):
    """Which part of the training a measurement is about."""

    ALL = "all"
    GROUP = "group"
    STRETCH = "stretch"


@dataclass(frozen=True)
class Measurement:
    """Limits on one quantity.

    Attributes:
        where: the part in words: "all", the name of a parameter group, or "steps 1 to 750".
        lower: the lower limit; None if the evidence gives none.
        upper: the upper limit; None if the evidence gives none.
        claimed: the value that is claimed.
    """

    quantity: Quantity
    part: Part
    where: str
    lower: float | None
    upper: float | None
    claimed: float

    @property
    def below(self) -> bool:
        """Whether the quantity is smaller than claimed."""
        return self.upper is not None and self.upper < self.claimed

    @property
    def above(self) -> bool:
        """Whether the quantity is larger than claimed."""
        return self.lower is not None and self.lower > self.claimed

    @property
    def as_claimed(self) -> bool:
        """Whether the limits allow the claimed value."""
        return not self.below and not self.above

    def describe(self) -> str:
        """Return the limits as text, rounded outwards."""
        return describe_limits(self.lower, self.upper)


@dataclass(frozen=True)
class Finding:
    """One deviation from the claim, as a sentence; ``factor`` says how large it is, and is below 1 if it costs no privacy."""

    text: str
    factor: float


@dataclass(frozen=True)
class Diagnosis:
    """Where a training deviates from its claim.

    Guarantee: if noise is Gaussian and independent of everything else, all limits hold at once except with probability
    ``failure_probability``, whenever the audit was stopped. Without ``separate_canaries`` only upper limits on noise are given,
    which hold for canaries whose gradients overlap too. If noise varies within a part, its lower limit is one on the largest
    noise in it, and its upper limit one on the smallest. A diagnosis is no privacy bound.
    """

    target: str
    claimed: Claimed
    trials: int
    steps: tuple[int, int]
    """the smallest and the largest number of steps that a run recorded"""
    separate_canaries: bool
    """whether canaries are known not to overlap"""
    runs_share_noise: bool | None
    """whether two runs have the same noise; None if it cannot be told"""
    failure_probability: float
    measurements: tuple[Measurement, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    def select(self, quantity: Quantity, part: Part | None = None) -> tuple[Measurement, ...]:
        """Return the measurements of a quantity, of one kind of part if it is named."""
        return tuple(one for one in self.measurements if one.quantity is quantity and part in (None, one.part))

    @property
    def summary(self) -> tuple[str, ...]:
        """The findings as sentences, worst first; one sentence if there are none."""
        return tuple(finding.text for finding in self.findings) or (self._nothing_found(),)

    def _nothing_found(self) -> str:
        (noise,) = self.select(Quantity.NOISE, Part.ALL)
        limits = [f"noise {noise.describe()} of what is claimed"]
        limits += [
            f"{one.quantity} {one.describe()} ({exact_digits(one.claimed)} claimed)"
            for one in self.select(Quantity.PRODUCT)
        ]
        limits += [
            f"correlation of successive steps {one.describe()}" for one in self.select(Quantity.CORRELATION, Part.ALL)
        ]
        return f"nothing found, within these limits: {'; '.join(limits)}; {counted(self.steps[1], 'steps')} as claimed"

    @property
    def rows(self) -> tuple[tuple[str, str, str, str], ...]:
        """All measurements as text: quantity, part, measured and claimed value."""
        steps = ("steps", "all", _describe_steps(self.steps), f"{self.claimed.steps:,}")
        measured = ((str(one.quantity), one.where, one.describe(), exact_digits(one.claimed)) for one in self.measurements)
        return (*measured, steps)

    @property
    def certainty(self) -> str:
        """How sure the limits are, in one sentence."""
        return (
            f"All limits hold together except with probability {exact(self.failure_probability)}, "
            "if noise is Gaussian, as large for all parameters of a group and all steps of a stretch, and runs are independent."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        plain = asdict(self)
        plain["measurements"] = [
            {**asdict(one), "quantity": str(one.quantity), "part": str(one.part)} for one in self.measurements
        ]
        plain["findings"] = [finding.text for finding in self.findings]
        plain["steps"] = list(self.steps)
        plain["notes"] = list(self.notes)
        plain["summary"] = list(self.summary)
        plain["certainty"] = f"{self.certainty} {NO_BOUND}"
        return plain

    def to_json(self, indent: int | None = None) -> str:
        """Return the diagnosis as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __str__(self) -> str:
        claimed = self.claimed
        heading = (
            f"{self.target}: {self.trials:,} {'trial' if self.trials == 1 else 'trials'}, claimed noise multiplier "
            f"{claimed.noise_multiplier:.4g}, sampling rate {claimed.sampling_rate:.4g}, {counted(claimed.steps, 'steps')}"
        )
        findings = [f"  {text}" for text in self.summary]
        table = _table([("quantity", "where", "measured", "claimed"), *self.rows])
        notes = [f"note: {text}" for text in self.notes]
        return "\n".join([heading, *findings, *table, *notes, self.certainty, NO_BOUND])


def describe_limits(lower: float | None, upper: float | None) -> str:
    """Return limits as text, rounded outwards."""
    if lower is None and upper is None:
        return "unknown"
    if lower is None:
        return f"at most {_rounded_up(upper or 0.0)}"
    if upper is None:
        return f"at least {_rounded_down(lower)}"
    return f"{_rounded_down(lower)} to {_rounded_up(upper)}"


def _rounded_down(value: float) -> str:
    return f"-{_rounded_up(-value)}" if value < 0 else at_least(value, _digits(value))


def _rounded_up(value: float) -> str:
    return f"-{_rounded_down(-value)}" if value < 0 else at_most(value, _digits(value))


def _digits(value: float) -> int:
    """Return the number of digits to show: one more above 1, so that limits around 1 are equally exact."""
    return 4 if value > 1 else 3


def exact_digits(value: float) -> str:
    """Return a claimed number with up to four digits."""
    return f"{value:.4g}"


def finite_or_none(value: float) -> float | None:
    """Return a limit, None if it is infinite."""
    return value if math.isfinite(value) else None


def _describe_steps(steps: tuple[int, int]) -> str:
    return f"{steps[0]:,}" if steps[0] == steps[1] else f"{steps[0]:,} to {steps[1]:,}"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
