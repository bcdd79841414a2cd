"""Replace-one: the paper's Appendix B.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lidp.arrays import Floats
from lidp.claim import Neighbours
from lidp.designs.design import Draw
from lidp.designs.layout import AllButOne, Arm, Layout
from lidp.designs.two_arms import TwoArms
from lidp.streams import Purpose, stream


@dataclass(frozen=True)
class ReplaceOne(TwoArms):
    """The paper's Appendix B.2: inserted and held-out canaries are scored on the same model."""

    models_per_trial: ClassVar[int] = 1
    neighbours: ClassVar[Neighbours] = Neighbours.REPLACE_ONE  # type: ignore[misc]  # the same for every instance
    label: ClassVar[str] = "replace-one"

    def lay_out(self, draw: Draw, seed: int, index: int) -> Layout:
        """See :class:`Design`.

        The score of a held-out canary may subtract K-1 others, like that of an inserted canary, which leaves itself out: all of D1
        except one, chosen uniformly, since mechanisms may treat records by their position.
        """
        first, fresh = self.draw_arms(draw, seed, index)
        rng = stream(seed, trial=index, purpose=Purpose.LEFT_OUT)
        others = AllButOne(self.canaries, rng.integers(0, self.canaries, self.held_out))
        return Layout(None, [first, Arm("held_out", 1, first.inserted, fresh, others)])

    def lost_arrays(self, layout: Layout) -> tuple[dict[str, Floats], bool]:
        """See :class:`Design`. There is one run, and it has failed."""
        return {arm.name: np.full(len(arm.tested), np.nan) for arm in layout.arms}, False

    def merge_failures(
        self, arrays: dict[str, Floats], failures: dict[str, str]
    ) -> tuple[dict[str, Floats], dict[str, str]]:
        """See :class:`Design`. Both arms share one output: if one arm cannot be scored, nothing is bet on the other."""
        if not failures:
            return arrays, failures
        reason = next(iter(failures.values()))
        return {name: np.full(len(scores), np.nan) for name, scores in arrays.items()}, dict.fromkeys(arrays, reason)
