"""The hypotheses that lifted betting tests: (ε, δ)-DP for a grid of ε, or a family of privacy curves.

Both are nested, so they are tested in order, from the most private one on, until the first that is not rejected.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.claim import Direction
from lidp.curves import PrivacyCurve
from lidp.epsilon_bound import Hypothesis
from lidp.stats.betting import EpsilonGrid, WealthPath
from lidp.stats.claimed_curve import checked_family, noise_after
from lidp.stats.lifted_bets import Bets, Counter, Hypotheses, Rates


class NestedHypotheses(ABC):
    """The wealth against each hypothesis, and the bets that are placed against it."""

    warm_up_trials: int
    """trials on which nothing is staked"""

    def __init__(self, epsilons: Floats, failure_probability: float) -> None:
        self.wealth = WealthPath(epsilons, failure_probability)

    @abstractmethod
    def choose_bets(self, counter: Counter, direction: Direction) -> tuple[Bets, slice]:
        """Return bets that the counted trials suggest, and the range of the hypotheses that they are against."""

    @property
    def reported_wealth(self) -> float:
        """What a stake of 1 became against the last rejected hypothesis, or against the first if none is rejected."""
        return self.wealth.wealth

    def curve_fields(self) -> dict[str, Any]:
        """Return the fields of a bound that say what was tested."""
        return {}


class PointHypotheses(NestedHypotheses):
    """(ε, δ)-DP for every ε of a grid."""

    warm_up_trials = 8

    def __init__(self, grid: EpsilonGrid, delta: float, failure_probability: float) -> None:
        super().__init__(grid.values, failure_probability)
        self._grid = grid
        self._delta = delta

    def choose_bets(self, counter: Counter, direction: Direction) -> tuple[Bets, slice]:
        rates = Rates(counter)
        largest_odds = max(rates.largest_odds(part, self._delta) for part in direction.parts)
        window = self._grid.window(self.wealth.rejected, math.log(max(largest_odds, 1.0)))
        return Bets(rates, Hypotheses.points(self._grid.values[window], self._delta), direction), window


class CurveHypotheses(NestedHypotheses):
    """The claimed curve and those of the same mechanism with more or less noise.

    Each could be bet against at several rungs. Only the rung with the largest predicted growth is used, which needs fewer trials
    than the mean of the wealths of all rungs.
    """

    warm_up_trials = (
        2  # claims that are wrong by much fall within 20 trials, and thresholds near the middle need few scores
    )

    def __init__(self, curve: PrivacyCurve, delta: float, failure_probability: float) -> None:
        self._curve = curve
        self._family = checked_family(curve, delta)
        super().__init__(self._family.epsilons, failure_probability)
        largest = np.maximum(self._family.forward, self._family.backward)
        self._usable = ~((largest > 0) & (largest <= curve.least_value))

    def choose_bets(self, counter: Counter, direction: Direction) -> tuple[Bets, slice]:
        family = self._family
        window = slice(self.wealth.rejected, len(family))
        values = (family.rungs, family.forward, family.backward)
        rungs, forward, backward = (array[window].ravel() for array in values)
        bets = Bets(Rates(counter, neglect_excess=False), Hypotheses(np.exp(rungs), forward, backward), direction)
        growth = np.where(self._usable[window], bets.growth.reshape(-1, family.rungs.shape[1]), -np.inf)
        best: Ints = np.argmax(growth, axis=1) + np.arange(len(growth)) * family.rungs.shape[1]
        unusable = ~self._usable[window].any(axis=1)
        bets.keep(best)
        bets.stakes = [np.where(unusable, 0.0, stake) for stake in bets.stakes]
        return bets, window

    @property
    def reported_wealth(self) -> float:
        """What a stake of 1 against the claimed curve became."""
        return math.exp(min(self.wealth.peak[self._family.claimed], 700.0))

    def curve_fields(self) -> dict[str, Any]:
        fell_at = next((seen for seen, rejected in self.wealth.steps if rejected > self._family.claimed), None)
        return {
            "hypothesis": Hypothesis.CURVE,
            "curve": self._curve,
            "effective_noise": noise_after(self._family, self.wealth.rejected),
            "fell_at": fell_at,
        }
