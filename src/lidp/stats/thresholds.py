"""Ways to choose a threshold that keep a bound valid.

Taking the largest bound over many thresholds on the scores that are then reported is not a bound: its false-alarm
rate was measured at several times the stated one. So there is no such strategy here. Valid are a threshold
fixed beforehand, one tuned on *other trials* (never on other canaries of the same trials, which are dependent), or
several thresholds that share the failure probability.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.storable import Storable


class Candidates(Storable, ABC):
    """The thresholds that a tuning step tries."""

    @abstractmethod
    def __call__(self, likely: Floats, unlikely: Floats) -> Floats:
        """Return sorted candidates, from scores of both arms that the bound will not use.

        ``likely`` is the arm in which the rejection set should be likely: forward, the inserted one.
        """


def _number_of_thresholds(count: object) -> int:
    number = checks.count(count=count)
    if number > 100_000:
        raise InvalidArgument(f"count must be at most 100,000 thresholds, got {number}")
    return number


def _known(*arms: Floats) -> Floats:
    """Return all scores of runs that did not fail, or a zero if there is none, so that there is always a threshold."""
    values = np.concatenate([arm.ravel() for arm in arms])
    values = values[~np.isnan(values)]
    return values if values.size else np.zeros(1)


@dataclass(frozen=True)
class TailQuantiles(Candidates):
    """Quantiles of all scores, denser towards both tails, where the informative thresholds are."""

    count: int = 500

    def __post_init__(self) -> None:
        _number_of_thresholds(self.count)

    def __call__(self, likely: Floats, unlikely: Floats) -> Floats:
        ordered = np.sort(_known(likely, unlikely))
        reach = math.log(max(2 * len(ordered), 4))
        levels = 1 / (1 + np.exp(-reach * np.linspace(-1, 1, self.count))) if self.count > 1 else np.array([0.5])
        indices = np.clip(np.ceil(levels * len(ordered)).astype(np.int64) - 1, 0, len(ordered) - 1)
        return np.unique(ordered[indices])

    def __str__(self) -> str:
        return f"{self.count} tail quantiles"


@dataclass(frozen=True)
class CentralGrid(Candidates):
    """The paper's candidates: equally spaced values between two quantiles of the arm where rejection is likely."""

    count: int = 500
    low: float = 0.1
    high: float = 0.9

    def __post_init__(self) -> None:
        _number_of_thresholds(self.count)
        if not 0 <= self.low < self.high <= 1:
            raise InvalidArgument(f"low and high must satisfy 0 <= low < high <= 1, got {self.low} and {self.high}")

    def __call__(self, likely: Floats, unlikely: Floats) -> Floats:
        known = _known(likely)
        low, high = np.quantile(known if known.size else _known(unlikely), (self.low, self.high))
        steps = np.linspace(0, 1, self.count)
        return np.unique(low * (1 - steps) + high * steps)

    def __str__(self) -> str:
        return f"{self.count} values between quantiles {self.low:g} and {self.high:g}"


@dataclass(frozen=True)
class Choice:
    """The decision of a strategy: thresholds, each at ``share`` of the failure probability, and the trials to bound on."""

    thresholds: Floats
    scores: Scores
    share: float


Samples = Callable[[Scores], tuple[Floats, Floats]]
"""Returns the scores of trials in two arms: first the one in which the rejection set should be likely."""

Objective = Callable[[Scores, Floats], Floats]
"""Returns the bound that the method would report on the given scores, for each of the given thresholds."""


class ThresholdStrategy(Storable, ABC):
    """A way to choose thresholds."""

    @abstractmethod
    def choose(self, scores: Scores, samples: Samples, objective: Objective) -> Choice:
        """Choose thresholds. ``samples`` returns the scores of given trials by arm, ``objective`` their bounds."""


@dataclass(frozen=True)
class FixedThreshold(ThresholdStrategy):
    """A threshold that was fixed before the scores were seen."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", checks.finite(threshold=self.value))

    def choose(self, scores: Scores, samples: Samples, objective: Objective) -> Choice:
        return Choice(np.array([self.value]), scores, 1.0)

    def __str__(self) -> str:
        return f"fixed:{self.value!r}"


@dataclass(frozen=True)
class SplitThreshold(ThresholdStrategy):
    """Tune on the first ``fraction`` of the trials, bound on the others. Splits by trial, never by canary."""

    fraction: float = 0.5
    candidates: Candidates = field(default_factory=TailQuantiles)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", checks.probability(fraction=self.fraction))

    def choose(self, scores: Scores, samples: Samples, objective: Objective) -> Choice:
        tuning, rest = split_trials(scores, self.fraction)
        grid = self.candidates(*samples(tuning))
        return Choice(grid[[int(np.argmax(objective(tuning, grid)))]], rest, 1.0)

    def __str__(self) -> str:
        return f"split:{self.fraction:g} over {self.candidates}"


@dataclass(frozen=True)
class UnionThreshold(ThresholdStrategy):
    """Several thresholds at once, each at an equal share of the failure probability; the best one counts.

    ``grid`` is a sequence of thresholds fixed beforehand, or a number N: then N quantiles are taken from the first
    ``pilot`` fraction of the trials, which the bound does not use. (A grid taken from the scores that are bounded
    would not be fixed beforehand.)
    """

    grid: tuple[float, ...] | int = 16
    pilot: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.grid, (int, float, np.number)):
            object.__setattr__(self, "grid", _number_of_thresholds(self.grid))
        else:
            grid = tuple(checks.finite(threshold=value) for value in self.grid)
            if not grid:
                raise InvalidArgument("grid must hold at least one threshold, got none")
            object.__setattr__(self, "grid", tuple(sorted(set(grid))))
        object.__setattr__(self, "pilot", checks.probability(pilot=self.pilot))

    def choose(self, scores: Scores, samples: Samples, objective: Objective) -> Choice:
        if isinstance(self.grid, tuple):
            return Choice(np.array(self.grid), scores, 1.0 / len(self.grid))
        tuning, rest = split_trials(scores, self.pilot)
        grid = TailQuantiles(self.grid)(*samples(tuning))
        return Choice(grid, rest, 1.0 / len(grid))

    def __str__(self) -> str:
        if isinstance(self.grid, int):
            return f"union:{self.grid} from the first {self.pilot:g} of the trials"
        return f"union:{self.grid}"


def check_strategy(name: str, threshold: object) -> None:
    """Raise ``InvalidArgument``, naming the method, if ``threshold`` is no threshold strategy."""
    if not isinstance(threshold, ThresholdStrategy):
        raise InvalidArgument(
            f"{name} cannot choose its threshold by {threshold}; use FixedThreshold, SplitThreshold or UnionThreshold"
        )


def split_trials(scores: Scores, fraction: float) -> tuple[Scores, Scores]:
    """Return the first ``fraction`` of the trials and the others, at least one trial each."""
    if scores.trials < 2:
        raise MethodNotApplicable(
            f"a split by trial needs at least 2 trials, there is {scores.trials}; "
            "fix the threshold beforehand (FixedThreshold), as canaries of one trial are not independent"
        )
    cut = min(max(round(scores.trials * fraction), 1), scores.trials - 1)
    return scores[:cut], scores[cut:]
