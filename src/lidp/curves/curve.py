"""``PrivacyCurve``: upper bounds on how well the outputs for two neighbouring data sets can be told apart.

Let D1 be a data set with a record and D0 the same without it. The hockey-stick divergence of order e is
H_e(P‖Q) = sup over R of P(R) - e^e·Q(R). A curve states two functions of e ≥ 0:

- h⁺(e), at least H_e(A(D1) ‖ A(D0)) for all neighbours, and
- h⁻(e), at least H_e(A(D0) ‖ A(D1)).

A mechanism is (ε, δ)-DP for every ε and δ with max(h⁺, h⁻)(ε) ≤ δ. A test of a curve refutes it wrongly if h is below the truth
anywhere, so every implementation rounds up.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from lidp.arrays import Floats

LARGEST_EPSILON = 1000.0
"""The largest ε that is searched."""
_LARGEST_SEARCHED = 700.0  # a curve with a larger ε promises nothing, and e^ε would overflow
_RUNGS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
_SCALE_DELTA = 0.05  # the δ at which a curve is compared with Gaussian ones to find its scale


class PrivacyCurve(ABC):
    """A pair of functions h⁺ and h⁻; see the module.

    Subclasses are frozen dataclasses whose fields are plain values, so that a curve can be compared, hashed and stored as JSON.
    """

    kind: ClassVar[str]
    """the name of the class in JSON"""

    @abstractmethod
    def forward(self, epsilons: Floats) -> Floats:
        """Return h⁺ at each ε ≥ 0, rounded up."""

    @abstractmethod
    def backward(self, epsilons: Floats) -> Floats:
        """Return h⁻ at each ε ≥ 0, rounded up."""

    @property
    def least_value(self) -> float:
        """Values above 0 up to this are mostly rounding error: nothing is bet at their rungs."""
        return 0.0

    @abstractmethod
    def with_noise(self, ratio: float) -> Self:
        """Return the curve of the same mechanism with ``ratio`` times the noise.

        Curves of one family are nested: more noise makes h⁺ and h⁻ smaller at every ε.

        Raises:
            InvalidArgument: if the mechanism has no noise to scale; see :attr:`has_family`.
        """

    @property
    def has_family(self) -> bool:
        """Whether :meth:`with_noise` works."""
        return True

    @abstractmethod
    def describe(self) -> str:
        """Return the curve in words, as part of a sentence: "0.5-GDP", for example."""

    @abstractmethod
    def describe_noise(self) -> tuple[str, float]:
        """Return what the amount of noise is called, and its value: ("noise multiplier", 1.0), for example."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return plain data from which :func:`lidp.curves.curve_from_json` makes an equal curve."""

    @property
    def scale(self) -> float:
        """The μ of the Gaussian curve that resembles this one, from which the rungs are computed."""
        from lidp.curves.gaussian import gaussian_mu

        at_zero = float(np.maximum(*self.both(np.zeros(1)))[0])
        if at_zero <= 2 * _SCALE_DELTA:
            return gaussian_mu(0.0, max(at_zero, 1e-9))
        # A curve that stays above this δ, or falls below it only far away, resembles no Gaussian one: bets at large ε suit it best.
        return gaussian_mu(min(self.epsilon(_SCALE_DELTA), LARGEST_EPSILON), _SCALE_DELTA)

    def rungs(self) -> Floats:
        """Return the values of ε at which bets against the curve are placed, in increasing order.

        They matter for strength only.
        """
        return self.scale * np.array(_RUNGS)

    def both(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return (h⁺, h⁻) at each ε."""
        return self.forward(epsilons), self.backward(epsilons)

    def epsilon(self, delta: float) -> float:
        """Return an ε, rounded up, at which the curve promises (ε, δ)-DP; infinity if there is none."""
        return _epsilon_of(self, delta)

    def __str__(self) -> str:
        return self.describe()


@lru_cache(maxsize=1024)  # computing the curve of an event takes a second
def _epsilon_of(curve: PrivacyCurve, delta: float) -> float:

    def exceeds(epsilon: float) -> bool:
        return float(np.maximum(*curve.both(np.array([epsilon])))[0]) > delta

    if delta == 0:
        return math.inf  # curves that reach 0 override this; a value of 0 from the others is one that was rounded to it
    if not exceeds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while exceeds(high):
        if high == _LARGEST_SEARCHED:
            return math.inf
        low, high = high, min(2 * high, _LARGEST_SEARCHED)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if exceeds(middle):
            low = middle
        else:
            high = middle
    return high
