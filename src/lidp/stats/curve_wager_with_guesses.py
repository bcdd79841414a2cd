"""The curve wager together with a count of guesses, for audits of one run or two.

With few runs of many canaries each, neither method is always the stronger one: the wager has to stay within its caps, and counting
guesses ignores how certain each of them was. Let W be the wager's wealth and p the p-value of the count. Both W and
1[p ≤ β/2]/(β/2) have a mean of at most 1 under the claim, so ½W + ½·1[p ≤ β/2]/(β/2) has too, and it reaches 1/β with
probability at most β. It does so where p ≤ β/2, or where W reaches 2/β, which may also happen before the last run. In other words,
each test has half of the failure probability.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from lidp.claim import Direction
from lidp.curves import PrivacyCurve
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Guarantee, Hypothesis
from lidp.scores import Scores
from lidp.stats.curve_wager import CurveWager
from lidp.stats.method import Method, check_direction, check_probabilities, check_scores
from lidp.stats.one_run import GuessStrategy
from lidp.stats.one_run_fdp import OneRunFDP
from lidp.stats.planned_guesses import PlannedGuesses
from lidp.stats.thresholds import ThresholdStrategy


@dataclass(frozen=True)
class CurveWagerWithGuesses(Method):
    """Test a privacy curve by a wager on every coin and by the number of right guesses, each at half of the failure probability.

    ``threshold`` says on which coins to guess, as for :class:`OneRunFDP`; by default the claim decides how many. With
    ``log_odds``, scores are predictions already.

    Guarantee: finite-sample, for a number of runs that is fixed beforehand: a mechanism whose privacy curve is the claimed one
    or a smaller one is refuted with probability at most β, whatever the dependence between canaries. The bounds on its noise,
    and on the ε that the accountant gives for this noise, hold with the same β. Assumes that the coins are fair, independent, and
    unknown to the mechanism except through which canaries were inserted. It is not anytime-valid: the count of guesses is looked
    at once, after the last run.
    """

    curve: PrivacyCurve
    threshold: ThresholdStrategy | GuessStrategy = field(default_factory=PlannedGuesses)
    direction: Direction = Direction.BOTH
    log_odds: bool = False

    name: ClassVar[str] = "curve-wager-with-guesses"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE
    needs_curve: ClassVar[bool] = True
    summary = (
        "A wager on every coin against the claimed privacy curve, and the number of right guesses, at half the risk each."
    )
    works = (*CurveWager.works, *OneRunFDP.works)
    counts = ("coins", "guesses", "right")

    def __post_init__(self) -> None:
        check_direction(self)
        _ = self.wager, self.guess_count  # which check the parameters

    @property
    def wager(self) -> CurveWager:
        """The first of the two tests."""
        return CurveWager(self.curve, direction=self.direction, log_odds=self.log_odds)

    @property
    def guess_count(self) -> OneRunFDP:
        """The second of the two tests."""
        return OneRunFDP(self.threshold, direction=self.direction, curve=self.curve)

    @property
    def hypothesis(self) -> Hypothesis:
        """What falls when this method refutes a claim."""
        return Hypothesis.CURVE

    def check(self, design: Design, *, sequential: bool = False) -> None:
        self.wager.check(design, sequential=sequential)
        self.guess_count.check(design, sequential=sequential)

    def describe_rates(self, bound: EpsilonBound) -> dict[str, str]:
        return {
            **self.guess_count.describe_rates(bound),
            "wealth": "mean wealth of the gamblers who bet against the claimed curve, from 1 at the start",
        }

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        delta, failure_probability = check_probabilities(delta, failure_probability)
        check_scores(self, scores)
        by_wager = self.wager.bound(scores, delta=delta, failure_probability=failure_probability / 2)
        by_count = self.guess_count.bound(scores, delta=delta, failure_probability=failure_probability / 2)
        noise = [part.effective_noise for part in (by_wager, by_count) if part.effective_noise is not None]
        fell = by_wager.fell_at is not None or by_count.fell_at is not None
        return self.report(
            scores,
            max(by_wager.epsilon, by_count.epsilon),
            delta=delta,
            failure_probability=failure_probability,
            thresholds=by_count.thresholds,
            rates={**by_count.rates, "wealth": by_wager.rates["wealth"]},
            assumptions=by_wager.assumptions,
            hypothesis=self.hypothesis,
            curve=self.curve,
            effective_noise=min(noise, default=None),
            fell_at=scores.trials if fell else None,
        )
