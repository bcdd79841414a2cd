"""Turn limits on two rates into a bound on ε: the base of Wilson, Bernstein, Clopper-Pearson and Jeffreys.

Forward, the rejection set is {score ≥ τ}: ε ≥ log((p1 - δ) / p0) with p1 the inserted and p0 the held-out rate.
Backward it is {score < τ} with the arms swapped. Each direction gets an equal part of the failure probability and its
own threshold, and spends half of it on the lower limit of one rate and half on the upper limit of the other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.claim import Direction
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound
from lidp.errors import MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.method import Method, check_direction, check_probabilities, check_scores
from lidp.stats.thresholds import SplitThreshold, ThresholdStrategy, check_strategy
from lidp.stats.xbern import tail_histogram


class Arms(NamedTuple):
    """Inserted and held-out scores, possibly of different numbers of trials."""

    inserted: Floats
    held_out: Floats


def arms_of(scores: Scores) -> Arms:
    """Return the two samples to compare: the arms or, for one coin per trial, the trials of either coin.

    With one canary per trial, the coins split the trials into two independent samples; given the coins, each is an
    ordinary sample of its arm.
    """
    if not scores.has_coins:
        return Arms(*scores.arms())
    values, coins = scores.flips()
    return Arms(values[coins].reshape(-1, 1), values[~coins].reshape(-1, 1))


def samples_of(scores: Scores, direction: Direction = Direction.FORWARD) -> tuple[Floats, Floats]:
    """Return the arm in which the direction's rejection set should be likely, then the other."""
    inserted, held_out = arms_of(scores)
    return (inserted, held_out) if direction is Direction.FORWARD else (held_out, inserted)


class Tails(NamedTuple):
    """For both arms and each threshold, a histogram of how many scores of a trial are in the rejection set."""

    high: Ints
    """of the arm in which the rejection set should be likely"""
    low: Ints
    """of the arm in which it should be unlikely"""


def tails(arms: Arms, thresholds: Floats, direction: Direction) -> Tails:
    """Count the scores of both arms in the rejection set of each threshold."""
    if direction is Direction.FORWARD:
        return Tails(tail_histogram(arms.inserted, thresholds), tail_histogram(arms.held_out, thresholds))
    # {score < τ} is {-score > -τ}; thresholds must stay sorted, so the histograms come out in reverse order.
    mirrored = -thresholds[::-1]
    high = tail_histogram(-arms.held_out, mirrored, strict=True)[::-1]
    low = tail_histogram(-arms.inserted, mirrored, strict=True)[::-1]
    return Tails(high, low)


def rate(histogram: Ints) -> Floats:
    """Return the fraction of scores in the rejection set, per threshold."""
    canaries = histogram.shape[1] - 1
    result: Floats = histogram @ np.arange(canaries + 1) / (histogram[0].sum() * canaries)
    return result


def describe_shares(rates: Iterable[str]) -> dict[str, str]:
    """Return what rates named like ``forward_inserted`` or ``backward_held_out_upper`` mean."""
    return {name: _describe_share(name) for name in rates}


def _describe_share(name: str) -> str:
    if name.endswith(("_lower", "_upper")):
        return f"{name.rpartition('_')[2]} limit of that share"
    side = "below" if name.startswith("backward") else "at or above"
    return f"share of {'held-out' if name.endswith('held_out') else 'inserted'} scores {side} the threshold"


