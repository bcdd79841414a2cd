"""``TrialNote``: facts about a trial other than its scores; ``TrialNotes``: those of all trials, in a few bytes each."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

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

    def reason(self, run: str) -> str:
        """Return why a run of this trial failed; empty if nothing is known."""
        return self.failures.get(run) or self.failures.get(WHOLE_TRIAL) or next(iter(self.failures.values()), "")


class TrialNotes(Sequence[TrialNote]):
    """The notes of the trials 0, 1, 2, ..., kept as columns: a trial without failures and metadata takes eight bytes.

    Seconds are kept to a tenth of a microsecond.
    """

    def __init__(self, notes: Iterable[TrialNote] = ()) -> None:
        self.seconds = array("d")
        self.attempts: dict[int, int] = {}
        """of the trials that were started more than once"""
        self.failures: dict[int, dict[str, str]] = {}
        """of the trials that have some"""
        self.metadata: dict[str, MetadataColumn] = {}
        self.extend(notes)

    @classmethod
    def of(cls, notes: Sequence[TrialNote]) -> TrialNotes:
        """Return notes in this form."""
        return notes if isinstance(notes, cls) else cls(notes)

    def extend(self, notes: Iterable[TrialNote]) -> None:
        """Add the notes of the next trials."""
        for note in notes:
            self._add(note)

    def _add(self, note: TrialNote) -> None:
        index = len(self.seconds)
        if note.index != index:
            raise ValueError(f"expected the note of trial {index}, got that of trial {note.index}")
        self.seconds.append(round(note.seconds, _SECONDS_DIGITS))
        if note.attempts != 1:
            self.attempts[index] = note.attempts
        if note.failures:
            self.failures[index] = {sys.intern(str(run)): sys.intern(str(why)) for run, why in note.failures.items()}
        for name, value in note.metadata.items():
            self.metadata.setdefault(name, MetadataColumn()).add(index, value)

    def __len__(self) -> int:
        return len(self.seconds)

    @overload
    def __getitem__(self, index: int) -> TrialNote: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TrialNote]: ...
    def __getitem__(self, index: int | slice) -> TrialNote | Sequence[TrialNote]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        named = ((name, column.get(number)) for name, column in self.metadata.items())
        metadata = {name: value for name, value in named if value is not _ABSENT}
        return TrialNote(
            number, self.seconds[number], self.attempts.get(number, 1), self.failures.get(number, {}), metadata
        )

    def __iter__(self) -> Iterator[TrialNote]:
        for start in range(0, len(self), _NOTES_PER_STEP):
            numbers = range(start, min(start + _NOTES_PER_STEP, len(self)))
            metadata: list[dict[str, Any]] = [{} for _ in numbers]
            for name, column in self.metadata.items():
                for trial, value in column.between(numbers.start, numbers.stop):
                    metadata[trial - start][name] = value
            for number in numbers:
                attempts, failures = self.attempts.get(number, 1), self.failures.get(number, {})
                yield TrialNote(number, self.seconds[number], attempts, failures, metadata[number - start])

    def first(self, trials: int) -> TrialNotes:
        """Return a copy of the notes of the first trials, which does not grow with these."""
        part = TrialNotes()
        part.seconds = self.seconds[:trials]
        part.attempts = {index: count for index, count in self.attempts.items() if index < trials}
        part.failures = {index: failures for index, failures in self.failures.items() if index < trials}
        columns = ((name, column.first(trials)) for name, column in self.metadata.items())
        part.metadata = {name: column for name, column in columns if column.trials}
        return part

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # notes can grow

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, from which :meth:`from_dict` makes equal notes."""
        return {
            "seconds": list(self.seconds),
            "attempts": {str(index): count for index, count in self.attempts.items()},
            "failures": {str(index): failures for index, failures in self.failures.items()},
            "metadata": {name: column.to_dict(len(self)) for name, column in self.metadata.items()},
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TrialNotes:
        """Return the notes that :meth:`to_dict` described.

        Raises:
            KeyError, TypeError, ValueError: if the data describes none.
        """
        unknown = set(plain) - {"seconds", "attempts", "failures", "metadata"}
        if unknown:
            raise ValueError(f"unknown notes {', '.join(sorted(unknown))}")
        notes = cls()
        notes.seconds = array("d", plain["seconds"])
        notes.attempts = {int(index): int(count) for index, count in plain["attempts"].items()}
        notes.failures = {int(index): dict(failures) for index, failures in plain["failures"].items()}
        for name, column in plain["metadata"].items():
            notes.metadata[name] = MetadataColumn.from_dict(column, len(notes))
        if any(not 0 <= index < len(notes) for index in (*notes.attempts, *notes.failures)):
            raise ValueError("notes belong to no trial")
        return notes


class MetadataColumn:
    """The values of one name in the metadata of trials, in the order of their numbers."""

    def __init__(self, trials: Iterable[int] = (), values: Iterable[Any] = ()) -> None:
        self.trials = array("q", trials)
        self.values: array[float] | list[Any] = array("d")
        for value in values:
            self._append(value)

    def add(self, trial: int, value: Any) -> None:
        """Add the value of the next trial that has one."""
        self.trials.append(trial)
        self._append(value)

    def _append(self, value: Any) -> None:
        if isinstance(self.values, array):
            if type(value) is float:
                self.values.append(value)
                return
            self.values = list(self.values)
        self.values.append(sys.intern(value) if type(value) is str else value)

    def get(self, trial: int) -> Any:
        """Return the value of a trial; ``_ABSENT`` if it has none."""
        at = bisect_left(self.trials, trial)
        return self.values[at] if at < len(self.trials) and self.trials[at] == trial else _ABSENT

    def between(self, first: int, end: int) -> Iterator[tuple[int, Any]]:
        """Yield the trials with numbers from ``first`` to below ``end`` that have a value, and the value."""
        part = slice(bisect_left(self.trials, first), bisect_left(self.trials, end))
        return zip(self.trials[part], self.values[part], strict=True)

    def first(self, trials: int) -> MetadataColumn:
        """Return a copy with the values of the trials below a number."""
        part = MetadataColumn()
        end = bisect_left(self.trials, trials)
        part.trials, part.values = self.trials[:end], self.values[:end]
        return part

    def to_dict(self, trials: int) -> dict[str, Any]:
        """Return plain data; the numbers of the trials are left out if all have a value."""
        return {"values": list(self.values)} | ({} if len(self.trials) == trials else {"trials": list(self.trials)})

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], trials: int) -> MetadataColumn:
        """Return the column that :meth:`to_dict` described."""
        numbers = plain.get("trials", range(trials))
        if len(numbers) != len(plain["values"]) or any(not 0 <= number < trials for number in numbers):
            raise ValueError("metadata belongs to no trial")
        return cls(numbers, plain["values"])


_SECONDS_DIGITS = 7
_NOTES_PER_STEP = 1024
_ABSENT = object()


def note_columns(notes: TrialNotes, trials: Ints, runs: NDArray[Any], failed: Bools) -> dict[str, NDArray[Any]]:
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
    attempts = np.ones(len(notes), dtype=np.int64)
    attempts[list(notes.attempts)] = list(notes.attempts.values())
    columns: dict[str, NDArray[Any]] = {
        "failure": reasons,
        "seconds": np.array(notes.seconds)[trials],
        "attempts": attempts[trials],
    }
    for name, column in notes.metadata.items():
        if all(isinstance(value, (int, float)) for value in column.values):
            numbers = np.full(len(notes), np.nan)
            numbers[np.asarray(column.trials)] = [float(value) for value in column.values]
            columns[f"metadata.{name}"] = numbers[trials]
    return columns
