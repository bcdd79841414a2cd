"""Suggest what to do after a verdict: commands that can be typed as they are shown."""

from __future__ import annotations

import shlex
from pathlib import Path

from lidp.claim import Neighbours
from lidp.designs import CoinFlip, LeaveOneOut
from lidp.result import AuditResult, Verdict
from lidp.rounding import exact

_SUSPECTED = 2
"""The true ε of the suggested plan, as a multiple of the claimed one."""
_NOISE_RATIO = 0.8


def next_steps(result: AuditResult, store: Path | None) -> str:
    """Return the next steps after a verdict, as lines that begin with ``next:``."""
    if result.warnings:
        steps = ["solve the problem above and begin a new audit; until then, this result says little about the claim"]
    elif result.verdict is Verdict.REFUTED:
        steps = _after_refutation(result, store)
    else:
        steps = _after_no_refutation(result, store)
    return "\n".join(f"next: {step}" for step in steps)


def _after_refutation(result: AuditResult, store: Path | None) -> list[str]:
    if store is None:
        return [
            "--report FILE.html writes a page that explains the result; --store FILE keeps the trials for further commands"
        ]
    steps = [f"{_command('report', store, '-o', store.with_suffix('.html'))}  (a page that explains the result)"]
    if result.transcripts:
        steps.append(f"{_command('diagnose', store)}  (which part of the training deviates from the claim)")
    if result.bound.trials < result.planned_trials:
        steps.append(
            f"{_command('resume', store, '--stop-when', 'never')}  (the audit stopped at the refutation, and the true ε may be far "
            "larger: go on for a larger bound)"
        )
    return steps


def _after_no_refutation(result: AuditResult, store: Path | None) -> list[str]:
    steps = ["more trials, other canaries or a better score may still refute the claim: not refuted does not mean true"]
    if not result.design.has_canaries:
        return ["more --runs, other data sets or features= may still refute the claim: not refuted does not mean true"]
    if plan := _plan(result):
        steps.append(f"{plan}  (simulates what this budget finds in a Gaussian mechanism that leaks so much)")
    if store is not None and result.method.anytime:
        more = _command("resume", store, "--trials", 2 * result.planned_trials)
        steps.append(f"{more}  (goes on; the result stays valid)")
    return steps


def _plan(result: AuditResult) -> str:
    """Return the command that plans audits like this one; empty if the planner simulates none of its kind."""
    claim, design = result.claim, result.design
    if not (0 < claim.delta < 1 and claim.epsilon > 0 and claim.neighbours is Neighbours.ADD_REMOVE):
        return ""
    if not isinstance(design, (CoinFlip, LeaveOneOut)):
        return ""
    suspicion = (
        ("--suspect", f"{_SUSPECTED * claim.epsilon:.3g}")
        if claim.curve is None
        else ("--noise-ratio", f"{_NOISE_RATIO:g}")
    )
    stated = f"{claim.epsilon:.6g}" if claim.curve is not None else exact(claim.epsilon)
    options = ("--epsilon", stated, "--delta", exact(claim.delta), *suspicion)
    return _command("plan", *options, "--canaries", design.canaries, "--models", result.bound.models)


def _command(*words: object) -> str:
    return shlex.join(["lidp", *map(str, words)])
