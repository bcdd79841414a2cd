"""Read the evidence of transcripts from trial records, and reject what no transcript can have written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.designs.trial_record import TrialRecord
from lidp.errors import InvalidArgument
from lidp.training.transcript import COLUMNS, STRETCHES

_LARGEST = 1e60  # products of two such numbers do not overflow
_MOST_STEPS = 1e12
_MOST_NOTES = 3
_ROUNDING = 1e-3
"""Relative error of sums that are still taken for sums: those of long runs in single precision have a thousandth of this."""
_MOST_NAMES = 100_000
"""Largest number of names of parameter groups."""


@dataclass(frozen=True)
class RunEvidence:
    """What the transcript of one run says about its canaries.

    Attributes:
        trial: the number of the trial.
        inserted: for each canary, whether it was inserted.
        columns: arrays (canaries, stretches) by the names of :data:`lidp.training.transcript.COLUMNS`.
        groups: for each canary, the number of its parameter group; empty if canaries belong to no single group.
        group_names: names of the groups.
        steps: the number of steps that were recorded.
    """

    trial: int
    inserted: np.ndarray[tuple[int], np.dtype[np.bool_]]
    columns: dict[str, Floats]
    groups: Ints
    group_names: tuple[str, ...]
    steps: int

    @classmethod
    def of(cls, record: TrialRecord) -> RunEvidence:
        """Return the evidence of a trial.

        Raises:
            ValueError: if it is not what a transcript can have written; the message says why.
        """
        coins = np.asarray(record.arrays.get("coins", ()))
        if coins.ndim != 1 or not len(coins) or not np.isin(coins, (0, 1)).all():
            raise ValueError("it has no coins")
        columns = _columns(record, len(coins))
        groups, names = _groups(record, len(coins))
        steps = record.metadata.get("scores_steps")
        recorded = columns["count"].sum(axis=1).max()
        if isinstance(steps, bool) or not isinstance(steps, int) or not recorded <= steps <= _MOST_STEPS:
            raise ValueError("its number of steps does not fit its evidence")
        return cls(record.index, coins == 1, columns, groups, names, steps)

    @property
    def layout(self) -> tuple[int, ...]:
        """The number of steps of each stretch."""
        return tuple(int(count) for count in self.columns["count"].max(axis=0))


def _columns(record: TrialRecord, canaries: int) -> dict[str, Floats]:
    """Return the columns of a record, each as an array (canaries, stretches)."""
    missing = [name for name in COLUMNS if name not in record.evidence]
    if missing:
        raise ValueError(f"the column {missing[0]} is missing")
    flat = {name: np.asarray(record.evidence[name], dtype=np.float64).ravel() for name in COLUMNS}
    sizes = {len(column) for column in flat.values()}
    size = sizes.pop()
    if sizes or not size or size % canaries or size // canaries > 2 * STRETCHES:
        raise ValueError(f"its columns do not have one to {2 * STRETCHES} numbers per canary")
    if not all(np.isfinite(column).all() and (np.abs(column) <= _LARGEST).all() for column in flat.values()):
        raise ValueError("it has numbers that are not finite, or too large")
    if any((flat[name] < 0).any() for name in ("square", "length", "count")):
        raise ValueError("it has negative sums of squares or counts")
    if (flat["count"] != np.floor(flat["count"])).any():
        raise ValueError("it has counts that are not whole numbers")
    columns = {name: column.reshape(canaries, -1) for name, column in flat.items()}
    if not _obeys_cauchy_schwarz({name: column.sum(axis=1) for name, column in columns.items()}):
        raise ValueError("its sums contradict one another")
    return columns


def _obeys_cauchy_schwarz(totals: dict[str, Floats]) -> bool:
    """Return whether sums of products are at most as large as sums of squares allow, up to rounding."""
    squares, slack = totals["square"], 1 + _ROUNDING
    products = totals["product"] ** 2 <= slack * squares * totals["length"] + _ROUNDING
    lagged = np.abs(totals["lagged"]) <= slack * squares + _ROUNDING
    return bool((products & lagged).all())


def _groups(record: TrialRecord, canaries: int) -> tuple[Ints, tuple[str, ...]]:
    """Return the group of each canary and the names of groups; both are empty if the record has none."""
    if "group" not in record.evidence:
        return np.empty(0, np.int64), ()
    text = record.metadata.get("scores_groups", "")
    names = tuple(text.split(", ", _MOST_NAMES)) if isinstance(text, str) and text else ()
    if len(names) > _MOST_NAMES:
        raise ValueError(f"it names more than {_MOST_NAMES:,} parameter groups")
    numbers = np.asarray(record.evidence["group"])
    if numbers.shape != (canaries,) or not np.isin(numbers, np.arange(max(1, len(names)))).all():
        raise ValueError("the parameter groups of its canaries cannot be read")
    return numbers.astype(np.int64), names or ("all parameters",)


@dataclass(frozen=True)
class Evidence:
    """The evidence of the first trials of an audit, up to the first missing one.

    Attributes:
        runs: the runs whose evidence can be read.
        trials: the number of trials, failed and unreadable ones included.
        notes: what was left out, and why.
    """

    runs: tuple[RunEvidence, ...]
    trials: int
    notes: tuple[str, ...]

    @classmethod
    def of(cls, records: Iterable[TrialRecord], name: str = "this audit") -> Evidence:
        """Return the evidence of an audit, which errors call ``name``.

        ``records`` are its first trials; those without evidence may be left out.

        Raises:
            InvalidArgument: if there is none, or none that can be read.
        """
        prefix = list(records)
        if not prefix:
            raise InvalidArgument(f"{name} has no finished trial; resume it")
        if not any(record.evidence for record in prefix):
            raise InvalidArgument(f"{name} has no transcript; audit with --scores transcript")
        runs, reasons = [], []
        for record in prefix:
            if not record.evidence:
                reasons.append(f"trial {record.index} is left out: it has no transcript")
                continue
            try:
                runs.append(RunEvidence.of(record))
            except ValueError as error:
                reasons.append(f"trial {record.index} is left out: {error}")
        if not runs:
            raise InvalidArgument(f"{name} has no transcript that can be read: {reasons[0]}; audit it again")
        runs, others = _same_groups(runs)
        reasons += [f"trial {run.trial} is left out: it has other parameter groups" for run in others]
        more = len(reasons) - _MOST_NOTES
        notes = reasons[:_MOST_NOTES] + ([f"{more:,} more trials are left out"] if more > 0 else [])
        return cls(tuple(runs), 1 + max(record.index for record in prefix), tuple(notes))

    @cached_property
    def inserted(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """For each canary of all runs, whether it was inserted."""
        return np.concatenate([run.inserted for run in self.runs])

    @cached_property
    def run_numbers(self) -> Ints:
        """For each canary of all runs, the position of its run in ``runs``."""
        return np.repeat(np.arange(len(self.runs)), [len(run.inserted) for run in self.runs])

    @cached_property
    def groups(self) -> Ints:
        """For each canary of all runs, its parameter group; empty if there are no groups."""
        return np.concatenate([run.groups for run in self.runs])

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the parameter groups; empty if canaries belong to no single one."""
        return self.runs[0].group_names

    def total(self, name: str) -> Floats:
        """Return the sum of a column over all steps, for each canary of all runs."""
        return np.concatenate([run.columns[name].sum(axis=1) for run in self.runs])

    def last(self, name: str) -> Floats:
        """Return the sum of a column over the last stretch with steps, for each canary of all runs."""
        return np.concatenate([run.columns[name][:, _last_stretch(run)] for run in self.runs])

    @cached_property
    def layout(self) -> tuple[int, ...]:
        """The most frequent division of runs into stretches: the number of steps of each."""
        return Counter(run.layout for run in self.runs).most_common(1)[0][0]

    def stretches(self, name: str) -> Floats:
        """Return the sums of a column over each stretch, an array (canaries, stretches); 0 for runs of another layout."""
        size = len(self.layout)
        parts = (
            run.columns[name] if run.layout == self.layout else np.zeros((len(run.inserted), size)) for run in self.runs
        )
        return np.concatenate(list(parts))


def first_trials(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Return the trials 0, 1, ... up to the first missing one: later ones may have been finished by chance of their outcome."""
    prefix: list[TrialRecord] = []
    for record in sorted(records, key=lambda record: record.index):
        if record.index != len(prefix):
            break
        prefix.append(record)
    return prefix


def _same_groups(runs: Sequence[RunEvidence]) -> tuple[list[RunEvidence], list[RunEvidence]]:
    """Split runs into those with the parameter groups of the first, and all others."""
    first = runs[0]

    def alike(run: RunEvidence) -> bool:
        return run.group_names == first.group_names and bool(len(run.groups)) == bool(len(first.groups))

    return [run for run in runs if alike(run)], [run for run in runs if not alike(run)]


def _last_stretch(run: RunEvidence) -> int:
    used = np.flatnonzero(run.columns["count"].max(axis=0))
    return int(used[-1]) if len(used) else 0
