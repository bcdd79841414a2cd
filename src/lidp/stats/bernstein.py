"""Bernstein intervals of order 1, 2, 4, 8, ... for exchangeable Bernoulli means (finite-sample)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lidp.arrays import Floats, Ints
from lidp.epsilon_bound import Guarantee
from lidp.errors import InvalidArgument
from lidp.stats.citations import PILLUTLA_2023
from lidp.stats.ordered_rates import OrderedRates
from lidp.stats.xbern import StepOverride, histogram_moments, mean_limit, variance_limit


@dataclass(frozen=True)
class Bernstein(OrderedRates):
    """Algorithms 2 to 4 of the paper, and every further power of two, by one recursion.

    Two corrections sharpen the printed algorithms: the factor (K-1)/K in front of μ̄_2 that their proofs have, and
    the linear term log(1/β)/(3n) of the one-sided Bernstein inequality instead of twice that. ``as_printed`` undoes both.

    Guarantee: finite-sample, for independent, identically distributed trials with canaries that depend on one another
    in any exchangeable way.
    """

    name: ClassVar[str] = "bernstein"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE
    summary = (
        "Bernstein limits of the two rates beyond a threshold, with the dependence between canaries measured by moments."
    )
    works = (PILLUTLA_2023,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.as_printed and self.order not in (1, 2, 4):
            raise InvalidArgument(f"as_printed exists for orders 1, 2 and 4, the printed ones, got order {self.order}")

    def limit(self, histogram: Ints, failure_probability: float, *, order: int, upper: bool) -> Floats:
        canaries = histogram.shape[1] - 1
        evidence = math.log(order / failure_probability) / int(histogram[0].sum())
        spread = 2 * evidence
        slack = evidence * (2 / 3 if self.as_printed else 1 / 3)
        steps: dict[int, StepOverride] | None = None
        if self.as_printed and order > 1:
            steps = {1: _printed_first_step(canaries, spread, slack, upper=upper)}
        return mean_limit(
            histogram_moments(histogram, order), canaries, spread=spread, slack=slack, upper=upper, steps=steps
        )


def _printed_first_step(canaries: int, spread: float, slack: float, *, upper: bool) -> StepOverride:
    """The last step of Algorithms 3 and 4 as printed, without the factor (K-1)/K."""

    def step(mean: Floats, limits: list[Floats]) -> Floats:
        shifted = mean + slack if upper else mean - slack
        return variance_limit(shifted, 1 / canaries, limits[2], spread, upper=upper)

    return step
