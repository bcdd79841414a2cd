"""One run against a whole privacy curve (Mahloujifar, Melis, Chaudhuri 2024)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from lidp import checks
from lidp.citations import MAHLOUJIFAR_2024
from lidp.claim import Direction
from lidp.curves import PrivacyCurve
from lidp.curves.gaussian import gaussian_epsilon
from lidp.epsilon_bound import Guarantee, Hypothesis
from lidp.stats.claimed_curve import check_curve, checked_family, epsilon_after, noise_after
from lidp.stats.guess_trade_off import trade_off_of
from lidp.stats.one_run import GuessCounting, Guesses, Outcome, last_rejected


@dataclass(frozen=True)
class OneRunFDP(GuessCounting):
    """Rejects privacy curves by the number of right guesses: the claimed ``curve``, or Gaussian ones if none is given.

    Guarantee: with a ``curve``, finite-sample, for fair, independent coins and a number of guesses and of runs that are fixed
    beforehand: a mechanism whose privacy curve is the claimed one or a smaller one is refuted with probability at most β, whatever
    the dependence between canaries. The bounds on its noise, and on the ε that the accountant gives for this noise, hold with the
    same β. Without a curve, conditional: μ-GDP is rejected for growing μ, and the last μ is converted to ε at δ, which is
    finite-sample if the mechanism's privacy curve is that of some Gaussian mechanism; one with another curve may be (ε, δ)-DP at
    the reported ε.
    """

    curve: PrivacyCurve | None = None

    name: ClassVar[str] = "one-run-fdp"
    guarantee: ClassVar[Guarantee] = Guarantee.CONDITIONAL
    summary = "The number of right guesses about coins, against the most that a privacy curve makes likely."
    works = (MAHLOUJIFAR_2024,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_curve(self.curve)
        if self.curve is not None:
            object.__setattr__(self, "guarantee", Guarantee.FINITE_SAMPLE)

    @property
    def hypothesis(self) -> Hypothesis:
        """What falls when this method refutes a claim."""
        return Hypothesis.POINT if self.curve is None else Hypothesis.CURVE

    def epsilon(self, guesses: Guesses, *, delta: float, failure_probability: float) -> float:
        return self.evaluate(guesses, delta=delta, failure_probability=failure_probability).epsilon

    def evaluate(self, guesses: Guesses, *, delta: float, failure_probability: float) -> Outcome:
        if self.curve is None:
            checks.probability(delta=delta)
            mu = last_rejected(lambda value: rejects_gaussian(guesses, value, failure_probability))
            return Outcome(gaussian_epsilon(mu, delta))
        family = checked_family(self.curve, delta)
        rejected = 0
        while rejected < len(family) and rejects_curve(
            guesses, family.curves[rejected], failure_probability, self.direction
        ):
            rejected += 1
        return Outcome(epsilon_after(family, rejected), rejected)

    def _curve_fields(self, outcome: Outcome, trials: int, delta: float) -> dict[str, Any]:
        if self.curve is None:
            return {}
        family = checked_family(self.curve, delta)
        return {
            "hypothesis": self.hypothesis,
            "curve": self.curve,
            "effective_noise": noise_after(family, outcome.rejected),
            "fell_at": trials if outcome.rejected > family.claimed else None,
        }

    def _family(self) -> tuple[str, ...]:
        return ("the privacy curve is that of a Gaussian mechanism (GDP)",) if self.curve is None else ()


def rejects_gaussian(guesses: Guesses, mu: float, failure_probability: float) -> bool:
    """Return whether at least ``right`` right guesses are too many for any μ-GDP mechanism."""
    from scipy.special import ndtr, ndtri

    return _rejects(guesses, lambda right: float(ndtr(ndtri(min(right, 1.0)) - mu)), 1.0, failure_probability)


def rejects_curve(
    guesses: Guesses, curve: PrivacyCurve, failure_probability: float, direction: Direction = Direction.BOTH
) -> bool:
    """Return whether at least ``right`` right guesses are too many for any mechanism with this privacy curve.

    Guarantee: finite-sample: for a mechanism with this curve or a smaller one, True with probability at most the given one.
    """
    trade_off = trade_off_of(curve, direction)
    return _rejects(guesses, trade_off.least_wrong, trade_off.largest, failure_probability)


def _rejects(guesses: Guesses, least_wrong: Callable[[float], float], largest: float, failure_probability: float) -> bool:
    """Return whether at least ``right`` right guesses have a probability below the failure probability.

    Suppose that they have not. Let p_j be the probability of exactly j right guesses, x_i the mean over coins of the probability
    that the guess is right and at least i are, and y_i that of "the guess is wrong and at least i are right". They are sums over
    j ≥ i of j·p_j and (made - j)·p_j, divided by the number of coins. A guess that is one of i + 1 right ones becomes wrong if its
    coin changes, and leaves i right ones; so y_i is at least ``least_wrong(x_{i+1})``. From the observed number downward, each p_i
    is made as small as this allows, which makes the requirements on the lower ones as small as possible too. If the p_i add up
    to more than 1, there is no such mechanism.
    """
    made, coins = guesses.made, guesses.coins
    right = failure_probability * guesses.right / coins
    wrong = failure_probability * (made - guesses.right) / coins
    for i in range(guesses.right - 1, -1, -1):
        if right > largest:
            return True
        needed = least_wrong(right)
        if needed <= wrong:
            return False  # nothing changes any more
        right, wrong = right + i / (made - i) * (needed - wrong), needed
        if right + wrong > made / coins:
            return True
    return False
