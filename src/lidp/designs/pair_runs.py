"""Pair runs: a fair coin decides for each run which of two data sets the mechanism gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.claim import Neighbours
from lidp.designs.design import PERFECT_SCORE, Design, Draw
from lidp.designs.layout import Layout
from lidp.designs.trial_record import WHOLE_TRIAL, TrialRecord
from lidp.errors import InvalidArgument
from lidp.streams import draw_coins

FIRST_BLOCK_RUNS = 32
LARGEST_BLOCK_RUNS = 65_536
MOST_RUNS = 10**10
COINS, FAILED = "coins", "failed"
"""The arrays of a record that every block has: the coin of each run (1 means d1), and 1 for each run that failed."""


@dataclass(frozen=True)
class PairRuns(Design):
    """``runs`` runs of a mechanism, each on one of two data sets, chosen by a fair coin.

    A trial is a block of runs. The first blocks are small, since the predictor learns most from early runs; later blocks grow. A
    row of the scores is one run.
    """

    runs: int
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    canaries: ClassVar[int] = 1  # type: ignore[misc]  # the same for every instance
    held_out: ClassVar[int] = 0  # type: ignore[misc]  # the same for every instance
    models_per_trial: ClassVar[int] = 1
    has_coins: ClassVar[bool] = True
    has_canaries: ClassVar[bool] = False
    unit: ClassVar[str] = "runs"
    score_label: ClassVar[str] = "predicted log-odds that the run was on d1"
    label: ClassVar[str] = "pair"

    def __post_init__(self) -> None:
        if checks.count(runs=self.runs) > MOST_RUNS:
            raise InvalidArgument(f"runs must be at most {MOST_RUNS:,}, got {self.runs:,}")
        object.__setattr__(self, "neighbours", checks.member(Neighbours, neighbours=self.neighbours))

    @property
    def description(self) -> str:
        """See :class:`Design`."""
        return "two data sets; a fair coin chose one of them for each run"

    @cached_property
    def block_sizes(self) -> tuple[int, ...]:
        """The number of runs of each block."""
        sizes: list[int] = []
        done = 0
        while done < self.runs:
            sizes.append(min(max(FIRST_BLOCK_RUNS, done), LARGEST_BLOCK_RUNS, self.runs - done))
            done += sizes[-1]
        return tuple(sizes)

    @cached_property
    def _rows_before(self) -> tuple[int, ...]:
        return tuple(accumulate(self.block_sizes, initial=0))

    @property
    def trials(self) -> int:
        """The number of blocks."""
        return len(self.block_sizes)

    def trials_of(self, budget: int) -> int:  # the number of runs fixes it
        """See :class:`Design`."""
        return self.trials

    def rows(self, trials: int) -> int:
        """See :class:`Design`."""
        if not 0 <= trials <= self.trials:
            raise InvalidArgument(f"{self.runs:,} runs are {self.trials:,} trials, got {trials:,}")
        return self._rows_before[trials]

    @property
    def arm_sizes(self) -> tuple[int, ...]:
        """See :class:`Design`."""
        return (self.canaries,)

    @property
    def array_sizes(self) -> Mapping[str, int]:
        """See :class:`Design`; empty, since blocks differ in size: :meth:`check_record` checks them."""
        return {}

    def lay_out(self, draw: Draw, seed: int, index: int) -> Layout:
        """See :class:`Design`. No canaries are drawn."""
        coins = draw_coins(seed, trial=index, size=self.block_sizes[index])
        return Layout(coins.astype(np.float64), [])

    def lost_arrays(self, layout: Layout) -> tuple[dict[str, Floats], bool]:
        """See :class:`Design`. The coins are known; all runs of the block have failed."""
        assert layout.coins is not None  # noqa: S101  # lay_out has set them
        return {COINS: layout.coins, FAILED: np.ones(len(layout.coins))}, True

    def score_arrays(self, records: Sequence[TrialRecord]) -> dict[str, Any]:
        """See :class:`Design`. The scores are the predictor's, which :mod:`lidp.pairs.scorer` adds."""
        return {
            "coins": np.concatenate([record.arrays[COINS] for record in records])[:, None],
            "failed": np.concatenate([record.arrays[FAILED] for record in records]).astype(np.bool_),
            "neighbours": self.neighbours,
        }

    def perfect_arrays(self, trials: int) -> dict[str, Any]:
        """See :class:`Design`."""
        coins = np.random.default_rng(0).integers(0, 2, (trials, 1))
        return {"scores": PERFECT_SCORE * (2.0 * coins - 1.0), "coins": coins, "neighbours": self.neighbours}

    def check_record(self, record: TrialRecord, seed: int) -> None:
        """See :class:`Design`."""
        coins, failed = record.arrays.get(COINS), record.arrays.get(FAILED)
        size = self.block_sizes[record.index]
        if coins is None or failed is None or not len(coins) == len(failed) == size:
            raise ValueError(f"its trial {record.index} does not have {size} runs, as its design says")
        if coins.tobytes() != draw_coins(seed, trial=record.index, size=size).astype(np.float64).tobytes():
            raise ValueError(f"the coins of trial {record.index} are not those of seed {seed}")
        if WHOLE_TRIAL in record.failures and not failed.all():
            raise ValueError(f"its trial {record.index} is lost but has outputs")
