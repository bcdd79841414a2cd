"""What an experiment is: cells to compute, a table of their rows, a figure, findings to compare with the paper."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]
"""One line of an experiment's table: plain values by column."""


class Scale(StrEnum):
    """How much to compute."""

    SMOKE = "smoke"
    """Does everything run? Seconds; its numbers mean little."""
    REDUCED = "reduced"
    """Trained models only: fewer records and steps, so that a few hours on two cores show what the paper shows."""
    PAPER = "paper"
    """The paper's sizes and repetitions."""


@dataclass(frozen=True)
class Cell:
    """A piece of an experiment that is computed in one go, and kept when it is done.

    Its random numbers depend on its settings only, so on one machine it comes out the same however and whenever it is run (another
    kind of processor may round differently). ``given`` is what it takes over from other cells.
    """

    settings: Row
    given: list[Row] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The cell as text, always the same text for the same cell."""
        return json.dumps([self.settings, self.given], sort_keys=True)

    @property
    def seed(self) -> int:
        """The seed of its simulations."""
        text = json.dumps(self.settings, sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Finding:
    """One statement: the paper's number if it has one, ours, and what counts as agreement."""

    statement: str
    ours: float | None
    paper: float | None = None
    tolerance: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    wanted: bool = False
    """whether the number had to be found: if it was not, that is a finding too, and not one that holds"""

    @classmethod
    def missing(cls, statement: str, note: str) -> Finding:
        """A number that had to be found and was not."""
        return cls(statement, None, note=note, wanted=True)

    @property
    def holds(self) -> bool | None:
        """Whether ours is where it should be; None if nothing was expected."""
        if self.ours is None:
            return False if self.wanted else None
        judged = [
            None if self.paper is None or self.tolerance is None else abs(self.ours - self.paper) <= self.tolerance,
            None if self.at_least is None else self.ours >= self.at_least,
            None if self.at_most is None else self.ours <= self.at_most,
        ]
        known = [verdict for verdict in judged if verdict is not None]
        return all(known) if known else None


class Source(ABC):
    """Where rows come from: cells in stages. Several experiments may share one."""

    name: str
    code: ClassVar[tuple[str, ...]]
    """patterns of the files that its cells are computed with: cells of other code are not mixed with those of this"""

    @abstractmethod
    def cells(self, scale: Scale, done: Sequence[Row]) -> list[Cell]:
        """What can be computed given the rows so far. Asked again until there is nothing new."""

    @abstractmethod
    def run(self, cell: Cell) -> list[Row]:
        """Compute a cell."""


class Experiment(ABC):
    """One figure or table: made of the rows of its sources."""

    name: str
    about: str
    """what it shows, in one line"""
    scales: ClassVar[tuple[Scale, ...]] = (Scale.SMOKE, Scale.PAPER)

    @property
    @abstractmethod
    def sources(self) -> tuple[Source, ...]:
        """Whose rows it is made of."""

    @abstractmethod
    def table(self, rows: Sequence[Row]) -> list[Row]:
        """The table of the experiment, ready for a CSV file."""

    @abstractmethod
    def findings(self, table: Sequence[Row]) -> list[Finding]:
        """What the table says, beside what the paper says; only what the table holds the numbers for."""

    @abstractmethod
    def figure(self, table: Sequence[Row]) -> Figure:
        """The picture of the table."""


class Simulation(Source, Experiment):
    """An experiment on simulated mechanisms that is its own source."""

    code = ("streams.py", "scores.py", "reproduce/setting.py", "mechanisms/*.py", "_compiled/*.py", "stats/*.py")

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self,)
