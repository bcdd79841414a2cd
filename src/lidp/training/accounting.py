"""Compute the ε of DP-SGD for a noise multiplier, and the noise multiplier for an ε, with ``dp-accounting``."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from lidp import checks
from lidp.claim import Neighbours
from lidp.errors import InvalidArgument

_RELATIVE_TOLERANCE = 1e-3  # the search ends at an ε that is below the requested one by at most this
_NARROWEST = 1e-6  # or at noise multipliers that differ by at most this share, one on each side of a step of ε
_FINE, _COARSE = (
    1e-4,
    1e-3,
)  # discretisation of privacy losses; the coarse one is ten times faster and never gives a smaller ε
_MAX_ROUNDS = 60
_MAX_HALF_EPSILON = 300.0  # under replace-one neighbours; beyond it δ' underflows


class Accountant(StrEnum):
    """The method of privacy accounting."""

    PLD = "pld"
    """Privacy loss distributions, which are nearly exact."""
    RDP = "rdp"
    """Rényi DP, as in the paper; requires somewhat more noise."""


@dataclass(frozen=True)
class Calibration:
    """A noise multiplier, and the ε that it gives at δ for a number of steps with Poisson sampling at a rate."""

    sigma: float
    epsilon: float
    delta: float
    rate: float
    steps: int
    accountant: Accountant
    neighbours: Neighbours


def epsilon_of_noise(
    sigma: float,
    *,
    delta: float,
    rate: float,
    steps: int,
    accountant: Accountant | str = Accountant.PLD,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> float:
    """Return the ε at δ of ``steps`` Gaussian steps with noise multiplier ``sigma``, each on a Poisson sample of the records.

    Under replace-one neighbours this is an upper bound and not the exact value: replacing a record is removing one and adding
    another, so that (ε, δ') under add/remove gives (2ε, (1 + e^ε) δ').
    """
    return _epsilon(sigma, delta, rate, steps, _accountant(accountant), neighbours, _FINE)


def calibrate(
    epsilon: float,
    *,
    delta: float,
    rate: float,
    steps: int,
    accountant: Accountant | str = Accountant.PLD,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Calibration:
    """Return the smallest noise multiplier that is (ε, δ)-DP by the accountant, up to a few thousandths of ε.

    The ε of the result never exceeds ``epsilon``.
    """
    epsilon, accountant = checks.positive(epsilon=epsilon), _accountant(accountant)

    def epsilon_of(sigma: float, by: Accountant, interval: float = _COARSE) -> float:
        return _epsilon(sigma, delta, rate, steps, by, neighbours, interval)

    # Rényi accounting is fast and never gives a smaller ε than the exact one: its noise is a good start for the search.
    sigma = by_renyi = _smallest_noise(lambda sigma: epsilon_of(sigma, Accountant.RDP), epsilon, 1.0)
    if accountant is Accountant.PLD:
        sigma = _smallest_noise(lambda sigma: epsilon_of(sigma, Accountant.PLD), epsilon, by_renyi)
        if sigma > 2 * by_renyi:
            # It cuts off tails of the privacy loss, and counts what it cuts off as infinite loss: too much for a tiny δ.
            raise InvalidArgument(
                f"the accountant pld cannot account for ε = {epsilon:g} at δ = {delta:g}: it needs a noise multiplier of "
                f"{sigma:.4g}, where rdp needs {by_renyi:.4g}; choose the accountant rdp, or a larger δ"
            )
    return Calibration(sigma, epsilon_of(sigma, accountant, _FINE), delta, rate, steps, accountant, neighbours)


def _smallest_noise(epsilon_of: Callable[[float], float], epsilon: float, start: float) -> float:
    """Return a noise multiplier whose ε is at most ``epsilon`` and close to it, by a search that begins at ``start``.

    The search uses that ε falls with the noise, roughly like a power of it. Where ε falls by a step past ``epsilon``, the result is
    the noise right after the step, whose ε may be far below.
    """
    enough = start
    while epsilon_of(enough) > epsilon:
        enough *= 2
        if enough > 1e6:
            raise InvalidArgument(f"no noise multiplier up to {enough:g} gives ε = {epsilon:g}")
    too_little, reached = enough / 2, epsilon_of(enough)
    while epsilon_of(too_little) <= epsilon:
        enough, reached = too_little, epsilon_of(too_little)
        too_little /= 2
        if too_little < 1e-4:
            raise InvalidArgument(f"ε = {epsilon:g} needs next to no noise; lower it, or train for longer")
    exceeded = epsilon_of(too_little)
    while reached < epsilon * (1 - _RELATIVE_TOLERANCE) and enough > too_little * (1 + _NARROWEST):
        # Interpolate in logarithms, but at least a tenth of the interval from its ends; bisect if ε is infinite.
        share = 0.5
        if math.isfinite(exceeded):
            share = (math.log(exceeded) - math.log(epsilon)) / (math.log(exceeded) - math.log(max(reached, epsilon / 1000)))
        between = too_little * (enough / too_little) ** min(max(share, 0.1), 0.9)
        at_between = epsilon_of(between)
        if at_between <= epsilon:
            enough, reached = between, at_between
        else:
            too_little, exceeded = between, at_between
    return enough


def _epsilon(
    sigma: float, delta: float, rate: float, steps: int, accountant: Accountant, neighbours: Neighbours, interval: float
) -> float:
    sigma, rate, steps = checks.positive(sigma=sigma), checks.share(rate=rate), checks.count(steps=steps)
    delta = checks.probability(delta=delta)
    if neighbours is Neighbours.ADD_REMOVE:
        return _add_remove(sigma, delta, rate, steps, accountant, interval)
    half = 0.0
    for _ in range(_MAX_ROUNDS):  # δ' = δ / (1 + e^ε) depends on the ε that it gives: iterate to a fixed point
        if half > _MAX_HALF_EPSILON:
            break
        needed = _add_remove(sigma, delta / (1 + math.exp(half)), rate, steps, accountant, interval)
        if needed <= half:  # (half, δ') holds under add/remove, without any tolerance
            return 2 * half
        # A little above: otherwise the iteration would approach the fixed point from below and never reach it.
        half = needed * (1 + 1e-6)
    return math.inf  # no fixed point, or practically no privacy; an upper bound may be too large, never too small


@lru_cache(maxsize=4096)  # the search repeats noise multipliers, and so do several audits in one process
def _add_remove(sigma: float, delta: float, rate: float, steps: int, accountant: Accountant, interval: float) -> float:
    import dp_accounting

    # It warns of Rényi orders that it skips; skipping makes ε larger, which is valid.
    logging.getLogger("absl").setLevel(logging.ERROR)
    event: Any = dp_accounting.GaussianDpEvent(sigma)
    if rate < 1:
        event = dp_accounting.PoissonSampledDpEvent(rate, event)
    event = dp_accounting.SelfComposedDpEvent(event, steps)
    if accountant is Accountant.PLD:
        from dp_accounting import pld

        account: Any = pld.PLDAccountant(value_discretization_interval=interval)
    else:
        from dp_accounting import rdp

        account = rdp.RdpAccountant()
    account.compose(event)
    return float(account.get_epsilon(delta))


def _accountant(name: Accountant | str) -> Accountant:
    return checks.member(Accountant, accountant=name)
