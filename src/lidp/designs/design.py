"""``Design``: the base class of all designs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from lidp.arrays import Floats
from lidp.claim import Neighbours
from lidp.designs.layout import Layout
from lidp.designs.trial_record import TrialRecord
from lidp.errors import InvalidArgument

Draw = Callable[[np.random.Generator, int], Any]
"""``draw(rng, size)`` returns ``size`` canaries."""

PERFECT_SCORE = 1e6
"""The score, up to its sign, of a mechanism that reveals every canary: larger than any threshold or prediction."""


class Design(ABC):
    """Which canaries a trial inserts, how many models it trains, and what its records mean.

    Subclasses are frozen dataclasses. A refutation with a design holds for the design's ``neighbours`` only.
    """

    models_per_trial: ClassVar[int]
    has_coins: ClassVar[bool]
    """whether fair coins decide which canaries are inserted, rather than two fixed arms"""
    has_canaries: ClassVar[bool] = True
    """whether canaries are inserted, rather than two data sets given"""
    unit: ClassVar[str] = "trials"
    """what the rows of the scores are called"""
    score_label: ClassVar[str] = "score: higher looks more inserted"
    label: ClassVar[str]
    """the design's name on the command line"""
    canaries: int
    """canaries per trial that are or may be inserted"""
    held_out: int
    """canaries per trial that are scored but never inserted"""
    neighbours: Neighbours

    @property
    @abstractmethod
    def description(self) -> str:
        """The design in a few words, for reports."""

    @property
    @abstractmethod
    def array_sizes(self) -> Mapping[str, int]:
        """The length of each array of a record."""

    @property
    @abstractmethod
    def arm_sizes(self) -> tuple[int, ...]:
        """How many canaries of a trial are scored in each arm; one group for designs with coins, which the coins divide."""

    def trials_of(self, budget: int) -> int:
        """Return how many trials an audit with this budget has: as many, unless the design fixes the number."""
        return budget

    def rows(self, trials: int) -> int:
        """Return the number of rows of scores of the first ``trials`` trials: one per trial, unless a trial is a block of runs."""
        return trials

    @abstractmethod
    def lay_out(self, draw: Draw, seed: int, index: int) -> Layout:
        """Draw the canaries and coins of a trial, which depend only on the seed and the trial's index."""

    @abstractmethod
    def lost_arrays(self, layout: Layout) -> tuple[dict[str, Floats], bool]:
        """Return the arrays of a trial whose process died or timed out, and whether all its runs count as lost."""

    def merge_failures(
        self, arrays: dict[str, Floats], failures: dict[str, str]
    ) -> tuple[dict[str, Floats], dict[str, str]]:
        """Return arrays and failures after one arm's failure has been applied to the arms that share its run."""
        return arrays, failures

    @abstractmethod
    def score_arrays(self, records: Sequence[TrialRecord]) -> dict[str, Any]:
        """Return the arguments of :meth:`lidp.Scores.of_block` for these records."""

    @abstractmethod
    def perfect_arrays(self, trials: int) -> dict[str, Any]:
        """Return the arguments of :meth:`lidp.Scores.of_block` for a mechanism that reveals every canary."""

    def check_record(self, record: TrialRecord, seed: int) -> None:
        """Raise ``ValueError`` if a record is not from this design and seed: wrong sizes or other coins."""
        if {name: len(array) for name, array in record.arrays.items()} != self.array_sizes:
            raise ValueError(f"its trial {record.index} does not belong to {self}")

    def to_json(self) -> dict[str, Any]:
        """Return the design as plain data, ready for JSON; :func:`design_from_json` reads it."""
        parameters = {name: str(value) if isinstance(value, StrEnum) else value for name, value in asdict(self).items()}  # type: ignore[call-overload]  # every design is a dataclass
        return {"kind": type(self).__name__, **parameters}


def check_canary_design(design: object) -> Design:
    """Return the design.

    Raises:
        InvalidArgument: if it is no design, or one without canaries.
    """
    if not isinstance(design, Design) or not design.has_canaries:
        raise InvalidArgument(f"design must be CoinFlip, LeaveOneOut or ReplaceOne, got {design!r}")
    return design
