"""Leave-one-out: the paper's Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lidp.arrays import Floats
from lidp.claim import Neighbours
from lidp.designs.design import Draw
from lidp.designs.layout import Arm, FirstOthers, Layout
from lidp.designs.two_arms import TwoArms

_BEYOND_EVERY_THRESHOLD = 1e100


@dataclass(frozen=True)
class LeaveOneOut(TwoArms):
    """The paper's Algorithm 1: two coupled models per trial.

    ``canaries`` scores come from A(D1), where all are inserted; ``held_out`` scores of fresh canaries come
    from A(D0), where D0 is D1 without one canary.
    """

    models_per_trial: ClassVar[int] = 2
    neighbours: ClassVar[Neighbours] = Neighbours.ADD_REMOVE  # type: ignore[misc]  # the same for every instance
    label: ClassVar[str] = "leave-one-out"

    def lay_out(self, draw: Draw, seed: int, index: int) -> Layout:
        """See :class:`Design`. A held-out canary's score may subtract exactly K-1 others, those of D0."""
        first, fresh = self.draw_arms(draw, seed, index)
        others = FirstOthers(np.full(self.held_out, self.canaries - 1))
        return Layout(None, [first, Arm("held_out", 0, first.inserted[:-1], fresh, others)])

    def lost_arrays(self, layout: Layout) -> tuple[dict[str, Floats], bool]:
        """See :class:`Design`.

        One of the two runs has failed, and it is not known which. Marking both as failed would drop the output of one run whenever
        the other fails, which may depend on the canary: a true claim could be refuted. Instead the inserted canaries score below
        and the held-out canaries above every threshold: the weakest evidence for a leak, in either direction.
        """
        worst = {"inserted": -_BEYOND_EVERY_THRESHOLD, "held_out": _BEYOND_EVERY_THRESHOLD}
        return {arm.name: np.full(len(arm.tested), worst[arm.name]) for arm in layout.arms}, True
