"""Signed ranks: test a privacy curve on many independent canaries of one run by a weighted sum of right guesses.

Every coin is guessed: "in" for the upper half of the scores, "out" for the lower half. The guesses are sorted by how far the
score is from the median, and guess number j gets weight number j of a list that is fixed beforehand. The sum of weights of right
guesses, minus that of wrong ones, is compared with the largest that the curve makes likely: see :mod:`lidp.stats.rank_sum_tail`.
Ranks need no calibration of scores, and the weights use nearly all information: on Gaussian scores the test is about as strong
as the most powerful one that knows everything but the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lidp.arrays import Bools, Floats
from lidp.claim import Direction
from lidp.curves import PrivacyCurve
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Guarantee, Hypothesis
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.citations import DONG_2022, STEINKE_2023
from lidp.stats.claimed_curve import check_neighbours, checked_family, epsilon_after, noise_after
from lidp.stats.curve_family import CurveFamily
from lidp.stats.method import Method, check_direction, check_probabilities, check_scores
from lidp.stats.one_run import order_by_rank

_REFINEMENTS = 6  # bisections between two members of the family of curves


@dataclass(frozen=True)
class SignedRanks(Method):
    """Compare the weighted sum of right guesses about all coins with the largest that the claimed curve makes likely.

    ``log_odds`` says that scores are logarithms of odds already: then guesses are "in" above 0, not above the median.

    Guarantee: finite-sample, for a number of runs that is fixed beforehand: a mechanism is refuted with probability at most β if
    the outputs about different canaries are independent, and each has the claimed privacy curve or a smaller one; scores may be
    any functions of these outputs. The bounds on its noise, and on the ε that the accountant gives for this noise, hold with the
    same β. Assumes that the coins are fair, independent, and unknown to the mechanism except through which canaries were
    inserted. A mechanism that has the curve but whose canaries depend on one another may be refuted.
    """

    curve: PrivacyCurve
    direction: Direction = Direction.BOTH
    log_odds: bool = False

    name: ClassVar[str] = "signed-ranks"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE
    summary = (
        "The weighted sum of right guesses about all coins, against the largest that independent canaries make likely."
    )
    works = (DONG_2022, STEINKE_2023)
    needs_curve: ClassVar[bool] = True
    counts = ("coins", "right")

    def __post_init__(self) -> None:
        check_direction(self)
        if not isinstance(self.curve, PrivacyCurve):
            raise InvalidArgument(f"curve must be a PrivacyCurve, such as GaussianCurve(mu=0.5), got {self.curve!r}")
        if not isinstance(self.log_odds, bool):
            raise InvalidArgument(f"log_odds must be True or False, got {self.log_odds!r}")

    @property
    def assumes_independent_canaries(self) -> bool:
        return True

    @property
    def hypothesis(self) -> Hypothesis:
        """What falls when this method refutes a claim."""
        return Hypothesis.CURVE_BY_CANARY

    def check(self, design: Design, *, sequential: bool = False) -> None:
        if not design.has_coins:
            raise MethodNotApplicable(
                f"{self.name} needs independent fair coins, these scores have none; use a method for inserted and held-out arms, "
                "such as LiftedBetting"
            )
        if sequential:
            raise MethodNotApplicable(
                f"{self.name} ranks all scores before any coin is known, and sequential scores use coins; use coin-wager, or "
                "scores that use no coins"
            )
        check_neighbours(self.curve, design)

    def describe_rates(self, bound: EpsilonBound) -> dict[str, str]:
        return {
            "coins": "coins of all trials, each of which was guessed",
            "right": "guesses that were right",
            "weight_right": "share of the weights of right guesses in all weights",
            "p_value": "largest probability, under the claim, of a share as large as this",
        }

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        from lidp.stats.posterior_law import certainty_law
        from lidp.stats.rank_sum_tail import Weights, tail_bound

        delta, failure_probability = check_probabilities(delta, failure_probability)
        check_scores(self, scores)
        family = checked_family(self.curve, delta)
        right = self._guesses_by_rank(scores)
        weights = Weights.for_law(certainty_law(self.curve), len(right))
        total = float(weights.each() @ (2.0 * right - 1.0))

        def p_value(curve: PrivacyCurve) -> float:
            return tail_bound(total, weights, certainty_law(curve))

        p_of_claim = p_value(self.curve)
        refuted = p_of_claim <= failure_probability
        epsilon, noise = self._search(family, refuted, delta, lambda curve: p_value(curve) <= failure_probability)
        return self.report(
            scores,
            epsilon,
            delta=delta,
            failure_probability=failure_probability,
            rates={
                "coins": len(right),
                "right": int(right.sum()),
                "weight_right": (1 + total / weights.total()) / 2,
                "p_value": p_of_claim,
            },
            assumptions=(
                "coins are fair, independent and hidden from the mechanism",
                "the output about each canary is independent of the others",
            ),
            hypothesis=self.hypothesis,
            curve=self.curve,
            effective_noise=noise,
            fell_at=scores.trials if refuted else None,
        )

    def _search(
        self, family: CurveFamily, refuted: bool, delta: float, rejects: Callable[[PrivacyCurve], bool]
    ) -> tuple[float, float | None]:
        """Return ε and noise of the least noise that is rejected; 0 and None if there is none.

        All hypotheses are tested by the same sum, and each p-value bounds its probability under all mechanisms of the hypothesis.
        Those of a hypothesis with more noise are among them, so every hypothesis may be tested at β, in any order.
        """
        rejected, kept = (family.claimed, len(family)) if refuted else (-1, family.claimed)
        while kept - rejected > 1:
            middle = (rejected + kept) // 2
            rejected, kept = (middle, kept) if rejects(family.curves[middle]) else (rejected, middle)
        epsilon, noise = epsilon_after(family, rejected + 1), noise_after(family, rejected + 1)
        if noise is None or kept == len(family):
            return epsilon, noise
        least = float(family.noise[kept])
        for _ in range(_REFINEMENTS):
            between = math.sqrt(noise * least)
            curve = self.curve.with_noise(between)
            if rejects(curve):
                epsilon, noise = curve.epsilon(delta), between
            else:
                least = between
        return epsilon, noise

    def _guesses_by_rank(self, scores: Scores) -> Bools:
        """Return for each guess, from the least to the most certain one, whether it is right.

        Guesses about coins of failed runs are the least certain ones, and count as wrong.
        """
        values, coins = scores.flips()[0].ravel(), scores.flips()[1].ravel()
        failed = np.isnan(values)
        if failed.all():
            return np.zeros(len(values), np.bool_)
        if self.log_odds:
            centre, upper = 0.0, values > 0
        else:
            centre, upper = float(np.median(values[~failed])), _upper_half(values, failed)
        certainty, guessed_in = {
            Direction.BOTH: (np.abs(values - centre), upper),
            Direction.FORWARD: (values, np.ones_like(upper)),
            Direction.BACKWARD: (-values, np.zeros_like(upper)),
        }[self.direction]
        right: Bools = ((guessed_in == coins) & ~failed)[order_by_rank(np.where(failed, -np.inf, certainty))]
        return right


def _upper_half(values: Floats, failed: Bools) -> Bools:
    """Return which scores are in the upper half by rank. Scores equal to the median may be in either half."""
    order = order_by_rank(np.where(failed, -np.inf, values))
    upper = np.zeros(len(values), np.bool_)
    scored = len(values) - int(failed.sum())
    upper[order[len(order) - scored // 2 :]] = True
    return upper
