"""What a verdict means and what to do next, for readers who have never seen an audit."""

from __future__ import annotations

import math

from lidp.report.figure_data import claimed_epsilon
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_most

_LARGEST_EPSILON = 20.0
"""Above it, the factor e^ε says nothing that a reader could picture."""


def early_stop(result: AuditResult) -> str:
    """Return what an early stop means for the size of the bound; empty if the audit did not stop at a refutation."""
    stopped = result.verdict is Verdict.REFUTED and result.bound.trials < result.planned_trials
    if not stopped or not result.method.anytime or result.configuration.get("stop_when") == "never":
        return ""
    return (
        "The audit stopped as soon as the claim was refuted, so the bound does not say how large the leak is: the true ε may be "
        "far larger. To find a larger bound, go on: “lidp resume STORE --stop-when never”."
    )


def meaning(result: AuditResult) -> str:
    """Return what the claimed ε means, in plain words."""
    epsilon = result.claim.epsilon
    factor = f"e^{claimed_epsilon(result)}"
    if epsilon <= _LARGEST_EPSILON:
        rounded = float(at_most(math.exp(epsilon), 3))
        factor = f"{rounded:,.0f} ({factor})" if rounded >= 1000 else f"{rounded:g} ({factor})"
    exception = f", except with a probability of about {result.claim.delta:g}" if result.claim.delta else ""
    return (
        "ε says how much one record can change what the mechanism releases. The claim promises that no output becomes more than "
        f"{factor} times as likely, or as unlikely, because one record is added, removed or replaced{exception}. A smaller ε "
        "means more privacy."
    )


def next_step(result: AuditResult) -> str:
    """Return what to do after this verdict."""
    if result.verdict is Verdict.REFUTED:
        found = " “lidp diagnose STORE” says which part of the training deviates from it." if result.transcripts else ""
        return (
            "Do not rely on the claim: look for too little noise, missing clipping, a wrong sampling rate or noise that is used "
            f"twice, mend it, and audit again in a new store.{found}"
        )
    if result.unfinished:
        return "The audit is not finished: “lidp resume STORE” goes on."
    if not result.design.has_canaries:
        return "To look further, use more runs, other data sets or other features."
    further = " “lidp resume STORE --trials N” goes on with this audit." if result.method.anytime else ""
    return (
        "To look further, use more trials, other canaries or a better score. “lidp plan” simulates which leaks a budget finds."
        f"{further}"
    )
