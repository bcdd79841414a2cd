"""Time, metadata and failures of trials, binned so that a million trials fit into a figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.trial_notes import TrialNote, TrialNotes

BINS = 120
_LEAST_RANGE = 0.01  # of the range of all trials: about two pixels
MOST_SERIES = 8
MOST_WORDS = 5
_ARMS = {"scores": "", "inserted": ", inserted run", "held_out": ", held-out run"}

_LARGEST = 1e100
"""Larger numbers are shown as text, since their squares would overflow."""


@dataclass(frozen=True)
class Series:
    """One number per trial, such as its accuracy, by trial.

    Bin b covers the trials after those of bin b-1, up to trial ``last[b]``; ``mean``, ``low`` and ``high`` describe the trials of
    the bin that have the number. ``count`` trials have it, and ``overall`` is their mean.
    """

    name: str
    key: str
    """the name of the number in the JSON"""
    count: int
    overall: float
    last: Ints
    mean: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, key: str, indices: Sequence[int], values: Sequence[float]) -> Series:
        number, value = np.asarray(indices, dtype=np.int64), np.asarray(values, dtype=np.float64)
        bins = min(BINS, len(value))
        starts = np.linspace(0, len(value), bins + 1).astype(np.int64)[:-1]
        ends = np.append(starts[1:], len(value))
        return cls(
            name=plain_name(key),
            key=key,
            count=len(value),
            overall=float(value.mean()),
            last=number[ends - 1],
            mean=np.add.reduceat(value, starts) / (ends - starts),
            low=np.minimum.reduceat(value, starts),
            high=np.maximum.reduceat(value, starts),
        )

    @property
    def has_range(self) -> bool:
        """Whether the trials of a bin differ enough for their range to be seen in a figure."""
        return bool((self.high - self.low).max() > _LEAST_RANGE * (self.high.max() - self.low.min()))


@dataclass(frozen=True)
class Words:
    """Metadata that is not a number: its most frequent values and how often each occurs."""

    name: str
    values: tuple[tuple[str, int], ...]
    others: int
    """number of trials with any other value"""

    @classmethod
    def of(cls, name: str, counts: Mapping[str, int]) -> Words:
        most = Counter(counts).most_common(MOST_WORDS)
        return cls(name, tuple(most), sum(counts.values()) - sum(count for _, count in most))


@dataclass(frozen=True)
class TrialFacts:
    """Time and metadata of the trials: numbers as series, other values as words, and why runs failed."""

    series: tuple[Series, ...]
    words: tuple[Words, ...]
    failures: Words
    left_out: tuple[str, ...]
    """names of metadata that are not shown, because there are too many"""

    @classmethod
    def of(cls, notes: Sequence[TrialNote]) -> TrialFacts:
        columns = TrialNotes.of(notes)
        numbers: dict[str, tuple[Sequence[int], Sequence[float]]] = {}
        texts: dict[str, Counter[str]] = {}
        if len(columns):
            numbers["seconds"] = (range(len(columns)), columns.seconds)
        for name, column in columns.metadata.items():
            if "_unscored" in name:
                continue  # statements_of reports these
            pairs = list(zip(column.trials, column.values, strict=True))
            known = [(trial, float(value)) for trial, value in pairs if _is_number(value)]
            if known:
                numbers[name] = ([trial for trial, _ in known], [value for _, value in known])
            if len(known) < len(pairs):
                texts[name] = Counter(_short(value) for _, value in pairs if not _is_number(value))
        reasons = (reason for failures in columns.failures.values() for reason in failures.values())
        failures = Counter(_short(last_line(reason)) for reason in reasons)
        return cls(
            series=tuple(Series.of(name, *numbers[name]) for name in list(numbers)[:MOST_SERIES]),
            words=tuple(Words.of(plain_name(name), texts[name]) for name in list(texts)[:MOST_SERIES]),
            failures=Words.of("why runs failed", failures),
            left_out=(*list(numbers)[MOST_SERIES:], *list(texts)[MOST_SERIES:]),
        )


def _is_number(value: Any) -> bool:
    """Return whether a value can be drawn; NaN cannot."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST


def plain_name(key: str) -> str:
    """Return a metadata name in words: ``inserted_accuracy`` becomes "accuracy, inserted run"."""
    for arm, words in _ARMS.items():
        if key.startswith(f"{arm}_"):
            return key[len(arm) + 1 :].replace("_", " ") + words
    return key.replace("_", " ")


def last_line(text: str) -> str:
    """Return the last line of a traceback, which names the error."""
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "no reason was given"


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 200 else f"{text[:199]}…"
