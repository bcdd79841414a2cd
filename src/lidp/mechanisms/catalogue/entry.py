"""``Entry``: a mechanism of the catalogue, with its claim and its true ε."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lidp import checks
from lidp.target import PairTarget


@dataclass(frozen=True)
class Entry:
    """A mechanism with two neighbouring inputs, and their true ε.

    Attributes:
        name: its key in the catalogue.
        about: one line that says what it does and, if it is broken, what is wrong.
        reference: a publication that describes the mechanism or the mistake.
        make: ``make(epsilon, delta)`` returns the mechanism that claims (ε, δ)-DP, with a pair of inputs.
        truth: ``truth(epsilon, delta)`` returns the smallest ε at which the pair of ``make`` is (ε, δ)-indistinguishable in both
            directions, or an upper bound of it; ``math.inf`` if there is none. Other inputs may leak more.
        correct: whether the claim holds for all neighbouring inputs.
        exact: whether ``truth`` at δ = 0 (for ``needs_delta``: at any δ) is exact and not only an upper bound. At other δ it is
            exact unless the function that computes it says otherwise.
        needs_delta: whether the mechanism exists for δ > 0 only.
        hard: why 200,000 runs may fail to refute some claims of a broken mechanism; empty if they should suffice.
    """

    name: str
    about: str
    reference: str
    make: Callable[[float, float], PairTarget]
    truth: Callable[[float, float], float]
    correct: bool
    exact: bool = True
    needs_delta: bool = False
    hard: str = ""


def entry(
    name: str,
    about: str,
    reference: str,
    *,
    mechanism: Callable[[float, float], Callable[..., Any]],
    pair: tuple[Any, Any],
    truth: Callable[[float, float], float],
    correct: bool,
    exact: bool = True,
    needs_delta: bool = False,
    hard: str = "",
) -> Entry:
    """Return an entry whose inputs are the same for all claims, and whose functions check their arguments."""

    def check(epsilon: float, delta: float) -> tuple[float, float]:
        check_delta = checks.probability if needs_delta else checks.delta
        return checks.positive(epsilon=epsilon), check_delta(delta=delta)

    def make(epsilon: float, delta: float) -> PairTarget:
        return PairTarget(mechanism(*check(epsilon, delta)), *pair, name=name)

    def checked_truth(epsilon: float, delta: float) -> float:
        return truth(*check(epsilon, delta))

    return Entry(name, about, reference, make, checked_truth, correct, exact, needs_delta, hard)
