"""``PairSetup``: everything that the trials of a pair audit share. A trial is a block of runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lidp.designs import Design
from lidp.designs.pair_runs import COINS, FAILED
from lidp.designs.trial_record import WHOLE_TRIAL, TrialRecord
from lidp.pairs.outputs import OutputTable
from lidp.pairs.runner import PairRunner
from lidp.target import PairTarget

_FIRST_FAILURE = "first_failure"
_NAMES, _TEXTS = "names", "texts"
_VALUES, _IDENTITIES, _ROWS, _COLUMNS = "values", "identities", "rows", "columns"


@dataclass(frozen=True)
class PairSetup:
    """Runs the blocks of a pair audit; see :class:`lidp.trials.setup.Setup`."""

    target: PairTarget
    design: Design
    seed: int
    bits: bool = False
    has_preparation: bool = False

    @cached_property
    def runner(self) -> PairRunner:
        """The runner of the mechanism."""
        return PairRunner(self.target, self.seed, bits=self.bits)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "runner"}

    def run(self, indices: Sequence[int]) -> list[TrialRecord]:
        """Return the records of the blocks with these numbers."""
        return [self._run_block(index) for index in indices]

    def lost_record(self, index: int, reason: str, *, seconds: float, attempts: int = 1) -> TrialRecord:
        """Return the record of a block whose process died or timed out: nothing is bet on its runs."""
        arrays, _ = self.design.lost_arrays(self.design.lay_out(_draw_nothing, self.seed, index))
        return TrialRecord(index, arrays, {WHOLE_TRIAL: reason}, seconds, {_FIRST_FAILURE: reason}, attempts)

    def _run_block(self, index: int) -> TrialRecord:
        start = time.perf_counter()
        coins = self.design.lay_out(_draw_nothing, self.seed, index).coins
        assert coins is not None  # noqa: S101  # this design has coins
        block = self.runner.run(index, coins.astype(np.bool_))
        arrays = {COINS: coins, FAILED: block.failed.astype(np.float64), **_table_arrays(block.outputs)}
        metadata = {_FIRST_FAILURE: block.first_failure} if block.first_failure else {}
        return TrialRecord(index, arrays, {}, time.perf_counter() - start, metadata | _table_notes(block.outputs))


def _draw_nothing(_rng: np.random.Generator, _size: int) -> Any:
    return []


def _table_arrays(table: OutputTable) -> dict[str, Any]:
    arrays = {_VALUES: table.values}
    if table.texts is not None:  # otherwise the identities are the first column
        arrays[_IDENTITIES] = table.identities
    if table.rows is not None and table.columns is not None:
        arrays |= {_ROWS: table.rows, _COLUMNS: table.columns}
    return arrays


def _table_notes(table: OutputTable) -> dict[str, Any]:
    notes: dict[str, Any] = {_NAMES: list(table.names)}
    if table.texts is not None:
        notes[_TEXTS] = [[identity, text] for identity, text in table.texts.items()]
    return notes


def table_of(record: TrialRecord) -> OutputTable | None:
    """Return the outputs of a block, None if there are none; raise ``ValueError`` if a stored record is inconsistent."""
    if WHOLE_TRIAL in record.failures or record.arrays[FAILED].all():
        return None
    arrays, notes = record.arrays, record.metadata
    try:
        names = tuple(str(name) for name in notes[_NAMES])
        values = arrays[_VALUES]
        texts = {float(identity): str(text) for identity, text in notes[_TEXTS]} if _TEXTS in notes else None
        size = int((arrays[FAILED] == 0).sum())
        identities = arrays[_IDENTITIES] if texts is not None else values.reshape(size, len(names))[:, 0]
        table = OutputTable(names, values, identities, texts, arrays.get(_ROWS), arrays.get(_COLUMNS))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"the outputs of trial {record.index} cannot be read ({error})") from None
    if len(identities) != size or not _is_consistent(table):
        raise ValueError(f"the outputs of trial {record.index} are inconsistent")
    return table


def _is_consistent(table: OutputTable) -> bool:
    rows, columns = table.rows, table.columns
    if rows is None or columns is None:
        return rows is columns and len(table.values) == len(table) * len(table.names)
    inside = _inside(rows, len(table)) and _inside(columns, len(table.names))
    return len(rows) == len(columns) == len(table.values) and inside


def _inside(indices: Any, size: int) -> bool:
    return not len(indices) or bool((indices >= 0).all() and (indices < size).all())


def first_failure(notes: Mapping[str, Any]) -> str:
    """Return the reason of the first failed run of a block; empty if none failed."""
    return str(notes.get(_FIRST_FAILURE, ""))
