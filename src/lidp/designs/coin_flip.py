"""Coin flip: a separate fair coin decides for each canary whether it is inserted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.claim import Neighbours
from lidp.designs.design import PERFECT_SCORE, Design, Draw
from lidp.designs.layout import Arm, FirstOthers, Layout
from lidp.designs.trial_record import TrialRecord
from lidp.rounding import counted
from lidp.streams import Purpose, draw_coins, stream

DEFAULT_CANARIES = 64
"""Canaries per trial, if neither a user nor the target says otherwise."""


@dataclass(frozen=True)
class CoinFlip(Design):
    """A separate fair coin decides for each of ``canaries`` canaries whether it is inserted, anew in every trial.

    The coins must come from a random stream that the mechanism never sees. For replace-one neighbours
    each coin decides which canary of a pair is inserted.
    """

    canaries: int
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    held_out: ClassVar[int] = 0  # type: ignore[misc]  # the same for every instance
    models_per_trial: ClassVar[int] = 1
    has_coins: ClassVar[bool] = True
    label: ClassVar[str] = "coin-flip"

    def __post_init__(self) -> None:
        checks.count(canaries=self.canaries)
        object.__setattr__(self, "neighbours", checks.member(Neighbours, neighbours=self.neighbours))

    @property
    def description(self) -> str:
        """See :class:`Design`."""
        return f"{counted(self.canaries, 'canaries')} per trial, each inserted or not by a fair coin"

    @property
    def arm_sizes(self) -> tuple[int, ...]:
        """See :class:`Design`."""
        return (self.canaries,)

    @property
    def array_sizes(self) -> Mapping[str, int]:
        """See :class:`Design`."""
        return {"scores": self.canaries, "coins": self.canaries}

    def lay_out(self, draw: Draw, seed: int, index: int) -> Layout:
        """See :class:`Design`."""
        size = self.canaries
        coins = draw_coins(seed, trial=index, size=size)
        rng = stream(seed, trial=index, purpose=Purpose.CANARIES)
        tested = draw(rng, size)
        if self.neighbours is Neighbours.REPLACE_ONE:
            rivals = draw(rng, size)
            inserted: Any = [tested[k] if coins[k] else rivals[k] for k in range(size)]
            if isinstance(tested, np.ndarray):
                inserted = np.array(inserted)
            # One canary of each pair is inserted whatever the coin, so all pairs of lower index may be subtracted.
            others = FirstOthers(np.arange(size))
        else:
            chosen = np.flatnonzero(coins)
            inserted = tested[chosen] if isinstance(tested, np.ndarray) else [tested[k] for k in chosen]
            others = FirstOthers(np.concatenate([[0], np.cumsum(coins)[:-1]]))
        return Layout(coins.astype(np.float64), [Arm("scores", 1, inserted, tested, others)])

    def lost_arrays(self, layout: Layout) -> tuple[dict[str, Floats], bool]:
        """See :class:`Design`. The coins are known, the scores are not."""
        assert layout.coins is not None  # noqa: S101  # lay_out has set them
        return {"scores": np.full(self.canaries, np.nan), "coins": layout.coins}, False

    def score_arrays(self, records: Sequence[TrialRecord]) -> dict[str, Any]:
        """See :class:`Design`."""
        return {
            "scores": np.array([record.arrays["scores"] for record in records]),
            "coins": np.array([record.arrays["coins"] for record in records]),
            "failed": np.array(["scores" in record.failures for record in records]),
            "neighbours": self.neighbours,
        }

    def perfect_arrays(self, trials: int) -> dict[str, Any]:
        """See :class:`Design`."""
        coins = np.random.default_rng(0).integers(0, 2, (trials, self.canaries))
        return {"scores": PERFECT_SCORE * (2.0 * coins - 1.0), "coins": coins, "neighbours": self.neighbours}

    def check_record(self, record: TrialRecord, seed: int) -> None:
        """See :class:`Design`."""
        super().check_record(record, seed)
        coins = draw_coins(seed, trial=record.index, size=self.canaries)
        if record.arrays["coins"].tobytes() != coins.astype(np.float64).tobytes():
            raise ValueError(f"the coins of trial {record.index} are not those of seed {seed}")
