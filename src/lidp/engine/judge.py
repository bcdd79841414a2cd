"""Derive the verdict from the bound."""

from __future__ import annotations

from lidp.claim import Claim
from lidp.epsilon_bound import EpsilonBound
from lidp.result import Verdict


def judge(bound: EpsilonBound, claim: Claim, *, provisional: bool, could_refute: bool) -> Verdict:
    """Return the verdict on a claim.

    Args:
        bound: the lower bound on ε that the evidence gives.
        claim: the claim under audit.
        provisional: whether the bound's method gives no verdict before all trials are finished, and they are not.
        could_refute: whether this number of trials suffices to refute the claim for the leakiest mechanism.
    """
    if provisional:
        return Verdict.INCONCLUSIVE
    if bound.refutes(claim):
        return Verdict.REFUTED
    return Verdict.NOT_REFUTED if could_refute else Verdict.INCONCLUSIVE
