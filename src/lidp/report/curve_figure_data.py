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
_NEAR = 0.006  # corners of a trade-off curve that are closer to each other than this look like one


@dataclass(frozen=True)
class TradeOff:
    """The smallest false negative rate that a privacy curve allows for each false positive rate.

    An observer guesses from the output whether a record was inserted. If held-out records are taken for inserted ones at the
    rate ``false_positives[i]``, then any observer overlooks inserted records at the rate ``false_negatives[i]`` at least. These are
    the corners of a convex line from 0 to 1, in increasing order of false positives. Points below it are excluded by the claim.
    """

    false_positives: Floats
    false_negatives: Floats

    @classmethod
    def of(cls, curve: PrivacyCurve, epsilon: float) -> TradeOff:
        """Return the trade-off of a curve; ``epsilon`` is one more order at which it is evaluated.

        From h⁺ and h⁻ at the orders e follows f(a) = sup over e of max(0, 1 - h⁺(e) - e^e·a, e^-e·(1 - h⁻(e) - a)). Finitely many
        orders make f smaller, never larger: the line excludes no more than the curve does.
        """
        last = min(curve.epsilon(_LAST_DELTA), _LARGEST_ORDER)
        orders = np.unique(np.append(np.linspace(0.0, max(last, 1e-3), _ORDERS), min(epsilon, _LARGEST_ORDER)))
        forward, backward = curve.both(orders)
        growth = np.exp(orders)
        slopes = np.concatenate([growth, 1 / growth, [0.0]])
        offsets = np.concatenate([1 - forward, (1 - backward) / growth, [0.0]])
        return cls(*_largest_of_lines(slopes, offsets))

    def at(self, false_positives: Floats) -> Floats:
        """Return the smallest false negative rates at these false positive rates."""
        return np.interp(false_positives, self.false_positives, self.false_negatives)

    def visible(self) -> tuple[Floats, Floats]:
        """Return the corners that can be told apart in a figure."""
        kept = [0]
        x, y = self.false_positives, self.false_negatives
        for number in range(1, len(x) - 1):
            if abs(x[number] - x[kept[-1]]) + abs(y[number] - y[kept[-1]]) >= _NEAR:
                kept.append(number)
        kept.append(len(x) - 1)
        return x[kept], y[kept]

    def excluded_corners(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return the corners of the two regions of (held-out, inserted) rates that the curve excludes, above and below.

        The second one is the first for an observer who always guesses the opposite.
        """
        false_positives, false_negatives = self.visible()
        x, y = np.append(false_positives, 0.0), np.append(1 - false_negatives, 1.0)
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
    provisional: bool
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
            limit = "below 1" if noise == 1 else f"at most {at_most(noise)}"
            words = f"provisional, {limit}" if result.provisional else limit
        return cls(
            noise=noise,
            most=1.2 * max(1.25, noise or 0.0),
            refuted=result.verdict is Verdict.REFUTED,
            provisional=result.provisional,
            noise_words=words,
            claim_words="claimed 1",
            name=name,
            claimed=claimed if math.isfinite(claimed) else 1.0,
        )


def _largest_of_lines(slopes: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Return the corners, for x from 0 to 1, of the largest of the lines offset - slope·x."""
    kept: list[tuple[float, float, float]] = []  # slope, offset, and the x from which the line is the largest
    for number in np.lexsort((-offsets, -slopes)):  # from the steepest, and of two parallel lines the upper one first
        slope, offset, start = float(slopes[number]), float(offsets[number]), 0.0
        while kept:
            steeper, higher, since = kept[-1]
            start = (higher - offset) / (steeper - slope) if steeper > slope else math.inf
            if start > since:
                break
            kept.pop()
            start = 0.0
        if start < 1:
            kept.append((slope, offset, start))
    x = np.array([start for _, _, start in kept] + [1.0])
    y = np.array([offset - slope * start for slope, offset, start in kept] + [kept[-1][1] - kept[-1][0]])
    return x, y
