"""One run against a whole privacy curve (Mahloujifar, Melis, Chaudhuri 2024), for Gaussian curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lidp import checks
from lidp.citations import MAHLOUJIFAR_2024
from lidp.curves.gaussian import gaussian_epsilon
from lidp.epsilon_bound import Guarantee
from lidp.stats.one_run import GuessCounting, Guesses, last_rejected


@dataclass(frozen=True)
class OneRunFDP(GuessCounting):
    """Rejects Gaussian trade-off curves (μ-GDP) by the number of right guesses, and converts the μ to ε at δ.

    Guarantee: conditional: finite-sample if the mechanism's privacy curve is that of some Gaussian mechanism. The method
    rejects curves; a mechanism with another curve may be (ε, δ)-DP at the reported ε.
    """

    name: ClassVar[str] = "one-run-fdp"
    guarantee: ClassVar[Guarantee] = Guarantee.CONDITIONAL
    summary = "The number of right guesses about coins, against the most that a Gaussian mechanism makes likely."
    works = (MAHLOUJIFAR_2024,)

    def epsilon(self, guesses: Guesses, *, delta: float, failure_probability: float) -> float:
        checks.probability(delta=delta)
        mu = last_rejected(lambda value: rejects_gaussian(guesses, value, failure_probability))
        return gaussian_epsilon(mu, delta)

    def _family(self) -> tuple[str, ...]:
        return ("the privacy curve is that of a Gaussian mechanism (GDP)",)


def rejects_gaussian(guesses: Guesses, mu: float, failure_probability: float) -> bool:
    """Return whether at least ``right`` right guesses are too many for any μ-GDP mechanism.

    r and h bound how the probability mass of "right" and "wrong" can be spread over i right guesses, for i from the
    observed number downward; the observation is impossible enough if they outgrow the guesses made.
    """
    from scipy.special import ndtr, ndtri

    right, made, coins = guesses.right, guesses.made, guesses.coins
    r = failure_probability * right / coins
    h = failure_probability * (made - right) / coins
    for i in range(right - 1, -1, -1):
        wider = max(h, float(ndtr(ndtri(r) - mu)))
        if wider == h:
            break  # neither can change any more
        r, h = min(1.0, r + i / (made - i) * (wider - h)), wider
    return r + h > made / coins
