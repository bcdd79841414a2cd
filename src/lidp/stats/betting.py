"""The base of the two betting methods: the grid of ε, and the step from wealth to a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.epsilon_bound import EpsilonBound
from lidp.errors import InvalidArgument
from lidp.rounding import at_least


def check_grid(resolution: float, largest: float) -> None:
    """Refuse grids that are empty, or so fine that a typing error is likely."""
    if not 1 <= checks.positive(largest=largest) / checks.positive(resolution=resolution) <= 100_000:
        raise InvalidArgument(f"largest must be 1 to 100,000 times resolution, got {largest} and {resolution}")


def describe_wealth(bound: EpsilonBound) -> str:
    """Return what the rate ``wealth`` of a bound means, for the report."""
    against, goal = at_least(bound.epsilon), at_least(1 / bound.failure_probability)
    return f"what a stake of 1 against ε = {against} became; an ε is ruled out at {goal}, which is 1/β"


@dataclass(frozen=True)
class EpsilonGrid:
    """The values of ε that are tested: 0, resolution, 2 resolution, ..., largest."""

    resolution: float
    largest: float

    @cached_property
    def values(self) -> Floats:
        """Return the grid, sorted."""
        steps = math.floor(self.largest / self.resolution + 1e-9)
        # Rounding makes 7 * 0.01 the 0.07 that a user types.
        return np.round(np.arange(steps + 1) * self.resolution, 12)

    def window(self, first: int, largest: float) -> slice:
        """Return the part of the grid from index ``first`` up to the value ``largest``."""
        return slice(first, max(first, int(np.searchsorted(self.values, largest, side="right"))))


class WealthPath:
    """The logarithm of the wealth against nested hypotheses, each of which has an ε, and the bound that it implies.

    A hypothesis is rejected once the wealth against it has reached 1/β; it stays rejected. The bound is the ε of the last one
    before the first that is not rejected, 0 if the first is not.
    """

    def __init__(self, epsilons: Floats, failure_probability: float) -> None:
        self.epsilons = epsilons
        self.goal = math.log(1 / failure_probability)
        self.log_wealth = np.zeros(len(epsilons))
        self.peak = np.zeros(len(epsilons))
        self.rejected = 0
        """number of hypotheses, from the first on, that are rejected"""
        self.steps: tuple[tuple[int, int], ...] = ()
        """(trials seen, hypotheses rejected) at each change"""

    @property
    def path(self) -> tuple[tuple[int, float], ...]:
        """(trials seen, ε) at each change of the bound."""
        return tuple((seen, float(self.epsilons[rejected - 1])) for seen, rejected in self.steps)

    @property
    def epsilon(self) -> float:
        """Return the bound so far."""
        return float(self.epsilons[self.rejected - 1]) if self.rejected else 0.0

    @property
    def wealth(self) -> float:
        """Return the largest wealth reached against the last rejected hypothesis, or against the first if none is rejected."""
        return math.exp(min(self.peak[max(self.rejected - 1, 0)], 700.0))

    def settle(self, log_growth: Floats, window: slice, trials_before: int) -> None:
        """Add the log-growth of further trials (rows) for a window of hypotheses (columns)."""
        if window.start == window.stop:
            return
        # Summing row after row keeps the result independent of how trials are grouped into calls.
        wealth = np.cumsum(np.vstack([self.log_wealth[window], log_growth]), axis=0)[1:]
        peaks = np.maximum.accumulate(np.maximum(wealth, self.peak[window]), axis=0)
        self.log_wealth[window] = wealth[-1]
        self.peak[window] = peaks[-1]
        # Hypotheses below the window are rejected; some just above it may have been, when the window was wider.
        prefix = np.logical_and.accumulate(peaks >= self.goal, axis=1).sum(axis=1) + window.start
        above = np.logical_and.accumulate(self.peak[window.stop :] >= self.goal).sum()
        prefix[prefix == window.stop] += above
        for row in np.flatnonzero(np.diff(prefix, prepend=self.rejected) > 0):
            self.rejected = int(prefix[row])
            self.steps += ((trials_before + int(row) + 1, self.rejected),)
