"""``PlannedGuesses``: choose the number of guesses about coins from the claim, before any score is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lidp import checks
from lidp.claim import Direction
from lidp.curves import PrivacyCurve
from lidp.errors import InvalidArgument
from lidp.stats.curve_family import leakier
from lidp.stats.one_run import Guesses, GuessStrategy

_SIMULATED_COINS = 65_536
_FINENESS = 2  # fractions per factor of 2
_LOWEST_LOG = -60.0  # of the p-values that are compared
_BISECTIONS = 20


@dataclass(frozen=True)
class PlannedGuesses(GuessStrategy):
    """Guess on the fraction of the coins that would refute the claimed curve most clearly if the noise were smaller than claimed.

    ``noise_ratio`` is the claimed noise divided by the suspected one. The fraction depends on the claim and on the number of
    coins only, so it is fixed beforehand, and one fraction has the whole failure probability.
    """

    noise_ratio: float = 1.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_ratio", checks.positive(noise_ratio=self.noise_ratio))
        if self.noise_ratio <= 1:
            raise InvalidArgument(f"noise_ratio must be above 1, got {self.noise_ratio:g}")

    def fraction(self, curve: PrivacyCurve, coins: int, direction: Direction) -> float:
        """Return the fraction of the coins to guess on."""
        return _best_fraction(curve, self.noise_ratio, coins, direction)

    def __str__(self) -> str:
        return f"planned:{self.noise_ratio:g}"


@lru_cache(maxsize=256)
def _best_fraction(curve: PrivacyCurve, ratio: float, coins: int, direction: Direction) -> float:
    from lidp.stats.bet_sizes import simulate_wagers

    suspect = leakier(curve, ratio)
    wagers = simulate_wagers(suspect, 1, _SIMULATED_COINS)
    # Guesses are made on the most certain coins; in one direction, on the half of them that speak for this side.
    right = wagers.right[0, np.argsort(-wagers.chances[0])]
    sides = 1 if direction is Direction.BOTH else 2
    best, lowest = 1.0 / sides, 0.0
    for step in range(_FINENESS * coins.bit_length()):
        fraction = 2.0 ** (-step / _FINENESS) / sides
        made = max(1, round(fraction * coins))
        share = float(right[: max(1, round(fraction * sides * len(right)))].mean())
        reached = _log_p_value(Guesses(coins, made, round(share * made)), curve, direction)
        if reached < lowest:
            best, lowest = fraction, reached
    return best


def _log_p_value(guesses: Guesses, curve: PrivacyCurve, direction: Direction) -> float:
    """Return the logarithm of the largest failure probability, up to rounding, at which the curve is not rejected."""
    from lidp.stats.guess_trade_off import rejects_curve

    low, high = _LOWEST_LOG, 0.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if rejects_curve(guesses, curve, math.exp(middle), direction) else (middle, high)
    return high
