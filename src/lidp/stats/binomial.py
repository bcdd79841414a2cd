"""The base of binomial methods: one canary per trial, and limits that are quantiles of beta distributions."""

from __future__ import annotations

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.designs import Design
from lidp.errors import MethodNotApplicable
from lidp.stats.two_rates import TwoRates


class Binomial(TwoRates):
    """A bound from counts of successes among independent trials of one canary."""

    def check(self, design: Design, *, sequential: bool = False) -> None:
        check_one_canary(self.name, design)
        super().check(design, sequential=sequential)


def check_one_canary(name: str, design: Design) -> None:
    """Refuse designs in which several canaries are scored on one model."""
    most = max(design.arm_sizes)
    if most > 1:
        remedy = "coin-wager or one-run" if design.has_coins else "lifted-betting, wilson or bernstein"
        raise MethodNotApplicable(
            f"{name} is a binomial method for 1 canary per trial, there are {most}: canaries of one model are dependent, "
            f"and counting them as independent samples overstates epsilon; use {remedy}"
        )


def beta_quantile(histogram: Ints, tail: float, *, successes: float, failures: float, upper: bool) -> Floats:
    """Return the point of Beta(k + successes, n - k + failures) beyond which lies ``tail``; 0 or 1 where a parameter is 0."""
    from scipy.special import betainccinv, betaincinv

    a = histogram[:, 1] + successes
    b = histogram[:, 0] + failures
    # The upper quantile has its own function: 1 - tail would lose a tiny tail to rounding.
    quantile = (betainccinv if upper else betaincinv)(np.maximum(a, 0.5), np.maximum(b, 0.5), tail)
    return np.where(a == 0, 0.0, np.where(b == 0, 1.0, quantile))
