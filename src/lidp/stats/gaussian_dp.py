"""Gaussian DP (Nasr et al. 2023): from error rates to the μ of a Gaussian trade-off curve, to ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.claim import Direction
from lidp.curves.gaussian import gaussian_epsilon
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.bernstein import Bernstein
from lidp.stats.citations import NASR_2023
from lidp.stats.clopper_pearson import ClopperPearson
from lidp.stats.method import Method, check_direction, check_probabilities, check_scores
from lidp.stats.thresholds import SplitThreshold, ThresholdStrategy, check_strategy
from lidp.stats.two_rates import Arms, Evidence, TwoRates, best_threshold, describe_shares, rate, tails


@dataclass(frozen=True)
class GaussianDP(Method):
    """A bound on the μ of a Gaussian mechanism from upper limits of its error rates, converted to ε at δ.

    ``interval`` gives the limits: None takes Clopper-Pearson for one canary per trial and second-order Bernstein for more.
    A Gaussian trade-off curve is symmetric, so one threshold serves both directions and neither costs extra.

    Guarantee: conditional: that of the interval, if the mechanism's privacy curve is that of some Gaussian mechanism.
    """

    interval: TwoRates | None = None
    threshold: ThresholdStrategy = SplitThreshold()
    direction: Direction = Direction.BOTH

    name: ClassVar[str] = "gaussian-dp"
    guarantee: ClassVar[Guarantee] = Guarantee.CONDITIONAL
    summary = "Limits of both error rates, turned into the μ of a Gaussian mechanism and its ε at δ."
    works = (NASR_2023,)

    def __post_init__(self) -> None:
        check_direction(self)
        check_strategy(self.name, self.threshold)
        if self.interval is not None and not isinstance(self.interval, TwoRates):
            raise InvalidArgument(f"interval must be a method of rates such as Bernstein(2), got {self.interval!r}")

    def check(self, design: Design, *, sequential: bool = False) -> None:
        if design.has_coins and design.canaries > 1:
            raise MethodNotApplicable(
                f"gaussian-dp on coin-flip scores needs 1 canary per trial, there are {design.canaries}; use one-run-fdp"
            )
        self._interval(design).check(design, sequential=sequential)

    def _interval(self, design: Design) -> TwoRates:
        if self.interval is not None:
            return self.interval
        single = design.has_coins or max(design.arm_sizes) == 1
        return ClopperPearson() if single else Bernstein()

    def describe_rates(self, bound: EpsilonBound) -> dict[str, str]:
        return describe_shares(("inserted", "held_out")) | {
            "mu": "lower limit of the μ of the Gaussian mechanism, which gives ε at δ",
            "false_positive_upper": "upper limit: held-out canaries taken for inserted ones",
            "false_negative_upper": "upper limit: inserted canaries taken for held-out ones",
        }

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        delta, failure_probability = check_probabilities(delta, failure_probability)
        checks.probability(delta=delta)
        check_scores(self, scores)
        interval = self._interval(scores.design)

        def evidence(arms: Arms, thresholds: Floats, share: float) -> Evidence:
            counted = tails(arms, thresholds, Direction.FORWARD)
            false_positive = interval.upper(counted.low, share / 2)
            false_negative = 1 - interval.lower(counted.high, share / 2)
            mu = _mu(false_positive, false_negative)
            return mu, {
                "mu": mu,
                "inserted": rate(counted.high),
                "held_out": rate(counted.low),
                "false_positive_upper": false_positive,
                "false_negative_upper": false_negative,
            }

        best = best_threshold(scores, self.threshold, Direction.FORWARD, evidence, failure_probability)
        return self.report(
            scores,
            gaussian_epsilon(best.value, delta),
            delta=delta,
            failure_probability=failure_probability,
            thresholds={"forward": best.threshold},
            rates=best.rates,
            assumptions=(
                "trials are independent and alike",
                "the privacy curve is that of a Gaussian mechanism (GDP)",
                *(
                    (f"limits from {interval.name}, which is asymptotic",)
                    if interval.guarantee is Guarantee.ASYMPTOTIC
                    else ()
                ),
            ),
        )


def _mu(false_positive: Floats, false_negative: Floats) -> Floats:
    """Return Φ⁻¹(1 - FPR) - Φ⁻¹(FNR), or 0 where the errors do not beat guessing."""
    from scipy.special import ndtri

    useful = false_positive + false_negative < 1
    safe_positive = np.where(useful, false_positive, 0.5)
    safe_negative = np.where(useful, false_negative, 0.5)
    mus: Floats = np.maximum(-ndtri(safe_positive) - ndtri(safe_negative), 0.0)
    return mus
