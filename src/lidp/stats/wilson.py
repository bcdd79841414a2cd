"""Wilson intervals of order 1, 2, 4, 8, ... for exchangeable Bernoulli means (asymptotic)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.epsilon_bound import Guarantee
from lidp.errors import InvalidArgument
from lidp.stats.citations import PILLUTLA_2023, WILSON_1927
from lidp.stats.ordered_rates import OrderedRates
from lidp.stats.xbern import StepOverride, histogram_moments, mean_limit


@dataclass(frozen=True)
class Wilson(OrderedRates):
    """Algorithms 5 to 7 of the paper, and every further power of two, by one recursion.

    ``as_printed`` reproduces the fourth-order algorithm with the paper's misprint, which is not proved to be a
    confidence limit.

    Guarantee: asymptotic in the number of trials; it may fail badly for rates of a few over n.
    """

    name: ClassVar[str] = "wilson"
    guarantee: ClassVar[Guarantee] = Guarantee.ASYMPTOTIC
    summary = "Wilson limits of the two rates beyond a threshold, with the dependence between canaries measured by moments."
    works = (PILLUTLA_2023, WILSON_1927)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.as_printed and self.order != 4:
            raise InvalidArgument(f"as_printed differs from the corrected formula for order 4 only, got order {self.order}")

    @property
    def caveats(self) -> tuple[str, ...]:
        return ("the fourth-order formula as printed, which is not proved",) if self.as_printed else ()

    def limit(self, histogram: Ints, failure_probability: float, *, order: int, upper: bool) -> Floats:
        from scipy.special import ndtri

        canaries = histogram.shape[1] - 1
        quantile = -float(ndtri(failure_probability / order))
        spread = quantile**2 / int(histogram[0].sum())
        steps = {2: _printed_second_step(canaries, spread)} if self.as_printed else None
        return mean_limit(histogram_moments(histogram, order), canaries, spread=spread, slack=0.0, upper=upper, steps=steps)


def _printed_second_step(canaries: int, spread: float) -> StepOverride:
    """The μ_2 step of the paper's Algorithm 7 as printed, with μ̄_3² where x² belongs."""
    pairs = canaries * (canaries - 1)

    def step(mean: Floats, limits: list[Floats]) -> Floats:
        a = 1 + 2 * spread * (2 * canaries - 3) / pairs
        half_b = mean + spread / pairs
        constant = ((canaries - 2) * (canaries - 3) * (limits[4] - limits[3] ** 2) + 4 * (canaries - 2) * limits[3]) / pairs
        c = mean**2 - spread * constant
        return np.clip((half_b + np.sqrt(np.maximum(half_b**2 - a * c, 0))) / a, 0.0, 1.0)

    return step
