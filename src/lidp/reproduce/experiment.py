"""Define experiments: sources compute rows, and an experiment turns rows into a table and compares it with the paper."""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import ClassVar

from lidp.reproduce.tables import Row
from lidp.store import Store


class Scale(StrEnum):
    """How much to compute."""

    SMOKE = "smoke"
    """seconds, to check that everything runs; the numbers mean little"""
    REDUCED = "reduced"
    """trained models only: fewer records and steps, a few hours on two cores"""
    PAPER = "paper"
    """the paper's sizes and repetitions"""


@dataclass(frozen=True)
class Finding:
    """One statement: our number, the paper's number if it has one, and what counts as agreement."""

    statement: str
    ours: float | None
    paper: float | None = None
    tolerance: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    wanted: bool = False
    """whether a missing number counts as disagreement"""

    @property
    def holds(self) -> bool | None:
        """Whether our number is in the expected range; None if nothing was expected."""
        if self.ours is None:
            return False if self.wanted else None
        checks = [
            None if self.paper is None or self.tolerance is None else abs(self.ours - self.paper) <= self.tolerance,
            None if self.at_least is None else self.ours >= self.at_least,
            None if self.at_most is None else self.ours <= self.at_most,
        ]
        expected = [check for check in checks if check is not None]
        return all(expected) if expected else None


@dataclass(frozen=True)
class Progress:
    """How many cells of a source are finished."""

    name: str
    done: int
    planned: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.name}: {self.done:,}/{self.planned:,} cells, {self.seconds:,.0f} s"


@dataclass(frozen=True)
class Session:
    """Everything a source needs to compute: its scale and store, worker processes, a deadline and a progress callback."""

    scale: Scale
    store: Store
    workers: int = 1
    deadline: float | None = None
    """value of ``time.monotonic()`` after which no cell is started"""
    watch: Callable[[Progress], None] | None = None
    started: float = field(default_factory=lambda: time.monotonic())

    def is_over(self) -> bool:
        """Return whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() > self.deadline

    def report(self, name: str, done: int, planned: int) -> None:
        """Tell the progress callback, if there is one."""
        if self.watch is not None:
            self.watch(Progress(name, done, planned, time.monotonic() - self.started))


class Source(ABC):
    """Where rows come from. Several experiments may share a source.

    Its unit of work is the cell: a simulated audit, or one trial of trained models. Finished cells are kept in the store of the
    session (or in files next to it), and are not computed again.
    """

    name: str
    scales: tuple[Scale, ...]
    code: ClassVar[tuple[str, ...]]
    """patterns of the source files that determine its results; cells computed by other code are not mixed with them"""

    @abstractmethod
    def compute(self, session: Session) -> tuple[list[Row], int]:
        """Compute the missing cells; return the rows of all cells, and the number of cells that the deadline left out."""


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper. Its figure is in ``figures.FIGURES``, under its name."""

    name: str
    about: str
    """what it shows, in one line"""
    table: Callable[[Sequence[Row]], list[Row]]
    """makes the table that is written as a CSV file, from the rows of all sources"""
    sources: tuple[Source, ...]
    findings: Callable[[Sequence[Row]], Iterable[Finding]]
    """compares the table with the paper, as far as the table has the numbers"""

    @property
    def scales(self) -> tuple[Scale, ...]:
        """The scales at which it can be computed."""
        return self.sources[0].scales


def experiment(
    name: str, about: str, table: Callable[[Sequence[Row]], list[Row]], *sources: Source
) -> Callable[[Callable[[Sequence[Row]], Iterable[Finding]]], Experiment]:
    """Return a decorator that makes an experiment of the function that compares its table with the paper."""
    return partial(Experiment, name, about, table, sources)


def key_of(settings: Row) -> str:
    """Return settings as text, the same for equal settings: the name under which a store keeps the rows of a cell."""
    return json.dumps(settings, sort_keys=True)


def seed_of(settings: Row) -> int:
    """Return a seed that depends on these settings only."""
    return int.from_bytes(hashlib.sha256(key_of(settings).encode()).digest()[:8], "big")
