"""The verdict and its guarantee in plain words, right for every kind of guarantee."""

from __future__ import annotations

from typing import Any

from lidp.epsilon_bound import Guarantee
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_least, exact


def number(value: float) -> str:
    """A number to read, to the nearest of four digits; bounds and claims are told by :mod:`lidp.rounding`."""
    return f"{value:.4g}"


def shown(value: Any) -> str:
    """A value to read: whole numbers with separators, others short, text as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


def often(probability: float) -> str:
    """How often something of this probability happens: "5 % of the time"."""
    if probability < 1e-4:
        return f"{probability:.3g} of the time"
    return f"{100 * probability:.6g} % of the time"


def unit(result: AuditResult) -> str:
    """What a row of the scores is called."""
    return result.design.unit


def counted(number: int, words: str) -> str:
    """So many of something that is named in the plural: "1 trial", "2 trials"."""
    return f"{number:,} {words.removesuffix('s') if number == 1 else words}"


def bound_words(result: AuditResult) -> str:
    """The lower bound as a number: rounded down, and never to the claim that it is above."""
    return at_least(result.bound.epsilon, above=result.claim.epsilon)


def verdict(result: AuditResult) -> str:
    """The verdict in a few words: as in the JSON, unless more trials are to come."""
    if result.verdict is Verdict.UNDECIDED and result.unfinished:
        return "no verdict yet"
    return f"{result.verdict} so far" if result.unfinished else str(result.verdict)


def headline(result: AuditResult) -> str:
    """The verdict in one sentence."""
    claim, bound = result.claim, result.bound
    said = f"ε = {exact(claim.epsilon)} at δ = {exact(claim.delta)}"
    an = "a credible ε" if bound.guarantee is Guarantee.CREDIBLE else "an ε"
    done, planned = f"{bound.trials:,}", counted(result.planned_trials, unit(result))
    if result.verdict is Verdict.REFUTED:
        return f"The claim is refuted: the audit found {an} of at least {bound_words(result)}, and {said} was claimed."
    if result.verdict is Verdict.NOT_REFUTED:
        found = f"{an} of at least {bound_words(result)}" if bound.epsilon else "no leak that it could prove"
        when = f"So far, after {done} of {planned}, the claim" if result.unfinished else "The claim"
        return f"{when} is not refuted: {said} was claimed, and the audit found {found}."
    if result.provisional:
        return (
            f"There is no verdict yet: {bound.method} speaks after all {planned}, "
            f"and {done} {'is' if bound.trials == 1 else 'are'} done."
        )
    few = "is too little" if bound.trials == 1 else "are too few"
    if result.unfinished:
        few = f"of {planned} {few}"
        return f"There is no verdict yet: {done} {few} to refute a claim of {said}, however leaky the mechanism."
    return (
        f"There is no verdict: {counted(bound.trials, unit(result))} {few} to refute a claim of {said}, "
        "however leaky the mechanism."
    )


def guarantee(result: AuditResult) -> str:
    """What the verdict is worth, spelled out."""
    if result.provisional:
        return (
            "The bound shown is provisional and proves nothing: this method's guarantee is for the planned number of "
            f"{unit(result)}, and stopping when it looks good would break it."
        )
    if result.verdict is Verdict.REFUTED:
        return _if_refuted(result)
    bound = result.bound
    if result.verdict is Verdict.UNDECIDED:
        return f"That says nothing about the mechanism.{_what_it_takes(result)}"
    meaning = f"Not refuted does not mean true: {_other_ways(result)} may still refute it."
    if not bound.epsilon:
        return meaning
    if bound.guarantee is Guarantee.CREDIBLE:
        return (
            f"{meaning} The bound of {bound_words(result)} is exceeded with posterior probability "
            f"{bound.certainty.number}, which is not a failure probability."
        )
    return (
        f"{meaning} A bound of {bound_words(result)} or more would appear at most {often(bound.failure_probability)} "
        f"if the true ε were smaller{_provided(result)}."
    )


def _what_it_takes(result: AuditResult) -> str:
    """What to do about a budget that was too small."""
    if result.unfinished:
        return ""
    if not result.design.has_canaries:
        return " It takes an audit with more runs."
    return " It takes an audit with more trials: “lidp plan” says how many."


def _other_ways(result: AuditResult) -> str:
    """What may still refute a claim that was not. A method of fixed size may not be gone on with because it found nothing."""
    if not result.design.has_canaries:
        return "the runs to come or other data sets" if result.unfinished else "other data sets or more runs"
    if result.unfinished:
        return "the trials to come, another attack or other canaries"
    if result.method.anytime:
        return "another attack, other canaries or more trials"
    return "another attack, other canaries, or a new audit planned with more trials"


def _if_refuted(result: AuditResult) -> str:
    bound = result.bound
    if bound.guarantee is Guarantee.CREDIBLE:
        return (
            f"Given these scores and the priors, the posterior probability that ε is above {bound_words(result)} is "
            f"{bound.certainty.number}. That is not a failure probability: how often a true claim would look like "
            "this is not known."
        )
    return (
        f"If the claim were true, evidence this strong would appear at most {often(bound.failure_probability)}"
        f"{_provided(result)}."
    )


def _provided(result: AuditResult) -> str:
    """The end of the sentence: under what proviso the failure probability holds."""
    bound = result.bound
    if bound.guarantee is Guarantee.ASYMPTOTIC:
        return f"; that holds in the limit of many {unit(result)}, and for {bound.trials:,} it is an approximation"
    if bound.guarantee is Guarantee.CONDITIONAL:
        limit = any("asymptotic" in text for text in bound.assumptions)  # said there of the interval that was chosen
        more = f", and in the limit of many {unit(result)}" if limit else ""
        return f", provided that the mechanism's privacy curve is of the family named under the assumptions{more}"
    return ""


def stopping(result: AuditResult) -> str:
    """When the audit ended, and why that is allowed."""
    done, planned, what = result.bound.trials, result.planned_trials, unit(result)
    if done >= planned:
        return f"All {planned:,} planned {what} were used." if planned > 1 else f"The one planned {what[:-1]} was used."
    if result.verdict is Verdict.REFUTED and result.configuration.get("stop_when") != "never":
        return (
            f"The audit ended after {done:,} of {planned:,} {what}, when the claim fell. "
            f"{result.bound.method} is anytime-valid: stopping on what was seen keeps the guarantee."
        )
    if result.method.anytime:
        return f"{done:,} of {planned:,} {what} are done; the bound holds as it stands, and may still rise."
    return f"{done:,} of {planned:,} {what} are done."


def design(result: AuditResult) -> str:
    """Return the design in words."""
    return result.design.description
