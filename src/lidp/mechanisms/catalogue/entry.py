"""``Entry``: a mechanism of the catalogue, with what it claims and what holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lidp import checks
from lidp.pair_target import PairTarget


@dataclass(frozen=True)
class Entry:
    """A mechanism with two neighbouring inputs, and the truth about them.

    Attributes:
        name: its key in the catalogue.
        about: what it does, and if it is wrong, what is wrong, in a line.
        reference: where the mechanism or the mistake is described.
        make: ``make(epsilon, delta)`` is the mechanism as someone would build it who claims this, with a pair of inputs.
        truth: ``truth(epsilon, delta)`` is the smallest ε at which the pair that ``make`` returns is (ε, δ)-indistinguishable in
            both directions, or an upper bound of that; ``math.inf`` where there is none. Other inputs may leak more.
        correct: whether the claim holds, for all neighbouring inputs.
        exact: whether ``truth`` at δ = 0 (for ``needs_delta``: at any δ) is the value itself and not only an upper bound. At other
            δ it is so unless the function that computes it says otherwise.
        needs_delta: whether there is no such mechanism with δ = 0.
        hard: why 200,000 runs may not show that the claim is wrong, at some claims; empty if they should.
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
    """An entry whose inputs are the same for all claims, and which checks the claim it is asked for."""

    def check(epsilon: float, delta: float) -> tuple[float, float]:
        within = checks.probability if needs_delta else checks.delta
        return checks.positive(epsilon=epsilon), within(delta=delta)

    def make(epsilon: float, delta: float) -> PairTarget:
        return PairTarget(mechanism(*check(epsilon, delta)), *pair, name=name)

    def checked_truth(epsilon: float, delta: float) -> float:
        return truth(*check(epsilon, delta))

    return Entry(name, about, reference, make, checked_truth, correct, exact, needs_delta, hard)