def epsilon_of_rates(high: Floats, low: Floats, delta: float) -> Floats:
    """Return log((high - δ) / low), or 0 where that is negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(high - delta > low, np.log((high - delta) / low), 0.0)


@dataclass(frozen=True)
class TwoRates(Method):
    """A bound from one-sided confidence limits of the two rates."""

    threshold: ThresholdStrategy = field(default=SplitThreshold(), kw_only=True)
    direction: Direction = field(default=Direction.BOTH, kw_only=True)

    def __post_init__(self) -> None:
        check_direction(self)
        check_strategy(self.name, self.threshold)

    @abstractmethod
    def lower(self, histogram: Ints, failure_probability: float) -> Floats:
        """Return the lower confidence limit of the rate, per threshold."""

    @abstractmethod
    def upper(self, histogram: Ints, failure_probability: float) -> Floats:
        """Return the upper confidence limit of the rate, per threshold."""

    def check(self, design: Design, *, sequential: bool = False) -> None:
        if design.has_coins and design.canaries > 1:
            raise MethodNotApplicable(
                f"{self.name} on coin-flip scores needs 1 canary per trial, there are {design.canaries}: how many are "
                "inserted varies and they are dependent; use coin-wager or one-run"
            )

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        delta, failure_probability = check_probabilities(delta, failure_probability)
        check_scores(self, scores)
        share = failure_probability / len(self.direction.parts)
        epsilon = 0.0
        thresholds: dict[str, float] = {}
        rates: dict[str, float] = {}
        for part in self.direction.parts:

            def evidence(arms: Arms, candidates: Floats, allowed: float, part: Direction = part) -> Evidence:
                return self._evidence(arms, candidates, part, delta, allowed)

            best = best_threshold(scores, self.threshold, part, evidence, share)
            epsilon = max(epsilon, best.value)
            thresholds[part] = best.threshold
            rates |= {f"{part}_{name}": value for name, value in best.rates.items()}
        return self.report(
            scores,
            epsilon,
            delta=delta,
            failure_probability=failure_probability,
            thresholds=thresholds,
            rates=rates,
            assumptions=("trials are independent and alike", *self.caveats),
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return what else the bound assumes with these parameters."""
        return ()

    def describe_rates(self, bound: EpsilonBound) -> dict[str, str]:
        return describe_shares(bound.rates)

    def _evidence(self, arms: Arms, thresholds: Floats, part: Direction, delta: float, share: float) -> Evidence:
        counted = tails(arms, thresholds, part)
        lower, upper = self.lower(counted.high, share / 2), self.upper(counted.low, share / 2)
        likely, unlikely = ("inserted", "held_out") if part is Direction.FORWARD else ("held_out", "inserted")
        return epsilon_of_rates(lower, upper, delta), {
            likely: rate(counted.high),
            f"{likely}_lower": lower,
            unlikely: rate(counted.low),
            f"{unlikely}_upper": upper,
        }


Evidence = tuple[Floats, dict[str, Floats]]
"""The strength of the evidence at each threshold, and the rates that it comes from, by name."""


class Best(NamedTuple):
    """The threshold with the strongest evidence, that evidence, and the rates at the threshold."""

    value: float
    threshold: float
    rates: dict[str, float]


def best_threshold(
    scores: Scores,
    strategy: ThresholdStrategy,
    direction: Direction,
    evidence: Callable[[Arms, Floats, float], Evidence],
    failure_probability: float,
) -> Best:
    """Return the best of the thresholds that the strategy chooses.

    ``evidence(arms, thresholds, failure_probability)`` is never called with an empty arm: with one coin per trial, all coins may
    fall alike, and then there is no evidence.
    """

    def objective(tuning: Scores, thresholds: Floats) -> Floats:
        arms = arms_of(tuning)
        return evidence(arms, thresholds, failure_probability)[0] if all(map(len, arms)) else np.zeros(len(thresholds))

    choice = strategy.choose(scores, lambda tuning: samples_of(tuning, direction), objective)
    arms = arms_of(choice.scores)
    if not all(map(len, arms)):
        return Best(0.0, float(choice.thresholds[0]), {})
    values, rates = evidence(arms, choice.thresholds, failure_probability * choice.share)
    index = int(np.argmax(values))
    rates_at_best = {name: float(array[index]) for name, array in rates.items()}
    return Best(float(values[index]), float(choice.thresholds[index]), rates_at_best)
