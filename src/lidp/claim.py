"""What is claimed, about which neighbours, and which of the two inequalities is tested."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lidp import checks
from lidp.errors import InvalidArgument
from lidp.rounding import exact


class Neighbours(StrEnum):
    """The relation under which two data sets are neighbours.

    A bound for one relation is not a bound for the other, so every result names its relation.
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


def neighbours_named(value: object) -> Neighbours:
    """Return the neighbour relation with this name."""
    try:
        return Neighbours(value)  # type: ignore[arg-type]  # any object may be given; an unknown one raises
    except ValueError:
        known = " or ".join(repr(str(relation)) for relation in Neighbours)
        raise InvalidArgument(f"neighbours must be {known}, got {value!r}") from None


class Direction(StrEnum):
    """Which DP inequality is tested.

    ``FORWARD`` is the paper's: P[A(D1) ∈ R] ≤ e^ε P[A(D0) ∈ R] + δ, where D1 has the canary.
    ``BACKWARD`` swaps D0 and D1. ``BOTH`` tests the two at one failure probability, so each test is a little weaker.
    """

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "both"

    @property
    def parts(self) -> tuple[Direction, ...]:
        """The single directions that this one consists of: two for ``BOTH``, else itself."""
        if self is Direction.BOTH:
            return (Direction.FORWARD, Direction.BACKWARD)
        return (self,)


@dataclass(frozen=True)
class Claim:
    """The statement under audit: the mechanism is (ε, δ)-differentially private."""

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.non_negative(epsilon=self.epsilon))
        object.__setattr__(self, "delta", checks.delta(delta=self.delta))
        object.__setattr__(self, "neighbours", neighbours_named(self.neighbours))

    def __str__(self) -> str:
        return f"({exact(self.epsilon)}, {exact(self.delta)})-DP under {self.neighbours} neighbours"
