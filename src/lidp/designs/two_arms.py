"""What leave-one-out and replace-one share: scores of inserted and of held-out canaries, in two arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.designs.design import PERFECT_SCORE, Design, Draw
from lidp.designs.layout import AllButOne, Arm
from lidp.designs.trial_record import TrialRecord
from lidp.streams import Purpose, stream

_ARMS = ("inserted", "held_out")


@dataclass(frozen=True)
class TwoArms(Design):
    """A design that scores ``canaries`` inserted and ``held_out`` fresh canaries per trial."""

    canaries: int
    held_out: int

    has_coins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checks.count(canaries=self.canaries)
        checks.count(held_out=self.held_out)

    @property
    def description(self) -> str:
        """See :class:`Design`."""
        kind = self.label.replace("-", " ")
        return f"{kind}: {self.canaries:,} inserted and {self.held_out:,} held-out canaries per trial"

    @property
    def arm_sizes(self) -> tuple[int, ...]:
        """See :class:`Design`."""
        return (self.canaries, self.held_out)

    @property
    def array_sizes(self) -> Mapping[str, int]:
        """See :class:`Design`."""
        return {"inserted": self.canaries, "held_out": self.held_out}

    def draw_arms(self, draw: Draw, seed: int, index: int) -> tuple[Arm, Any]:
        """Return the arm of the inserted canaries, and the fresh canaries of the other arm."""
        inserted = draw(stream(seed, trial=index, purpose=Purpose.CANARIES), self.canaries)
        fresh = draw(stream(seed, trial=index, purpose=Purpose.HELD_OUT), self.held_out)
        return Arm("inserted", 1, inserted, inserted, AllButOne(self.canaries, np.arange(self.canaries))), fresh

    def score_arrays(self, records: Sequence[TrialRecord]) -> dict[str, Any]:
        """See :class:`Design`."""
        arrays: dict[str, Any] = {name: np.array([record.arrays[name] for record in records]) for name in _ARMS}
        failed = np.array([[name in record.failures for name in _ARMS] for record in records])
        return {**arrays, "failed": failed, "neighbours": self.neighbours}

    def perfect_arrays(self, trials: int) -> dict[str, Any]:
        """See :class:`Design`."""
        return {
            "inserted": np.full((trials, self.canaries), PERFECT_SCORE),
            "held_out": np.full((trials, self.held_out), -PERFECT_SCORE),
            "neighbours": self.neighbours,
        }
