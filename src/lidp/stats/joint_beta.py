"""Joint beta (Zanella-Béguelin et al. 2023): a credible bound from the posterior of both error rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.claim import Direction
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.scores import Scores
from lidp.stats.binomial import check_one_canary
from lidp.stats.citations import ZANELLA_BEGUELIN_2023
from lidp.stats.method import Method, check_direction, check_probabilities, check_scores
from lidp.stats.thresholds import SplitThreshold, ThresholdStrategy, check_strategy
from lidp.stats.two_rates import Arms, Evidence, best_threshold, describe_shares, rate, tails

_NODES = 256
_LARGEST = 30.0


@dataclass(frozen=True)
class JointBeta(Method):
    """The β-quantile of ε under independent Jeffreys posteriors of the inserted and the held-out rate.

    One threshold serves both directions: the posterior of the larger of the two ε is used.

    Guarantee: credible: a posterior probability under a prior, for comparison with the literature; *not* a bound that
    fails with probability at most β.
    """

    threshold: ThresholdStrategy = SplitThreshold()
    direction: Direction = Direction.BOTH

    name: ClassVar[str] = "joint-beta"
    guarantee: ClassVar[Guarantee] = Guarantee.CREDIBLE
    summary = "A quantile of the posterior distribution of ε, from Jeffreys priors on the two rates beyond a threshold."
    works = (ZANELLA_BEGUELIN_2023,)

    def __post_init__(self) -> None:
        check_direction(self)
        check_strategy(self.name, self.threshold)

    def check(self, design: Design, *, sequential: bool = False) -> None:
        check_one_canary(self.name, design)

    def describe_rates(self, bound: EpsilonBound) -> dict[str, str]:
        return describe_shares(bound.rates)

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        delta, failure_probability = check_probabilities(delta, failure_probability)
        check_scores(self, scores)

        def evidence(arms: Arms, thresholds: Floats, share: float) -> Evidence:
            counted = tails(arms, thresholds, Direction.FORWARD)
            epsilons = credible_epsilon(counted.high, counted.low, delta, share, self.direction)
            return epsilons, {"inserted": rate(counted.high), "held_out": rate(counted.low)}

        best = best_threshold(scores, self.threshold, Direction.FORWARD, evidence, failure_probability)
        return self.report(
            scores,
            best.value,
            delta=delta,
            failure_probability=failure_probability,
            thresholds={"forward": best.threshold},
            rates=best.rates,
            assumptions=("trials are independent and alike", "Jeffreys priors on both rates"),
        )


def credible_epsilon(high: Ints, low: Ints, delta: float, level: float, direction: Direction) -> Floats:
    """The ``level``-quantile of ε, per row of the (failures, successes) counts of inserted and held-out trials.

    P(ε(p1, p0) ≤ e) = E over p0 of P(p1 ≤ the largest p1 compatible with e), by quadrature over the log-odds of the
    quantile of p0, so that both tails are resolved for a level as small as wanted.
    """
    from scipy.special import betainc, betainccinv, betaincinv, expit

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    reach = 12.0 - np.log(level)
    below_u, above_u = expit(reach * nodes), expit(-reach * nodes)
    weights = weights * reach * below_u * above_u
    a, b = low[:, [1]] + 0.5, low[:, [0]] + 0.5
    held_out = np.where(below_u < 0.5, betaincinv(a, b, below_u), betainccinv(a, b, above_u))
    parts = direction.parts

    def cumulative(epsilon: Floats) -> Floats:
        e = np.exp(epsilon)[:, None]
        largest = np.ones_like(held_out)
        if Direction.FORWARD in parts:
            largest = np.minimum(largest, e * held_out + delta)
        if Direction.BACKWARD in parts:
            largest = np.minimum(largest, 1 - (1 - held_out - delta) / e)
        result: Floats = betainc(high[:, [1]] + 0.5, high[:, [0]] + 0.5, np.clip(largest, 0, 1)) @ weights
        return result

    below, above = np.zeros(len(high)), np.full(len(high), _LARGEST)
    for _ in range(48):
        middle = (below + above) / 2
        under = cumulative(middle) <= level
        below, above = np.where(under, middle, below), np.where(under, above, middle)
    return below
