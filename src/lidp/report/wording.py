"""The verdict and its guarantee in plain sentences, for every kind of guarantee."""

from __future__ import annotations

from typing import Any

from lidp.epsilon_bound import Guarantee, Hypothesis
from lidp.report.figure_data import claimed_epsilon
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_least, at_most, counted, exact, singular

_IF_TRUE = {
    Hypothesis.POINT: "the claim were true",
    Hypothesis.CURVE: "the mechanism had the claimed privacy curve or a smaller one",
    Hypothesis.CURVE_BY_CANARY: (
        "the output about each canary had the claimed privacy curve or a smaller one, independently of the other canaries"
    ),
}


def number(value: float) -> str:
    """Return a number rounded to four digits, to read; :mod:`lidp.rounding` rounds bounds and claims."""
    return f"{value:.4g}"


def shown(value: Any) -> str:
    """Return a value to read: whole numbers with separators, other numbers rounded, text unchanged."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


def often(probability: float) -> str:
    """Return how often an event of this probability happens: "5 % of the time"."""
    if probability < 1e-4:
        return f"{probability:.3g} of the time"
    return f"{100 * probability:.6g} % of the time"


def unit(result: AuditResult) -> str:
    """Return what one row of the scores is called, in the plural."""
    return result.design.unit


def bound_words(result: AuditResult) -> str:
    """Return the lower bound as text: rounded down, with enough digits to exceed a claim that it exceeds.

    If the audit tested a curve, it is the ε of the curve with the effective noise.
    """
    return at_least(result.bound.epsilon, above=result.claim.epsilon)


def verdict(result: AuditResult) -> str:
    """Return the verdict in a few words: as in the JSON, unless trials are still missing."""
    if result.verdict is Verdict.INCONCLUSIVE and result.unfinished:
        return "no verdict yet"
    return f"{result.verdict} so far" if result.unfinished else str(result.verdict)


def headline(result: AuditResult) -> str:
    """Return the verdict in one sentence, or two: what was tested and its verdict, then the evidence."""
    bound = result.bound
    planned = counted(result.planned_trials, unit(result))
    if result.verdict is Verdict.REFUTED:
        return f"The {_claim(result)} is refuted{_evidence(result)}."
    if result.verdict is Verdict.NOT_REFUTED and result.unfinished:
        return f"After {bound.trials:,} of {planned}, the {_claim(result)} is not refuted so far{_evidence(result)}."
    if result.verdict is Verdict.NOT_REFUTED:
        return f"The {_claim(result)} is not refuted{_evidence(result)}."
    if result.provisional:
        finished = f"{bound.trials:,} {'is' if bound.trials == 1 else 'are'} finished"
        return f"There is no verdict yet: {bound.method} gives one after all {planned}, and {finished}."
    few = "is too few" if bound.trials == 1 else "are too few"
    claimed = point_words(result) if bound.curve is None else f"the privacy curve of {bound.curve}"
    refute = f"to refute any mechanism that claims {claimed}"
    if result.unfinished:
        return f"There is no verdict yet: {bound.trials:,} of {planned} {few} {refute}."
    return f"The audit is inconclusive: {counted(bound.trials, unit(result))} {few} {refute}."


def point_words(result: AuditResult) -> str:
    """Return the claimed point: "ε = 2 at δ = 1e-05"."""
    return f"ε = {claimed_epsilon(result)} at δ = {exact(result.claim.delta)}"


def _claim(result: AuditResult) -> str:
    """Return the part of the claim that was tested, as the subject of a sentence: its curve or its point."""
    curve = result.bound.curve
    if curve is None:
        return f"claim of {point_words(result)}"
    return f"claimed privacy curve of {curve}, which promises {point_words(result)},"


def _evidence(result: AuditResult) -> str:
    """Return the end of the headline, which says what the audit found."""
    bound = result.bound
    if bound.curve is not None:
        return _evidence_on_noise(result)
    if not bound.epsilon:
        return ": the audit could not show a leak"
    if bound.guarantee is Guarantee.CREDIBLE:
        return f": the credible lower bound on ε is {bound_words(result)}"
    return f": the audit found that ε is at least {bound_words(result)}"


def _evidence_on_noise(result: AuditResult) -> str:
    bound = result.bound
    by_canary = bound.hypothesis is Hypothesis.CURVE_BY_CANARY
    start = " canary by canary" if by_canary else ""
    if bound.effective_noise is None:
        return f"{start}: {bound.describe_noise()}"
    if bound.curve is not None and not bound.curve.has_family:
        return f"{start}. It has no amount of noise to compare with"
    subject = "If its outputs about different canaries are independent, the mechanism" if by_canary else "The mechanism"
    return f"{start}. {subject} {bound.describe_noise()}"


def guarantee(result: AuditResult) -> str:
    """Return what the verdict means, as far as the guarantee of the method goes."""
    if result.provisional:
        return (
            "The bound shown is provisional and proves nothing: the guarantee of this method holds only for the planned "
            f"number of {unit(result)}, and stopping early because the bound looks good would break it."
        )
    if result.verdict is Verdict.REFUTED:
        return _if_refuted(result)
    bound = result.bound
    if result.verdict is Verdict.INCONCLUSIVE:
        return f"This says nothing about the mechanism.{_remedy(result)}"
    meaning = f"Not refuted does not mean true: {_other_ways(result)} may still refute the claim."
    if bound.curve is not None:
        return f"{meaning}{_noise_excluded(result)}"
    if not bound.epsilon:
        return meaning
    if bound.guarantee is Guarantee.CREDIBLE:
        return (
            f"{meaning} The posterior probability that ε is above {bound_words(result)} is {bound.certainty.number}, "
            "which is not a failure probability."
        )
    return (
        f"{meaning} If the true ε were below {bound_words(result)}, a bound this high would appear at most "
        f"{often(bound.failure_probability)}{_provided(result)}."
    )


def _noise_excluded(result: AuditResult) -> str:
    """Return what the bound on the noise means for a curve that is not refuted; nothing if there is no bound."""
    bound = result.bound
    if bound.curve is None or bound.effective_noise is None:
        return ""
    name, claimed = bound.curve.describe_noise()
    return (
        f" If the {name} were {at_most(claimed * bound.effective_noise)} or more, a bound this low would appear at most "
        f"{often(bound.failure_probability)}{_provided(result)}."
    )


def _remedy(result: AuditResult) -> str:
    """Return what to do about a budget that was too small."""
    if result.unfinished:
        return ""
    if not result.design.has_canaries:
        return " Run an audit with more runs."
    return " Run an audit with more trials; “lidp plan” computes how many it needs."


def _other_ways(result: AuditResult) -> str:
    """Return what may still refute a claim that is not refuted.

    An audit whose method needs a fixed number of trials must not be continued because it found nothing.
    """
    if not result.design.has_canaries:
        return "the remaining runs or other data sets" if result.unfinished else "other data sets or more runs"
    if result.unfinished:
        return "the remaining trials, another attack or other canaries"
    if result.method.anytime:
        return "another attack, other canaries or more trials"
    return "another attack, other canaries, or a new audit planned with more trials"


def _if_refuted(result: AuditResult) -> str:
    bound = result.bound
    if bound.guarantee is Guarantee.CREDIBLE:
        return (
            f"Given these scores and the priors, the posterior probability that ε is above {bound_words(result)} is "
            f"{bound.certainty.number}. This is not a failure probability: it is not known how often a true claim would "
            "be refuted."
        )
    return (
        f"If {_IF_TRUE[bound.hypothesis]}, evidence this strong would appear at most {often(bound.failure_probability)}"
        f"{_provided(result)}."
    )


def _provided(result: AuditResult) -> str:
    """Return the end of a sentence: under which condition the failure probability holds."""
    bound = result.bound
    if bound.guarantee is Guarantee.ASYMPTOTIC:
        return f"; this holds in the limit of many {unit(result)} and is an approximation for {bound.trials:,}"
    if bound.guarantee is Guarantee.CONDITIONAL:
        limit = any("asymptotic" in text for text in bound.assumptions)  # of the interval method that was chosen
        more = f", and in the limit of many {unit(result)}" if limit else ""
        return f", provided that the mechanism's privacy curve is of the family named under the assumptions{more}"
    return ""


def stopping(result: AuditResult) -> str:
    """Return when the audit ended, and why that keeps the guarantee."""
    done, planned, what = result.bound.trials, result.planned_trials, unit(result)
    if done >= planned:
        return (
            f"All {planned:,} planned {what} were used." if planned > 1 else f"The one planned {singular(what)} was used."
        )
    if result.verdict is Verdict.REFUTED and result.configuration.get("stop_when") != "never":
        return (
            f"The audit stopped after {done:,} of {planned:,} {what}, when the claim was refuted. "
            f"{result.bound.method} is anytime-valid: stopping because of the result keeps the guarantee."
        )
    finished = f"{done:,} of {counted(planned, what)} {'is' if done == 1 else 'are'} finished"
    if result.method.anytime:
        return f"{finished}; the bound is valid now and may still rise."
    return f"{finished}."


def design(result: AuditResult) -> str:
    """Return the design in words."""
    return result.design.description
