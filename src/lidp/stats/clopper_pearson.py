"""Clopper-Pearson: the exact binomial interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp.epsilon_bound import Guarantee
from lidp.stats.binomial import Binomial, beta_quantile
from lidp.stats.citations import CLOPPER_1934


@dataclass(frozen=True)
class ClopperPearson(Binomial):
    """Clopper-Pearson limits of both rates, for one canary per trial.

    Guarantee: finite-sample; the limits never under-cover.
    """

    name: ClassVar[str] = "clopper-pearson"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE
    summary = "Exact binomial limits of the two rates beyond a threshold, for one canary per trial."
    works = (CLOPPER_1934,)

    def lower(self, histogram: NDArray[np.int64], failure_probability: float) -> NDArray[np.float64]:
        return beta_quantile(histogram, failure_probability, successes=0.0, failures=1.0, upper=False)

    def upper(self, histogram: NDArray[np.int64], failure_probability: float) -> NDArray[np.float64]:
        return beta_quantile(histogram, failure_probability, successes=1.0, failures=0.0, upper=True)
