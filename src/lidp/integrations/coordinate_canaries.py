"""Gradient canaries along single coordinates of a model, independent of the framework that trains it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from lidp.arrays import Bools, Floats, Ints
from lidp.canaries.coordinates import SpreadCoordinates, locate
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.record_sets import copy_records, count


def _no_canaries() -> Floats:
    return np.empty((0, 2))


@dataclass(frozen=True)
class ParameterGroups:
    """The arrays of parameters of a model, in order: their names and shapes.

    A coordinate is the number of a parameter in the concatenation of all arrays, each flattened row by row.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.sizes or not all(self.sizes):
            raise InvalidArgument(f"every group of parameters needs at least one parameter, got shapes {list(self.shapes)}")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of parameters of each group."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def canaries(self) -> SpreadCoordinates:
        """Canaries of length 1 along different coordinates, spread over all groups."""
        return SpreadCoordinates(self.sizes)

    def locate(self, coordinates: Ints) -> tuple[Ints, Ints]:
        """Return the group of each coordinate, and its index in the flattened array of that group; see :func:`locate`."""
        return locate(coordinates, self.sizes)

    def require(self, names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], what: str) -> None:
        """Raise if a training loop passes other arrays than these; ``what`` names them in the message.

        Raises:
            AuditFailed: in every run or in none, so that failing reveals nothing about the coins.
        """
        if names != self.names:
            other = ", ".join(names) or "no arrays"
            raise AuditFailed(
                f"{what} have the arrays {other}, but the parameters of the target have {', '.join(self.names)}"
            )
        for name, shape, expected in zip(names, shapes, self.shapes, strict=True):
            if shape != expected:
                raise AuditFailed(f"{what} have shape {shape} at {name}, but the parameters of the target have {expected}")


@dataclass(frozen=True)
class CoordinateRecords:
    """Records, which are copied for every run, and gradient canaries: those that are inserted, and those that are watched.

    A canary is a row (coordinate, value). A watched canary is scored at every step; it is inserted only if it is planted too.
    """

    records: Any = field(repr=False)
    planted: Floats = field(default_factory=_no_canaries, repr=False)
    watched: Floats = field(default_factory=_no_canaries, repr=False)

    def __len__(self) -> int:
        return count(self.records)

    def with_canaries(self, canaries: Floats) -> CoordinateRecords:
        """Return the same records with these canaries inserted."""
        return replace(self, planted=np.array(canaries, np.float64).reshape(-1, 2))

    def watching(self, canaries: Floats) -> CoordinateRecords:
        """Return the same data with these canaries watched."""
        return replace(self, watched=np.array(canaries, np.float64).reshape(-1, 2))

    def copy_records(self) -> Any:
        """Return a copy of the records for one run."""
        return copy_records(self.records)

    def canaries(self) -> CanaryRows:
        """Return all canaries of a run, the watched ones first.

        Raises:
            AuditFailed: if two canaries have the same coordinate.
        """
        extra = self.planted[~np.isin(self.planted[:, 0], self.watched[:, 0])]
        rows = np.concatenate([self.watched, extra])
        coordinates = rows[:, 0].astype(np.int64)
        if len(np.unique(coordinates)) < len(coordinates):
            raise AuditFailed("two canaries of a run have the same coordinate; draw them with SpreadCoordinates")
        order = np.argsort(self.planted[:, 0], kind="stable")
        rank = np.searchsorted(self.planted[:, 0], coordinates, sorter=order)
        inserted = np.isin(coordinates, self.planted[:, 0])
        numbers = np.zeros(len(rows), np.int64)
        numbers[inserted] = order[rank[inserted]]
        return CanaryRows(coordinates, rows[:, 1], inserted, numbers)


@dataclass(frozen=True)
class CanaryRows:
    """The canaries of one run: coordinate, value, whether inserted, and the number among the inserted ones (else 0)."""

    coordinates: Ints
    values: Floats
    inserted: Bools
    numbers: Ints
    """Whether a canary is sampled follows from this number, so that it does not depend on which canaries are watched."""
