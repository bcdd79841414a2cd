"""``CurveFamily``: the hypotheses that a test of a privacy curve goes through, from the most to the least private one.

A family has a curve for every amount of noise, and the curves are nested: a mechanism that stays below the curve for more
noise also stays below that for less. So hypotheses are tested in the order of falling noise, and the test stops at the first
that is not rejected: the whole sequence has the failure probability of one test. If the claim is among the rejected ones, it
is refuted; the last rejected noise is an upper bound on the noise that the mechanism behaves as if it had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lidp.arrays import Floats
from lidp.curves import GaussianCurve, PrivacyCurve
from lidp.curves.gaussian import LARGEST_MU
from lidp.errors import InvalidArgument

CLAIMED = 1.0
"""The noise of the claim itself, in units of the claimed noise; it is a member of every family, exactly."""
# Steps of the logarithm of the noise, from the claim outward: (number of steps, step).
_OUTWARD = ((11, 0.02), (9, 0.05), (9, 0.12))
_HOPELESS_EPSILON = (4.0, 20.0)  # curves with an ε beyond this multiple of the claim's plus this number are left out


def _noise_ratios() -> tuple[float, ...]:
    """Return the amounts of noise of a family's members, from the largest to the smallest."""
    logs = np.cumsum([step for number, step in _OUTWARD for _ in range(number)])
    return (*(math.exp(log) for log in logs[::-1]), CLAIMED, *(math.exp(-log) for log in logs))


NOISE_RATIOS = _noise_ratios()


@dataclass(frozen=True)
class CurveFamily:
    """The members of a family as arrays, one row for each, from the largest noise to the smallest.

    ``rungs`` are the ε at which bets are placed; ``forward`` and ``backward`` are h⁺ and h⁻ there.
    """

    noise: Floats
    epsilons: Floats
    """the ε of each member at the δ of the audit"""
    rungs: Floats
    forward: Floats
    backward: Floats
    curves: tuple[PrivacyCurve, ...]

    @property
    def claimed(self) -> int:
        """The row of the claim itself."""
        return int(np.flatnonzero(self.noise == CLAIMED)[0])

    def __len__(self) -> int:
        return len(self.noise)


def leakier(curve: PrivacyCurve, ratio: float) -> PrivacyCurve:
    """Return the curve of the same mechanism with the noise divided by ``ratio``, or of a Gaussian one that resembles it."""
    if curve.has_family:
        return curve.with_noise(1 / ratio)
    return GaussianCurve(min(curve.scale * ratio, LARGEST_MU))


@lru_cache(maxsize=32)
def family_of(curve: PrivacyCurve, delta: float) -> CurveFamily:
    """Return the family of a curve; a curve without noise to scale is a family of its own.

    Raises:
        InvalidArgument: if the curve has no finite ε at ``delta``: no bound could be stated.
    """
    claimed_epsilon = curve.epsilon(delta)
    if math.isinf(claimed_epsilon):
        raise InvalidArgument(f"{curve} has no finite ε at delta={delta:g}; name a larger delta")
    hopeless = _HOPELESS_EPSILON[0] * claimed_epsilon + _HOPELESS_EPSILON[1]
    noise, epsilons, rungs, forward, backward, curves = [], [], [], [], [], []
    for ratio in NOISE_RATIOS if curve.has_family else (CLAIMED,):
        try:
            member = curve if ratio == CLAIMED else curve.with_noise(ratio)
            epsilon = member.epsilon(delta)
        except InvalidArgument:
            if ratio >= CLAIMED:
                raise
            break  # so little noise promises nothing
        if epsilon > hopeless and ratio < CLAIMED:
            break
        at = member.rungs()
        above, below = member.both(at)
        if not all(((values >= 0) & (values <= 1)).all() for values in (above, below)):
            raise InvalidArgument(f"the values of {member} must be between 0 and 1: round negative ones up to 0, at least")
        noise.append(ratio)
        epsilons.append(epsilon)
        rungs.append(at)
        forward.append(above)
        backward.append(below)
        curves.append(member)
    return CurveFamily(
        np.array(noise), np.array(epsilons), np.array(rungs), np.array(forward), np.array(backward), tuple(curves)
    )
