"""Lifted betting: an anytime-valid, finite-sample bound for leave-one-out and replace-one scores.

For a threshold τ let x be a trial's fraction of inserted and y its fraction of held-out scores ≥ τ. Under (ε, δ)-DP the
payoff D = x - e^ε y - δ has a mean of at most 0 given the past, whatever the dependence between canaries. A gambler who
stakes λ on it, and λ' on the mirrored payoff D' of the backward direction, with λ + λ' ≤ 1/(e^ε + δ), has a wealth
Π(1 + λD + λ'D') that is a nonnegative supermartingale if τ and λ are chosen from lower-index trials only. The
probability that it ever reaches 1/β is at most β. So an ε at which it does is rejected, and the bound is the largest ε of a grid up
to which every ε is rejected: the null hypotheses are nested, so that costs nothing.

A claimed privacy curve is tested in the same way. At a *rung* e the payoff is x - e^e y - h⁺(e), and backward
(1 - y) - e^e (1 - x) - h⁻(e). The rung is chosen from lower-index trials like the threshold. Instead of a grid of ε there is a
family of curves, for more and for less noise than claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lidp.claim import Direction
from lidp.curves import PrivacyCurve
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Guarantee, Hypothesis
from lidp.errors import InvalidScores, MethodNotApplicable
from lidp.rounding import at_least
from lidp.scores import Scores
from lidp.stats.betting import EpsilonGrid, check_grid, describe_wealth
from lidp.stats.citations import PILLUTLA_2023, WAUDBY_SMITH_2024
from lidp.stats.claimed_curve import check_curve, check_neighbours
from lidp.stats.lifted_bets import BLOCK_TRIALS, Bets, Counter
from lidp.stats.method import AnytimeMethod, check_direction, check_probabilities
from lidp.stats.storable import ADDED_LATER
from lidp.stats.two_rates import describe_shares

# When bets are chosen; affects strength only.
_WARM_UP_SCORES = 64  # so that the first candidate thresholds are not taken from a handful of scores
_REFRESH = 1.1  # bets are chosen again each time the number of trials has grown by this factor


@dataclass(frozen=True)
class LiftedBetting(AnytimeMethod):
    """Bet that inserted scores pass a threshold more than e^ε times as often as held-out ones, trial by trial.

    Guarantee: finite-sample and anytime-valid: with probability 1 - β the bound lies below the true ε after *every*
    trial, so it may be watched and the audit stopped at any time. Needs no tuning trials. Canaries of one trial may depend
    on one another in any way. Trials need not be identically distributed: each must be valid given the ones before.

    ``resolution`` and ``largest`` describe the grid of ε. With a ``curve``, there is no grid: the claimed privacy curve is tested,
    and curves of the same mechanism with more or less noise. A mechanism whose curve is the claimed one or a smaller one is
    refuted with probability at most β. The bounds on its noise, and on the ε that the accountant gives for this noise, hold
    with the same β.
    """

    direction: Direction = Direction.BOTH
    resolution: float = 0.01
    largest: float = 10.0
    curve: PrivacyCurve | None = field(default=None, metadata=ADDED_LATER)

    name: ClassVar[str] = "lifted-betting"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE
    summary = "Bets that inserted scores pass a threshold more than e^ε times as often as held-out ones, trial by trial."
    works = (PILLUTLA_2023, WAUDBY_SMITH_2024)

    def __post_init__(self) -> None:
        check_direction(self)
        check_grid(self.resolution, self.largest)
        check_curve(self.curve)

    @property
    def hypothesis(self) -> Hypothesis:
        """What falls when this method refutes a claim."""
        return Hypothesis.POINT if self.curve is None else Hypothesis.CURVE

    @property
    def parameters(self) -> dict[str, Any]:
        plain = super().parameters
        return plain if self.curve is None else {"curve": plain["curve"]}

    def check(self, design: Design, *, sequential: bool = False) -> None:
        if design.has_coins:
            raise MethodNotApplicable("coin-flip scores have no fixed arms; use a method for coins, such as CoinWager")
        check_neighbours(self.curve, design)

    def describe_rates(self, bound: EpsilonBound) -> dict[str, str]:
        return describe_shares(bound.rates) | {
            "wealth": describe_wealth(bound) if self.curve is None else _describe_wealth_against_curve(bound)
        }

    def begin(self, *, delta: float, failure_probability: float) -> LiftedBettingRun:
        """Return a run that takes trials as they finish."""
        delta, failure_probability = check_probabilities(delta, failure_probability)
        return LiftedBettingRun(self, delta, failure_probability)


class LiftedBettingRun:
    """The state of the bets. Trials given one by one or all at once give the same bound, bit for bit."""

    def __init__(self, method: LiftedBetting, delta: float, failure_probability: float) -> None:
        from lidp.stats.lifted_hypotheses import CurveHypotheses, NestedHypotheses, PointHypotheses

        self.method = method
        self.delta = delta
        self.failure_probability = failure_probability
        self._tested: NestedHypotheses
        if method.curve is None:
            grid = EpsilonGrid(method.resolution, method.largest)
            self._tested = PointHypotheses(grid, delta, failure_probability)
        else:
            self._tested = CurveHypotheses(method.curve, delta, failure_probability)
        self._wealth = self._tested.wealth
        self._history: list[Scores] = []
        self._trials = 0
        self._refresh_at = 0
        self._regrid_at = 0
        self._counter: Counter | None = None
        self._bets: Bets | None = None
        self._window = slice(0, 0)

    @property
    def epsilon(self) -> float:
        """Return the bound so far."""
        return self._wealth.epsilon

    def update(self, scores: Scores) -> float:
        """Bet on further trials, in the order of their indices, and return the bound so far."""
        inserted, held_out = scores.arms()
        if self._history and scores.design != self._history[0].design:
            raise InvalidScores(f"the run began with {self._history[0].design}, these trials have {scores.design}")
        if not self._history:
            sizes = inserted.shape[1] + held_out.shape[1]
            self._refresh_at = self._regrid_at = max(self._tested.warm_up_trials, math.ceil(_WARM_UP_SCORES / sizes))
        done = 0
        while done < scores.trials:
            if self._trials == self._refresh_at:
                self._refresh()
            take = min(scores.trials - done, self._refresh_at - self._trials, BLOCK_TRIALS)
            block = scores[done : done + take]
            if self._counter is not None and self._bets is not None:
                counts = self._counter.count(block)
                self._wealth.settle(self._bets.log_growth(counts), self._window, self._trials)
            self._history.append(block)
            self._trials += take
            done += take
        return self.epsilon

    def _refresh(self) -> None:
        """Choose thresholds and stakes from all trials so far."""
        if self._counter is None or self._trials >= self._regrid_at:
            # Further trials make further tails reachable, so candidates are drawn anew at every doubling.
            self._history = [Scores.join(self._history)]
            self._counter = Counter(self._history[0])
            self._regrid_at = 2 * self._trials
        self._bets, self._window = self._tested.choose_bets(self._counter, self.method.direction)
        self._refresh_at = max(self._trials + 1, int(self._trials * _REFRESH))

    def bound(self) -> EpsilonBound:
        """Return the bound on all trials so far, with its path."""
        scores = Scores.join(self._history)
        thresholds: dict[str, float] = {}
        rates: dict[str, float] = {"wealth": self._tested.reported_wealth}
        if self._bets is not None:
            for part, threshold in self._bets.thresholds_in_use().items():
                thresholds[part] = threshold
                for arm, values in zip(("inserted", "held_out"), scores.arms(), strict=True):
                    inside = values >= threshold if part is Direction.FORWARD else values < threshold
                    rates[f"{part}_{arm}"] = float(inside.mean())
        return self.method.report(
            scores,
            self.epsilon,
            delta=self.delta,
            failure_probability=self.failure_probability,
            thresholds=thresholds,
            rates=rates,
            path=self._wealth.path,
            assumptions=("each trial's canaries are fresh and independent of the trials before",),
            **self._tested.curve_fields(),
        )


def _describe_wealth_against_curve(bound: EpsilonBound) -> str:
    """Return what the rate ``wealth`` of a bound on a curve means, for the report."""
    goal = at_least(1 / bound.failure_probability)
    return f"what a stake of 1 against the claimed curve became; a curve is ruled out at {goal}, which is 1/β"
