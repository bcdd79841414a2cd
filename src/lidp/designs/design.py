"""``Design``: the base class of all designs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp.claim import Neighbours
from lidp.designs.layout import Layout
from lidp.designs.trial_record import TrialRecord

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Any]
"""Return that many canaries: ``draw(rng, size)``."""

PERFECT_SCORE = 1e6
"""Farther from 0 than any threshold or prediction: the score of a mechanism that gives every canary away."""


class Design(ABC):
    """How a trial is laid out: which canaries go in, how many models it trains, and what its records mean.

    Subclasses are frozen dataclasses. A violation that is found with a design counts for the design's ``neighbours`` only.
    """

    models_per_trial: ClassVar[int]
    has_coins: ClassVar[bool]
    """whether canaries are inserted by fair coins, rather than into one of two arms"""
    has_canaries: ClassVar[bool] = True
    """whether canaries are planted, rather than two data sets given"""
    unit: ClassVar[str] = "trials"
    """what a row of the scores is called"""
    score_label: ClassVar[str] = "score: higher looks more inserted"
    label: ClassVar[str]
    """the design's name on the command line"""
    canaries: int
    """canaries per trial that are inserted, or may be"""
    held_out: int
    """canaries per trial that are scored and never inserted"""
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

    def rows(self, trials: int) -> int:
        """Return how many rows of scores the first ``trials`` trials make: one per trial, unless a trial is a block of runs."""
        return trials

    @abstractmethod
    def lay_out(self, draw: Draw, seed: int, index: int) -> Layout:
        """Draw the canaries and coins of a trial. Both depend on the seed and the trial's index only."""

    @abstractmethod
    def lost_arrays(self, layout: Layout) -> tuple[dict[str, Floats], bool]:
        """Return the arrays of a trial whose process did not come back, and whether the trial counts as wholly lost."""

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
        """Return the arguments of :meth:`lidp.Scores.of_block` for a mechanism that gives every canary away."""

    def check_record(self, record: TrialRecord, seed: int) -> None:
        """Raise ``ValueError`` if this design and seed cannot have made a record: wrong sizes, or other coins."""
        if {name: len(array) for name, array in record.arrays.items()} != self.array_sizes:
            raise ValueError(f"its trial {record.index} does not belong to {self}")

    def to_json(self) -> dict[str, Any]:
        """Return the design as plain data, ready for JSON; :func:`design_from_json` reads it."""
        parameters = {name: str(value) if isinstance(value, StrEnum) else value for name, value in asdict(self).items()}  # type: ignore[call-overload]  # every design is a dataclass
        return {"kind": type(self).__name__, **parameters}
