"""The base of Wilson and Bernstein: limits from moments of exchangeable Bernoulli variables, up to an order."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

from lidp.arrays import Floats, Ints
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound
from lidp.scores import Scores
from lidp.stats.two_rates import TwoRates
from lidp.stats.xbern import check_order


@dataclass(frozen=True)
class OrderedRates(TwoRates):
    """A bound from exchangeable Bernoulli limits of a given order.

    ``order`` is the highest moment by which the dependence between canaries is measured: a power of two, at most the number of
    canaries. None takes 2, the paper's default, or 1 for a single canary.
    """

    order: int | None = None
    as_printed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order is not None:
            check_order(self.order)

    @abstractmethod
    def limit(self, histogram: Ints, failure_probability: float, *, order: int, upper: bool) -> Floats:
        """Return the one-sided limit of the rate, per threshold."""

    def lower(self, histogram: Ints, failure_probability: float) -> Floats:
        return self.limit(histogram, failure_probability, order=self._order(histogram.shape[1] - 1), upper=False)

    def upper(self, histogram: Ints, failure_probability: float) -> Floats:
        return self.limit(histogram, failure_probability, order=self._order(histogram.shape[1] - 1), upper=True)

    def check(self, design: Design, *, sequential: bool = False) -> None:
        super().check(design, sequential=sequential)
        if self.order is not None:
            check_order(self.order, canaries=_fewest_canaries(design))

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        settled = replace(self, order=self._order(_fewest_canaries(scores.design)))
        return super(OrderedRates, settled).bound(scores, delta=delta, failure_probability=failure_probability)

    def _order(self, canaries: int) -> int:
        return min(2, canaries) if self.order is None else self.order


def _fewest_canaries(design: Design) -> int:
    return 1 if design.has_coins else min(design.arm_sizes)
