"""``TrialRecord``: the outcome of a finished trial, as stores keep it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lidp.arrays import Floats

WHOLE_TRIAL = "trial"
"""The key in ``TrialRecord.failures`` of a trial that was lost with all its runs."""


@dataclass(frozen=True)
class TrialRecord:
    """The outcome of one trial.

    Attributes:
        index: the trial's number.
        arrays: the trial's numbers by name; the names depend on the design. Scores of a failed run are NaN.
        failures: for each run that failed, the reason; ``WHOLE_TRIAL`` is the key if all runs of the trial were lost.
        seconds: duration of the trial.
        metadata: notes of the mechanism and of the auditor, ready for JSON.
        attempts: how often the trial was started; more than once only if a worker process died.
        evidence: further arrays by name, which no bound uses: what ``lidp diagnose`` reads.
    """

    index: int
    arrays: Mapping[str, Floats]
    failures: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    attempts: int = 1
    evidence: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def lost(self) -> bool:
        """Whether no run of the trial has an outcome."""
        return WHOLE_TRIAL in self.failures or all(name in self.failures for name in self.arrays if name != "coins")

    @property
    def failure(self) -> str:
        """Why the trial has no score at all: a traceback or a reason; empty if it has one."""
        if self.lost:
            return next(iter(self.failures.values()), "no run has an outcome")
        names = [name for name in self.arrays if name != "coins" and name not in self.failures]
        if any(len(self.arrays[name]) > int(self.metadata.get(f"{name}_unscored", 0)) for name in names):
            return ""
        reasons = (str(self.metadata.get(f"{name}_unscored_because", "")) for name in names)
        return next(filter(None, reasons), "no canary could be scored")

    def is_sound(self) -> bool:
        """Return whether the failures, metadata and seconds of a record from a file have the right types."""
        runs = {name for name in self.arrays if name != "coins"} | {WHOLE_TRIAL}
        reasons = all(name in runs and isinstance(reason, str) for name, reason in self.failures.items())
        numbers = [value for name, value in self.metadata.items() if name.endswith("_unscored")] + [self.seconds]
        known = all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers)
        return reasons and known and self.attempts >= 1
