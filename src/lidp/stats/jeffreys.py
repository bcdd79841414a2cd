"""Jeffreys: the binomial interval from the Beta(½, ½) posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp.epsilon_bound import Guarantee
from lidp.stats.binomial import Binomial, beta_quantile
from lidp.stats.citations import BROWN_2001


@dataclass(frozen=True)
class Jeffreys(Binomial):
    """Jeffreys limits of both rates, set to 0 if there was no success and to 1 if there was no failure.

    Guarantee: asymptotic; the coverage oscillates around the stated one.
    """

    name: ClassVar[str] = "jeffreys"
    guarantee: ClassVar[Guarantee] = Guarantee.ASYMPTOTIC
    summary = "Jeffreys limits of the two rates beyond a threshold, for one canary per trial."
    works = (BROWN_2001,)

    def lower(self, histogram: NDArray[np.int64], failure_probability: float) -> NDArray[np.float64]:
        limit = beta_quantile(histogram, failure_probability, successes=0.5, failures=0.5, upper=False)
        return np.where(histogram[:, 1] == 0, 0.0, limit)

    def upper(self, histogram: NDArray[np.int64], failure_probability: float) -> NDArray[np.float64]:
        limit = beta_quantile(histogram, failure_probability, successes=0.5, failures=0.5, upper=True)
        return np.where(histogram[:, 0] == 0, 1.0, limit)
