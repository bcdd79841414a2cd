"""The layout of one trial: its coins, and the inserted and scored canaries of each run of the mechanism."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lidp.arrays import Floats, Ints


@dataclass(frozen=True)
class FirstOthers(Sequence[Ints]):
    """For each tested canary k the indices of the first ``counts[k]`` inserted canaries, computed on access."""

    counts: Ints

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, k: Any) -> Any:
        return np.arange(self.counts[operator.index(k)])


@dataclass(frozen=True)
class AllButOne(Sequence[Ints]):
    """For each tested canary k the indices of all ``size`` inserted canaries except ``left_out[k]``, computed on access."""

    size: int
    left_out: Ints

    def __len__(self) -> int:
        return len(self.left_out)

    def __getitem__(self, k: Any) -> Any:
        return np.delete(np.arange(self.size), self.left_out[operator.index(k)])


@dataclass(frozen=True)
class Arm:
    """One run of the mechanism.

    Attributes:
        name: the name of the array of its scores in the record.
        number: which data set the mechanism runs on; arms of the same number share one run.
        inserted: the canaries that are in the data set.
        tested: the canaries that are scored on the output.
        others: for each tested canary, the indices of the inserted canaries whose contributions its score may subtract.
    """

    name: str
    number: int
    inserted: Any
    tested: Any
    others: Sequence[Ints]


class Layout(NamedTuple):
    """The coins of a trial (None for designs without coins) and its arms."""

    coins: Floats | None
    arms: list[Arm]
