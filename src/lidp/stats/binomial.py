"""What the binomial methods share: one canary a trial, and limits that are quantiles of beta distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lidp.errors import MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.two_rates import TwoRates

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Binomial(TwoRates):
    """A bound from counts of successes among independent trials of one canary."""

    def check(self, scores: Scores) -> None:
        check_one_canary(self.name, scores)
        super().check(scores)


def check_one_canary(name: str, scores: Scores) -> None:
    """Refuse scores in which one model was tested with several canaries."""
    most = scores.canaries if scores.has_coins else max(arm.shape[1] for arm in scores.arms())
    if most > 1:
        remedy = "coin-wager or one-run" if scores.has_coins else "lifted-betting, wilson or bernstein"
        raise MethodNotApplicable(
            f"{name} is a binomial method for 1 canary a trial, there are {most}: canaries of one model are dependent, "
            f"and counting them as independent samples overstates epsilon; use {remedy}"
        )


def beta_quantile(histogram: Ints, tail: float, *, successes: float, failures: float, upper: bool) -> Floats:
    """The point of Beta(k + successes, n - k + failures) beyond which lies ``tail``; 0 or 1 where a parameter is 0."""
    from scipy.special import betainccinv, betaincinv

    a = histogram[:, 1] + successes
    b = histogram[:, 0] + failures
    # The complement has a function of its own: 1 - tail would lose a tiny tail to rounding.
    quantile = (betainccinv if upper else betaincinv)(np.maximum(a, 0.5), np.maximum(b, 0.5), tail)
    return np.where(a == 0, 0.0, np.where(b == 0, 1.0, quantile))
