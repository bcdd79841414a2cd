"""``TrialNote``: facts about a trial other than its scores, as values and as columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.arrays import Bools, Ints
from lidp.designs.trial_record import WHOLE_TRIAL


@dataclass(frozen=True)
class TrialNote:
    """Facts about a trial other than its scores."""

    index: int
    seconds: float
    attempts: int
    failures: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, from which ``TrialNote(**plain)`` makes an equal note."""
        return {name: str(value) if isinstance(value, StrEnum) else value for name, value in asdict(self).items()}

    def reason(self, run: str) -> str:
        """Return why a run of this trial failed; empty if nothing is known."""
        return self.failures.get(run) or self.failures.get(WHOLE_TRIAL) or next(iter(self.failures.values()), "")


def note_columns(notes: Sequence[TrialNote], trials: Ints, runs: NDArray[Any], failed: Bools) -> dict[str, NDArray[Any]]:
    """Return what the notes say about each row of a table, by column.

    Args:
        notes: the notes of all trials, in order.
        trials: the trial of each row, as a position in ``notes``.
        runs: the name of the run of each row, as ``TrialNote.failures`` names it.
        failed: whether that run failed.
    """
    reasons = np.full(len(trials), "", dtype=object)
    for row in np.flatnonzero(failed):
        reasons[row] = notes[trials[row]].reason(str(runs[row]))
    columns: dict[str, NDArray[Any]] = {
        "failure": reasons,
        "seconds": np.array([note.seconds for note in notes])[trials],
        "attempts": np.array([note.attempts for note in notes])[trials],
    }
    for name in dict.fromkeys(name for note in notes for name in note.metadata):
        values = [note.metadata.get(name) for note in notes]
        if all(value is None or isinstance(value, (int, float)) for value in values):
            numbers = np.array([np.nan if value is None else float(value) for value in values])
            columns[f"metadata.{name}"] = numbers[trials]
    return columns
