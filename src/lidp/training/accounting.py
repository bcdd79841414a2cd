"""How much noise DP-SGD needs, and what a noise buys: by ``dp-accounting``."""

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

_NEAR = 1e-3  # how close, relatively, the search comes to the ε asked for, from below
_FINE, _COARSE = 1e-4, 1e-3  # steps in which privacy losses are counted; coarse ones are ten times as fast, and never below
_ROUNDS = 60
_LARGEST_HALF = 300.0  # of ε under replace-one neighbours; beyond it no number of use is left of δ


class Accountant(StrEnum):
    """Which accounting."""

    PLD = "pld"
    """privacy loss distributions: nearly exact"""
    RDP = "rdp"
    """Rényi DP, as in the paper: somewhat more noise"""


@dataclass(frozen=True)
class Calibration:
    """A noise multiplier, and the ε that it buys at δ for so many steps at a sampling rate, under Poisson sampling."""

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
    """The ε at δ of ``steps`` Gaussian steps with noise multiplier ``sigma``, each on a Poisson sample of the records.

    Replacing a record is removing one and adding another: (2ε, (1 + e^ε) δ') follows from (ε, δ') for add/remove. That is an
    upper bound, not the exact value.
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
    """The least noise multiplier that is (ε, δ)-DP by the accountant, to a few parts in a thousand of ε."""
    epsilon, accountant = checks.positive(epsilon=epsilon), _accountant(accountant)

    def bought(sigma: float, by: Accountant, interval: float = _COARSE) -> float:
        return _epsilon(sigma, delta, rate, steps, by, neighbours, interval)

    # Rényi accounting is fast and never below the truth, so its noise is where the search for less begins.
    enough = _least(lambda sigma: bought(sigma, Accountant.RDP), epsilon, 1.0)
    if accountant is Accountant.PLD:
        enough = _least(lambda sigma: bought(sigma, Accountant.PLD), epsilon, enough)
    return Calibration(enough, bought(enough, accountant, _FINE), delta, rate, steps, accountant, neighbours)


def _least(bought: Callable[[float], float], epsilon: float, start: float) -> float:
    """A noise whose ε is at most ``epsilon`` and close to it; ε falls with the noise, about like a power of it."""
    enough = start
    while bought(enough) > epsilon:
        enough *= 2
        if enough > 1e6:
            raise InvalidArgument(f"no noise multiplier up to {enough:g} buys ε = {epsilon:g}")
    little, found = enough / 2, bought(enough)
    while bought(little) <= epsilon:
        enough, found = little, bought(little)
        little /= 2
        if little < 1e-4:
            raise InvalidArgument(f"ε = {epsilon:g} needs next to no noise; lower it, or train for longer")
    much = bought(little)
    while found < epsilon * (1 - _NEAR):
        # between the two in logarithms; halfway if that would hardly move
        share = 0.5
        if math.isfinite(much):
            share = (math.log(much) - math.log(epsilon)) / (math.log(much) - math.log(max(found, 1e-9)))
        between = little * (enough / little) ** min(max(share, 0.1), 0.9)
        at = bought(between)
        if at <= epsilon:
            enough, found = between, at
        else:
            little, much = between, at
    return enough


def _epsilon(
    sigma: float, delta: float, rate: float, steps: int, accountant: Accountant, neighbours: Neighbours, interval: float
) -> float:
    sigma, rate, steps = checks.positive(sigma=sigma), checks.share(rate=rate), checks.count(steps=steps)
    delta = checks.probability(delta=delta)
    if neighbours is Neighbours.ADD_REMOVE:
        return _add_remove(sigma, delta, rate, steps, accountant, interval)
    half = 0.0
    for _ in range(_ROUNDS):  # δ' = δ / (1 + e^ε) depends on the ε that it gives; a few rounds settle it
        if half > _LARGEST_HALF:
            break
        found = _add_remove(sigma, delta / (1 + math.exp(half)), rate, steps, accountant, interval)
        if found <= half:  # (half, δ') holds for add/remove, with no tolerance
            return 2 * half
        half = found * (
            1 + 1e-6
        )  # a little above, or the search would come near the solution from below and never reach it
    return math.inf  # not settled, or as good as no privacy: too much is safe, too little is not


@lru_cache(maxsize=4096)  # the search asks for the same noise more than once, and so do many audits of one process
def _add_remove(sigma: float, delta: float, rate: float, steps: int, accountant: Accountant, interval: float) -> float:
    import dp_accounting

    # It warns of orders that it leaves out, which makes the result larger, not wrong.
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
    try:
        return Accountant(name)
    except ValueError:
        raise InvalidArgument(f"accountant must be pld or rdp, got {name!r}") from None
