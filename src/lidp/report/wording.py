"""The verdict and its guarantee in plain words, right for every kind of guarantee."""

from __future__ import annotations

from lidp.designs import CoinFlip, LeaveOneOut
from lidp.epsilon_bound import Guarantee
from lidp.pairs.audits import PairResult
from lidp.result import AuditResult, Verdict


def number(value: float) -> str:
    """A number to read; the exact one is beside it in the page."""
    return f"{value:.4g}"


def often(probability: float) -> str:
    """How often something of this probability happens: "5 % of the time"."""
    if probability < 1e-4:
        return f"{probability:.3g} of the time"
    return f"{100 * probability:.6g} % of the time"


def unit(result: AuditResult) -> str:
    """What a row of the scores is called."""
    return "runs" if isinstance(result, PairResult) else "trials"


def counted(number: int, words: str) -> str:
    """So many of something that is named in the plural: "1 trial", "2 trials"."""
    return f"{number:,} {words.removesuffix('s') if number == 1 else words}"


def too_early(result: AuditResult) -> bool:
    """Whether a method that speaks only at the end was asked before it."""
    return not result.method.anytime and result.bound.trials < result.planned_trials


def headline(result: AuditResult) -> str:
    """The verdict in one sentence."""
    claim, bound = result.claim, result.bound
    said = f"ε = {number(claim.epsilon)} at δ = {claim.delta:g}"
    if result.verdict is Verdict.REFUTED:
        return f"The claim is refuted: the audit found an ε of at least {number(bound.epsilon)}, and {said} was claimed."
    if result.verdict is Verdict.NOT_REFUTED:
        found = f"an ε of at least {number(bound.epsilon)}" if bound.epsilon else "no leak that it could prove"
        return f"The claim is not refuted: {said} was claimed, and the audit found {found}."
    if too_early(result):
        return (
            f"There is no verdict yet: {bound.method} speaks after all {counted(result.planned_trials, unit(result))}, "
            f"and {bound.trials:,} {'is' if bound.trials == 1 else 'are'} done."
        )
    return (
        f"There is no verdict: with {counted(bound.trials, unit(result))} no mechanism, however leaky, "
        f"could have been refuted at {said}."
    )


def guarantee(result: AuditResult) -> str:
    """What the verdict is worth, spelled out."""
    if too_early(result):
        return (
            "The bound shown is provisional and proves nothing: this method's guarantee is for the planned number of "
            f"{unit(result)}, and stopping when it looks good would break it."
        )
    if result.verdict is Verdict.REFUTED:
        return _if_refuted(result)
    bound = result.bound
    if result.verdict is Verdict.UNDECIDED:
        return "That says nothing about the mechanism. More are needed: “lidp plan” says how many."
    meaning = "Not refuted does not mean true: another attack, other canaries or more trials may still refute it."
    if not bound.epsilon:
        return meaning
    if bound.guarantee is Guarantee.CREDIBLE:
        return (
            f"{meaning} The bound of {number(bound.epsilon)} is exceeded with posterior probability "
            f"{number(1 - bound.failure_probability)}, which is not a failure probability."
        )
    return (
        f"{meaning} A bound of {number(bound.epsilon)} or more would appear at most {often(bound.failure_probability)} "
        f"if the true ε were smaller{_provided(result)}."
    )


def _if_refuted(result: AuditResult) -> str:
    bound = result.bound
    if bound.guarantee is Guarantee.CREDIBLE:
        return (
            f"Given these scores and the priors, the posterior probability that ε is above {number(bound.epsilon)} is "
            f"{number(1 - bound.failure_probability)}. That is not a failure probability: how often a true claim would look like "
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
        return f"All {planned:,} planned {what} were used."
    if result.verdict is Verdict.REFUTED and result.configuration.get("stop_when") != "never":
        return (
            f"The audit ended after {done:,} of {planned:,} {what}, when the claim fell. "
            f"{result.bound.method} is anytime-valid: stopping on what was seen keeps the guarantee."
        )
    if result.method.anytime:
        return f"{done:,} of {planned:,} {what} are done; the bound holds as it stands, and may still rise."
    return f"{done:,} of {planned:,} {what} are done."


def design(result: AuditResult) -> str:
    """Who was inserted, in words."""
    layout = result.design
    if isinstance(result, PairResult):
        return "two data sets, one of which a coin chose for each run"
    if isinstance(layout, CoinFlip):
        return f"{layout.canaries:,} canaries a trial, each inserted by a fair coin of its own"
    kind = "leave one out" if isinstance(layout, LeaveOneOut) else "replace one"
    return f"{kind}: {layout.canaries:,} inserted and {layout.held_out:,} held-out canaries a trial"
