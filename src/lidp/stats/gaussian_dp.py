"""Gaussian DP (Nasr et al. 2023): from error rates to the μ of a Gaussian trade-off curve, to ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.claim import Direction
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.bernstein import Bernstein
from lidp.stats.clopper_pearson import ClopperPearson
from lidp.stats.gaussian_curve import gaussian_epsilon
from lidp.stats.method import Method, check_direction, check_probabilities
from lidp.stats.thresholds import SplitThreshold, ThresholdStrategy, check_strategy
from lidp.stats.two_rates import Arms, TwoRates, arms_of, rate, samples_of, tails

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianDP(Method):
    """A bound on the μ of a Gaussian mechanism from upper limits of its error rates, converted to ε at δ.

    ``interval`` gives the limits: None takes Clopper-Pearson for one canary a trial and second-order Bernstein for more.
    A Gaussian trade-off curve is symmetric, so one threshold serves both directions and neither costs extra.

    Guarantee: conditional: that of the interval, if the mechanism's privacy curve is that of some Gaussian mechanism.
    """

    interval: TwoRates | None = None
    threshold: ThresholdStrategy = SplitThreshold()
    direction: Direction = Direction.BOTH

    name: ClassVar[str] = "gaussian-dp"
    guarantee: ClassVar[Guarantee] = Guarantee.CONDITIONAL

    def __post_init__(self) -> None:
        check_direction(self)
        check_strategy(self.name, self.threshold)

    def check(self, scores: Scores) -> None:
        if scores.has_coins and scores.canaries > 1:
            raise MethodNotApplicable(
                f"gaussian-dp on coin-flip scores needs 1 canary a trial, there are {scores.canaries}; use one-run-fdp"
            )
        self._interval(scores).check(scores)

    def _interval(self, scores: Scores) -> TwoRates:
        if self.interval is not None:
            return self.interval
        single = scores.has_coins or all(arm.shape[1] == 1 for arm in scores.arms())
        return ClopperPearson() if single else Bernstein()

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        delta, failure_probability = check_probabilities(delta, failure_probability)
        checks.probability(delta=delta)
        self.check(scores)
        interval = self._interval(scores)

        def error_limits(arms: Arms, thresholds: Floats, share: float) -> tuple[Floats, Floats]:
            if not len(arms.inserted) or not len(arms.held_out):
                return np.ones(len(thresholds)), np.ones(len(thresholds))
            counted = tails(arms, thresholds, Direction.FORWARD)
            return interval.upper(counted.low, share / 2), 1 - interval.lower(counted.high, share / 2)

        def objective(some: Scores, thresholds: Floats) -> Floats:
            return _mu(*error_limits(arms_of(some), thresholds, failure_probability))

        choice = self.threshold.choose(scores, samples_of, objective)
        arms = arms_of(choice.scores)
        false_positive, false_negative = error_limits(arms, choice.thresholds, failure_probability * choice.share)
        mus = _mu(false_positive, false_negative)
        best = int(np.argmax(mus))
        at_best = choice.thresholds[[best]]
        observed = tails(arms, at_best, Direction.FORWARD) if len(arms.inserted) and len(arms.held_out) else None
        return self.report(
            scores,
            gaussian_epsilon(float(mus[best]), delta),
            delta=delta,
            failure_probability=failure_probability,
            thresholds={"forward": float(at_best[0])},
            rates={
                **({"inserted": rate(observed.high)[0], "held_out": rate(observed.low)[0]} if observed else {}),
                "false_positive_upper": false_positive[best],
                "false_negative_upper": false_negative[best],
                "mu": mus[best],
            },
            assumptions=("trials are independent and alike", "the privacy curve is that of a Gaussian mechanism (GDP)"),
        )


def _mu(false_positive: Floats, false_negative: Floats) -> Floats:
    """Φ⁻¹(1 - FPR) - Φ⁻¹(FNR), 0 where the errors do not beat guessing."""
    from scipy.special import ndtri

    useful = false_positive + false_negative < 1
    safe_positive = np.where(useful, false_positive, 0.5)
    safe_negative = np.where(useful, false_negative, 0.5)
    mus: Floats = np.maximum(-ndtri(safe_positive) - ndtri(safe_negative), 0.0)
    return mus
