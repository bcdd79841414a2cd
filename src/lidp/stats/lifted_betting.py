"""Lifted betting: an anytime-valid, finite-sample bound for leave-one-out and replace-one scores.

For a threshold τ let x be a trial's fraction of inserted and y its fraction of held-out scores ≥ τ. Under (ε, δ)-DP the
payoff D = x - e^ε y - δ has a mean of at most 0 given the past, whatever the dependence between canaries. A gambler who
stakes λ on it, and λ' on the mirrored payoff D' of the backward direction, with λ + λ' ≤ 1/(e^ε + δ), has a wealth
Π(1 + λD + λ'D') that is a nonnegative supermartingale if τ and λ are chosen from lower-index trials only. It reaches
1/β with probability at most β, ever. So an ε at which it does is rejected, and the bound is the largest ε of a grid up
to which every ε is rejected: the null hypotheses are nested, so that costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lidp.claim import Direction
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidScores
from lidp.scores import Scores
from lidp.stats.betting import EpsilonGrid, WealthPath, check_grid
from lidp.stats.lifted_bets import BLOCK_TRIALS, Bets, Counter
from lidp.stats.method import AnytimeMethod, check_direction, check_probabilities

# When bets are chosen; affects strength only.
_WARM_UP_TRIALS = 8
_WARM_UP_SCORES = 64  # so that the first candidate thresholds are not taken from a handful of scores
_REFRESH = 1.1  # bets are chosen again each time the number of trials has grown by this factor


@dataclass(frozen=True)
class LiftedBetting(AnytimeMethod):
    """Bets on "inserted scores exceed a threshold more often than e^ε times held-out ones", trial by trial.

    Guarantee: finite-sample and anytime-valid: with probability 1 - β the bound lies below the true ε after *every*
    trial, so it may be watched and the audit stopped at will. Needs no tuning trials. Canaries of one trial may depend
    on one another in any way; trials need not even be alike, only each valid given the ones before.

    ``resolution`` and ``largest`` describe the grid of ε.
    """

    direction: Direction = Direction.BOTH
    resolution: float = 0.01
    largest: float = 10.0

    name: ClassVar[str] = "lifted-betting"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE

    def __post_init__(self) -> None:
        check_direction(self)
        check_grid(self.resolution, self.largest)

    def check(self, scores: Scores) -> None:
        super().check(scores)
        scores.arms()

    def begin(self, *, delta: float, failure_probability: float) -> LiftedBettingRun:
        """A run that takes trials as they come."""
        delta, failure_probability = check_probabilities(delta, failure_probability)
        return LiftedBettingRun(self, delta, failure_probability)


class LiftedBettingRun:
    """The gambler's memory. Feeding trials one by one or all at once gives the same bound, bit for bit."""

    def __init__(self, method: LiftedBetting, delta: float, failure_probability: float) -> None:
        self.method = method
        self.delta = delta
        self.failure_probability = failure_probability
        self._wealth = WealthPath(EpsilonGrid(method.resolution, method.largest), failure_probability)
        self._history: list[Scores] = []
        self._trials = 0
        self._refresh_at = 0
        self._regrid_at = 0
        self._counter: Counter | None = None
        self._bets: Bets | None = None

    @property
    def epsilon(self) -> float:
        """The bound so far."""
        return self._wealth.epsilon

    def update(self, scores: Scores) -> float:
        """Bet on further trials, in their order; returns the bound so far."""
        inserted, held_out = scores.arms()
        if self._history and scores.design != self._history[0].design:
            raise InvalidScores(f"the run began with {self._history[0].design}, these trials have {scores.design}")
        if not self._history:
            sizes = inserted.shape[1] + held_out.shape[1]
            self._refresh_at = self._regrid_at = max(_WARM_UP_TRIALS, math.ceil(_WARM_UP_SCORES / sizes))
        done = 0
        while done < scores.trials:
            if self._trials == self._refresh_at:
                self._refresh()
            take = min(scores.trials - done, self._refresh_at - self._trials, BLOCK_TRIALS)
            block = scores[done : done + take]
            if self._counter is not None and self._bets is not None:
                counts = self._counter.count(block)
                self._wealth.settle(self._bets.log_growth(counts), self._bets.window, self._trials)
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
        self._bets = Bets(self._counter, self._wealth, self.delta, self.method.direction)
        self._refresh_at = max(self._trials + 1, int(self._trials * _REFRESH))

    def bound(self) -> EpsilonBound:
        """The bound on all trials so far, with its path."""
        scores = Scores.join(self._history)
        thresholds: dict[str, float] = {}
        rates: dict[str, float] = {"wealth": self._wealth.wealth}
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
        )
