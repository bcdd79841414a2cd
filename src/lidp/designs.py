"""Who is inserted: the three ways to lay out a trial.

Each design says how many canaries a trial has, how many models it trains, and under which neighbour
relation a violation found with it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lidp import checks
from lidp.claim import Neighbours, neighbours_named


@dataclass(frozen=True)
class LeaveOneOut:
    """The paper's Algorithm 1: two coupled models a trial.

    ``canaries`` scores come from A(D1), where all are inserted; ``held_out`` scores of fresh canaries come
    from A(D0), where D0 is D1 without one canary.
    """

    canaries: int
    held_out: int

    models_per_trial: ClassVar[int] = 2
    neighbours: ClassVar[Neighbours] = Neighbours.ADD_REMOVE
    has_coins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checks.count(canaries=self.canaries)
        checks.count(held_out=self.held_out)

    @property
    def arm_sizes(self) -> tuple[int, ...]:
        """Return how many canaries of a trial are scored in each arm."""
        return (self.canaries, self.held_out)


@dataclass(frozen=True)
class ReplaceOne:
    """The paper's Appendix B.2: inserted and held-out canaries are scored on the same model."""

    canaries: int
    held_out: int

    models_per_trial: ClassVar[int] = 1
    neighbours: ClassVar[Neighbours] = Neighbours.REPLACE_ONE
    has_coins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checks.count(canaries=self.canaries)
        checks.count(held_out=self.held_out)

    @property
    def arm_sizes(self) -> tuple[int, ...]:
        """Return how many canaries of a trial are scored in each arm."""
        return (self.canaries, self.held_out)


@dataclass(frozen=True)
class CoinFlip:
    """Each of ``canaries`` candidates is inserted by a fair coin of its own, fresh in every trial.

    The coins must come from a random stream that the mechanism never sees. For replace-one neighbours
    each coin says which of a pair goes in.
    """

    canaries: int
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    models_per_trial: ClassVar[int] = 1
    has_coins: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.count(canaries=self.canaries)
        object.__setattr__(self, "neighbours", neighbours_named(self.neighbours))

    @property
    def arm_sizes(self) -> tuple[int, ...]:
        """Return how many canaries of a trial are scored: one group, which the coins divide."""
        return (self.canaries,)


Design = LeaveOneOut | ReplaceOne | CoinFlip
