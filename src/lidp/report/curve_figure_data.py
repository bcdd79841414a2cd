"""What the figures of a claimed privacy curve show, as plain numbers: the trade-off of errors, and the amount of noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lidp.arrays import Floats
from lidp.curves import PrivacyCurve
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_most

_ORDERS = 240  # number of ε at which a curve is evaluated
_LAST_DELTA = 1e-7  # orders beyond the ε of this δ change a trade-off curve by less than can be drawn
_LARGEST_ORDER = 50.0
_ERRORS = np.concatenate([[0.0], np.geomspace(1e-4, 0.05, 32)[:-1], np.linspace(0.05, 1.0, 58)])
"""false positive rates at which a trade-off curve is drawn"""


@dataclass(frozen=True)
class TradeOff:
    """The smallest false negative rate that a privacy curve allows for each false positive rate.

    An observer guesses from the output whether a record was inserted. ``false_negatives[i]`` is a lower bound on the share of
    inserted records that any observer overlooks, if the share of held-out records that are taken for inserted ones is
    ``false_positives[i]``. Points below the curve are excluded by the claim.
    """

    false_positives: Floats
    false_negatives: Floats

    @classmethod
    def of(cls, curve: PrivacyCurve, epsilon: float) -> TradeOff:
        """Return the trade-off of a curve; ``epsilon`` is one more order at which it is evaluated.

        From h⁺ and h⁻ at the orders e follows f(a) = sup over e of max(0, 1 - h⁺(e) - e^e·a, e^-e·(1 - h⁻(e) - a)). Finitely many
        orders make f smaller, never larger: the figure excludes no more than the curve does.
        """
        last = min(curve.epsilon(_LAST_DELTA), _LARGEST_ORDER)
        orders = np.unique(np.append(np.linspace(0.0, max(last, 1e-3), _ORDERS), min(epsilon, _LARGEST_ORDER)))
        forward, backward = curve.both(orders)
        growth = np.exp(orders)
        errors = _ERRORS[:, None]
        lines = np.maximum(1 - forward - growth * errors, (1 - backward - errors) / growth)
        return cls(_ERRORS, np.maximum(lines.max(axis=1), 0.0))

    def excluded_corners(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return the corners of the two regions of (held-out, inserted) rates that the curve excludes, above and below.

        The second one is the first for an observer who always guesses the opposite.
        """
        x, y = np.append(self.false_positives, 0.0), np.append(1 - self.false_negatives, 1.0)
        return (x, y), (1 - x, 1 - y)


@dataclass(frozen=True)
class ClaimedTradeOff:
    """The trade-off that the claim allows, and that of the curve that was shown to be exceeded, if it is another one.

    Attributes:
        claimed: what the claimed curve allows.
        exceeded: what the curve with the effective noise allows; None if that is the claimed curve, or no curve was exceeded.
        noise: the effective noise, in units of the claimed noise; None if no amount is excluded, or only provisionally.
        refuted: whether the claimed curve is refuted.
    """

    claimed: TradeOff
    exceeded: TradeOff | None
    noise: float | None
    refuted: bool

    @classmethod
    def of(cls, result: AuditResult) -> ClaimedTradeOff | None:
        """Return the trade-off of the curve that was tested; None if the audit tested a point."""
        bound = result.bound
        if bound.curve is None:
            return None
        noise = None if result.provisional else bound.effective_noise
        # Computing a curve may take seconds, so no curve is computed that is not drawn.
        other = None if noise is None or noise == 1 else TradeOff.of(bound.curve.with_noise(noise), bound.epsilon)
        return cls(TradeOff.of(bound.curve, result.claim.epsilon), other, noise, result.verdict is Verdict.REFUTED)


@dataclass(frozen=True)
class NoiseGauge:
    """The claimed noise, which is 1, and the effective noise on a line from 0 to ``most``, with the label of each.

    ``noise`` is an upper bound: the mechanism behaves as if it had at most as much. It is None if no amount is excluded.
    ``name`` says what the noise is, and ``claimed`` is its claimed value.
    """

    noise: float | None
    most: float
    refuted: bool
    noise_words: str
    claim_words: str
    name: str
    claimed: float

    @classmethod
    def of(cls, result: AuditResult) -> NoiseGauge | None:
        """Return the gauge of a result; None if no curve was tested, or its mechanism has no amount of noise."""
        bound = result.bound
        if bound.curve is None or not bound.curve.has_family:
            return None
        name, claimed = bound.curve.describe_noise()
        noise = bound.effective_noise
        if noise is None:
            words = "no amount excluded"
        else:
            limit = "below 1" if noise == 1 else f"at most {at_most(noise, 3)}"
            words = f"provisional, {limit}" if result.provisional else limit
        return cls(
            noise=noise,
            most=1.2 * max(1.25, noise or 0.0),
            refuted=result.verdict is Verdict.REFUTED,
            noise_words=words,
            claim_words="claimed 1",
            name=name,
            claimed=claimed if math.isfinite(claimed) else 1.0,
        )
