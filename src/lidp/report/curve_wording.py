"""What a report says about a claimed privacy curve beyond its verdict: the point, the two bounds, and the figures."""

from __future__ import annotations

from decimal import Decimal

from lidp.epsilon_bound import Hypothesis
from lidp.report.wording import often, point_words
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_least, at_most, exact

_OUTCOMES = {
    Verdict.REFUTED: "It is refuted.",
    Verdict.NOT_REFUTED: "It is not refuted.",
    Verdict.INCONCLUSIVE: "There is no verdict on it.",
}


def on_the_point(result: AuditResult) -> str:
    """Return the verdict on the point (ε, δ) beside that on the curve; nothing if the audit has none."""
    bound = result.bound
    if bound.curve is None:
        return _only_the_point(result)
    if bound.point is None or result.verdict is Verdict.INCONCLUSIVE:
        return ""
    verdict = result.verdicts["point"]
    if verdict is Verdict.REFUTED:
        return f"The point is refuted too: at δ = {exact(result.claim.delta)} alone, {point_bound(result)}."
    stands = f"The point, {point_words(result)}, is not refuted at this δ alone: {point_bound(result)}."
    if result.verdict is Verdict.REFUTED:
        return f"{stands} Refuting the curve does not refute the point."
    return f"{stands} The point is tested only if the curve is refuted."


def _only_the_point(result: AuditResult) -> str:
    """Return that a claimed curve was not tested as a whole, if that is so."""
    if result.claim.curve is None or result.verdict is Verdict.INCONCLUSIVE:
        return ""
    what = f"{result.bound.method} tests one point of the claimed privacy curve of {result.claim.curve}"
    if result.verdict is Verdict.REFUTED:
        return f"{what}. The point follows from the curve, so the curve is refuted too."
    return f"{what}. It says nothing about the rest of the curve."


def point_bound(result: AuditResult) -> str:
    """Return the bound on ε at the claim's δ alone, as a part of a sentence."""
    epsilon = result.bound.epsilon_point
    if not epsilon:
        return "the audit could not show a leak there"
    return f"ε is at least {at_least(epsilon, above=result.claim.epsilon)}"


def on_failure_probabilities(result: AuditResult) -> str:
    """Return how the failure probabilities of two verdicts and two bounds add up; nothing if there is only one of each."""
    bound = result.bound
    if bound.curve is None or bound.point is None or result.verdict is Verdict.INCONCLUSIVE:
        return ""
    verdicts = (
        f"Both verdicts together are wrong at most {often(bound.failure_probability)}, because the point is tested only if the "
        "curve is refuted."
    )
    if bound.effective_noise is None or not bound.curve.has_family:
        return verdicts
    # Added as decimal numbers, so that 0.05 and 0.05 are exactly 0.1.
    both = Decimal(repr(bound.failure_probability)) + Decimal(repr(bound.point.failure_probability))
    return (
        f"{verdicts} The bound on the noise and the bound on ε at this δ alone each have a failure probability of their own, "
        f"{bound.certainty.number} and {bound.point.certainty.number}: at least one of the two is wrong with probability at most "
        f"{at_most(min(1.0, float(both)))}."
    )


def on_the_hypothesis(result: AuditResult) -> str:
    """Return which hypothesis was tested and whether it fell, apart from the guarantee of the test; nothing for a point."""
    hypothesis = result.bound.hypothesis
    if hypothesis is Hypothesis.POINT:
        return ""
    text = f"The hypothesis that was tested: {hypothesis.meaning}. {_OUTCOMES[result.verdict]}"
    if hypothesis is Hypothesis.CURVE_BY_CANARY:
        text += " A mechanism that has the curve may be refuted too, if its outputs about several canaries depend on each other."
    return text


def condition(result: AuditResult) -> str:
    """Return the end of a sentence about the whole mechanism: under which condition a refuted curve is a statement about it."""
    by_canary = result.bound.hypothesis is Hypothesis.CURVE_BY_CANARY
    return ", if its outputs about different canaries are independent" if by_canary else ""


def on_the_noise(result: AuditResult) -> str:
    """Return what the gauge of the noise means."""
    bound = result.bound
    if bound.curve is None or not bound.curve.has_family:
        return ""
    name, claimed = bound.curve.describe_noise()
    start = f"The claimed {name}, {claimed:.4g}, is 1 on this line (dashed mark)."
    if bound.effective_noise is None:
        return f"{start} The audit excludes no amount of noise."
    bar = f"{start} The bar shows the amounts of noise that the audit excludes"
    if result.provisional:
        return f"{bar}, provisionally."
    if result.verdict is Verdict.REFUTED:
        return f"{bar}; the claimed amount is one of them."
    return f"{bar}. The curve is refuted when the bar reaches the mark."
