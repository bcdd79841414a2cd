"""One run (Steinke, Nasr, Jagielski 2023): bound ε by how many of r guesses about m coins were right.

Several runs can be pooled: they are one mechanism of nK coins, each of which affects one run only. Which coins are guessed may
depend on all scores, never on coins, and for δ > 0 *how many* are guessed must be fixed beforehand. Then the number V of
right guesses satisfies P[V ≥ v] ≤ P[B ≥ v] + 2mδ max_i P[v-i ≤ B < v]/i with B ~ Bin(r, e^ε/(1+e^ε)).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Floats
from lidp.claim import Direction
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.citations import STEINKE_2023
from lidp.stats.method import Method, check_direction, check_probabilities, check_scores
from lidp.stats.storable import Storable
from lidp.stats.thresholds import FixedThreshold, SplitThreshold, ThresholdStrategy, UnionThreshold, split_trials
from lidp.streams import Purpose, stream

_COARSE_STEP = 0.05  # every ε up to the bound is checked on this grid before the bound is refined


class GuessStrategy(Storable):
    """A way to choose the coins to guess on."""


@dataclass(frozen=True)
class RankGuesses(GuessStrategy):
    """Guess on this fraction of the coins, those with the most extreme scores.

    The fraction is fixed beforehand, so the number of guesses is too. For both directions half of the guesses are "in" for
    the largest scores and half "out" for the smallest.
    """

    fraction: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", checks.positive(fraction=self.fraction))
        if self.fraction > 1:
            raise InvalidArgument(f"fraction must be at most 1, got {self.fraction}")

    def __str__(self) -> str:
        return f"rank:{self.fraction:g}"


@dataclass(frozen=True)
class Guesses:
    """The outcome of guessing: among ``coins`` coins, ``made`` guesses of which ``right`` were right."""

    coins: int
    made: int
    right: int
    lowest_in: float | None = None
    highest_out: float | None = None


class Outcome(NamedTuple):
    """What the counts of guesses show: a bound, and how many privacy curves of a family are rejected."""

    epsilon: float
    rejected: int = 0


@dataclass(frozen=True)
class GuessCounting(Method):
    """A bound from the number of right guesses. ``threshold`` says on which coins to guess:

    - ``RankGuesses(f)``: on the fraction f with the most extreme scores;
    - ``UnionThreshold(N)``: fractions 1, 1/2, 1/4, ... (N of them) at β/N each; the best counts;
    - ``SplitThreshold(f)``: the best such fraction on the first f of the runs, used on the others;
    - ``FixedThreshold(t)``: on every coin: "in" for scores ≥ t, "out" below.
    """

    threshold: ThresholdStrategy | GuessStrategy = UnionThreshold(8)
    direction: Direction = Direction.BOTH

    counts: ClassVar[tuple[str, ...]] = ("coins", "guesses", "right")

    def __post_init__(self) -> None:
        check_direction(self)

    @abstractmethod
    def epsilon(self, guesses: Guesses, *, delta: float, failure_probability: float) -> float:
        """Return the bound from the counts alone."""

    def evaluate(self, guesses: Guesses, *, delta: float, failure_probability: float) -> Outcome:
        """Return what the counts alone show."""
        return Outcome(self.epsilon(guesses, delta=delta, failure_probability=failure_probability))

    def check(self, design: Design, *, sequential: bool = False) -> None:
        if not design.has_coins:
            raise MethodNotApplicable(
                f"{self.name} needs independent fair coins, these scores have none: inserted and held-out canaries whose "
                "numbers were fixed are not coin flips; use lifted-betting, wilson or bernstein"
            )
        if sequential:
            raise MethodNotApplicable(
                f"{self.name} looks at all scores of a run before any coin, and sequential scores use coins of lower-index "
                "canaries; use coin-wager, or scores that use no coins"
            )
        if isinstance(self.threshold, FixedThreshold) and self.direction is not Direction.BOTH:
            raise MethodNotApplicable(
                f"{self.name} with a fixed threshold in one direction makes a random number of guesses, for which it is "
                "not valid; use RankGuesses(fraction), or both directions"
            )
        if isinstance(self.threshold, UnionThreshold) and not isinstance(self.threshold.grid, int):
            raise MethodNotApplicable(
                f"{self.name} takes a union over numbers of guesses, not over given thresholds; use UnionThreshold(N)"
            )

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        delta, failure_probability = check_probabilities(delta, failure_probability)
        check_scores(self, scores)
        used, options, share = self._options(scores, delta, failure_probability)
        outcomes = [
            self.evaluate(option, delta=delta, failure_probability=failure_probability * share) for option in options
        ]
        best = outcomes.index(max(outcomes))
        guesses = options[best]
        thresholds = {"forward": guesses.lowest_in, "backward": guesses.highest_out}
        return self.report(
            scores,
            outcomes[best].epsilon,
            delta=delta,
            failure_probability=failure_probability,
            thresholds={part: value for part, value in thresholds.items() if value is not None},
            rates={"coins": used.trials * used.canaries, "guesses": guesses.made, "right": guesses.right},
            assumptions=("coins are fair, independent and hidden from the mechanism", *self._family()),
            **self._curve_fields(outcomes[best], scores.trials, delta),
        )

    def _curve_fields(self, outcome: Outcome, trials: int, delta: float) -> dict[str, Any]:
        """Return the fields of the bound that say which privacy curve was tested."""
        return {}

    def _family(self) -> tuple[str, ...]:
        """Return the assumption on the family of privacy curves, if there is one."""
        return ()

    def describe_rates(self, bound: EpsilonBound) -> dict[str, str]:
        return {
            "coins": "coins of all trials that were used",
            "guesses": "coins that were guessed, not abstained from",
            "right": "guesses that were right",
        }

    def _options(self, scores: Scores, delta: float, failure_probability: float) -> tuple[Scores, list[Guesses], float]:
        """Return the trials to use, the outcomes of the ways to guess, and each one's share of the failure probability."""
        match self.threshold:
            case RankGuesses(fraction):
                return scores, [self._guess(scores, fraction)], 1.0
            case FixedThreshold(value):
                values, coins = scores.flips()
                right = int((((values >= value) == coins) & ~np.isnan(values)).sum())
                return scores, [Guesses(coins.size, coins.size, right, value, value)], 1.0
            case UnionThreshold(int(number)):
                fractions = _halvings(number, scores)
                return scores, [self._guess(scores, fraction) for fraction in fractions], 1.0 / len(fractions)
            case SplitThreshold(fraction):
                tuning, rest = split_trials(scores, fraction)
                fractions = _halvings(24, tuning)
                outcomes = [
                    self.evaluate(self._guess(tuning, f), delta=delta, failure_probability=failure_probability)
                    for f in fractions
                ]
                return rest, [self._guess(rest, fractions[outcomes.index(max(outcomes))])], 1.0
            case other:
                raise MethodNotApplicable(f"{self.name} cannot guess by {other!r}; use RankGuesses(fraction)")

    def _guess(self, scores: Scores, fraction: float) -> Guesses:
        values, coins = scores.flips()[0].ravel(), scores.flips()[1].ravel()
        order = order_by_rank(values)
        order = order[~np.isnan(values[order])]
        made = max(1, round(fraction * len(values)))
        n_in = {Direction.FORWARD: made, Direction.BACKWARD: 0, Direction.BOTH: (made + 1) // 2}[self.direction]
        n_out = made - n_in
        # The number of guesses is fixed: those that failed runs leave without a coin to guess count as wrong.
        n_in = min(n_in, len(order))
        n_out = min(n_out, len(order) - n_in)
        guessed_in, guessed_out = order[len(order) - n_in :], order[:n_out]
        return Guesses(
            coins=len(values),
            made=made,
            right=int(coins[guessed_in].sum() + (~coins[guessed_out]).sum()),
            lowest_in=float(values[guessed_in[0]]) if n_in else None,
            highest_out=float(values[guessed_out[-1]]) if n_out else None,
        )


def order_by_rank(values: Floats) -> NDArray[np.intp]:
    """Return the indices that sort the values, with ties in a random order that is the same in every call.

    Ties in index order would follow the coins if the canaries were sorted by coin.
    """
    indices: NDArray[np.intp] = stream(0, trial=0, purpose=Purpose.TIES).permutation(len(values))
    return indices[np.argsort(values[indices], kind="stable")]


def _halvings(number: int, scores: Scores) -> list[float]:
    """Return 1, 1/2, 1/4, ...: at most ``number`` fractions, down to one guess."""
    coins = scores.trials * scores.canaries
    return [0.5**i for i in range(min(number, coins.bit_length()))]


@dataclass(frozen=True)
class OneRun(GuessCounting):
    """The bound of Steinke, Nasr and Jagielski, for one run or several pooled ones.

    Guarantee: finite-sample, for fair, independent coins, and a number of guesses fixed beforehand.
    """

    name: ClassVar[str] = "one-run"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE
    summary = "The number of right guesses about coins, against the most that (ε, δ)-DP makes likely."
    works = (STEINKE_2023,)

    def epsilon(self, guesses: Guesses, *, delta: float, failure_probability: float) -> float:
        def rejected(epsilon: float) -> bool:
            return one_run_p_value(guesses, epsilon, delta) < failure_probability

        return last_rejected(rejected)


def one_run_p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """Return the largest probability that (ε, δ)-DP allows for at least as many right guesses."""
    from scipy.special import bdtrc, gammaln

    made, right = guesses.made, guesses.right
    if right == 0:
        return 1.0
    q = 1 / (1 + math.exp(-epsilon))
    tail = float(bdtrc(right - 1, made, q))
    if delta == 0:
        return tail
    below = np.arange(right - 1, -1, -1)
    log_pmf = gammaln(made + 1) - gammaln(below + 1) - gammaln(made - below + 1)
    log_pmf = log_pmf + below * math.log(q) - (made - below) * math.log1p(math.exp(epsilon))
    excess = float(np.max(np.cumsum(np.exp(log_pmf)) / np.arange(1, right + 1)))
    return min(1.0, tail + 2 * guesses.coins * delta * excess)


def last_rejected(rejected: Callable[[float], bool], largest: float = 50.0) -> float:
    """Return the largest value up to which every value is rejected: a coarse scan from 0, then bisection.

    Scanning from 0 rather than from above makes no use of monotonicity beyond one coarse step.
    """
    if not rejected(0.0):
        return 0.0
    low = 0.0
    while low < largest and rejected(low + _COARSE_STEP):
        low += _COARSE_STEP
    high = low + _COARSE_STEP
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low
