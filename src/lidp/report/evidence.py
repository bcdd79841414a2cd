"""What a verdict rests on: assumptions, checks, and problems during the audit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lidp.report.wording import stopping, unit
from lidp.result import AuditResult
from lidp.rounding import counted


class Status(StrEnum):
    """Whether a statement is assumed, was checked, or reports a problem."""

    ASSUMED = "assumed"
    CHECKED = "checked"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Statement:
    """One statement that a reader should know before believing the verdict."""

    status: Status
    text: str


def statements_of(result: AuditResult) -> tuple[Statement, ...]:
    """Return all assumptions, checks and problems of an audit."""
    assumed = [f"{_capital(text)}." for text in result.assumptions]
    if not result.design.has_canaries:
        assumed.append(f"The two data sets are {result.claim.neighbours} neighbours.")
        assumed.append("Each run is independent of earlier runs, except through what their outputs already revealed.")
    assumed.append("The audited mechanism is the one that the claim is about.")
    return (
        *(Statement(Status.ASSUMED, text) for text in assumed),
        *(Statement(Status.CHECKED, text) for text in _checks(result)),
        *(Statement(Status.PROBLEM, text) for text in _problems(result)),
    )


def _checks(result: AuditResult) -> list[str]:
    scores, what = result.scores, unit(result)
    checks = []
    if result.design.has_canaries:
        checks.append(f"The claim and the design are both about {result.claim.neighbours} neighbours.")
    checks.append(f"Every score of the {counted(scores.trials, what)} is a finite number, or its run is marked as failed.")
    if scores.has_coins:
        _, coins = scores.flips()
        checks.append(
            f"{int(coins.sum()):,} of {coins.size:,} coins are 1. The audit refuses coins whose imbalance or order fair coins "
            "would show with probability below 10⁻¹²."
        )
    if result.method.anytime:
        checks.append(
            f"Bets on {what} were placed in the order of their numbers, whatever the order in which they finished."
        )
    checks.append(stopping(result))
    if result.preparation_models and result.design.has_canaries:
        checks.append(f"Models trained for preparation: {result.preparation_models:,}. The number of models includes them.")
    elif result.preparation_models:
        checks.append(f"Runs used to choose the data sets: {result.preparation_models:,}. The bound does not use them.")
    if not result.failed_runs:
        checks.append("No run failed.")
    if result.notes and not result.retried_trials:
        checks.append(f"No {_retried_unit(result)} was retried after its worker process had died.")
    return checks


def _problems(result: AuditResult) -> list[str]:
    problems = [f"{_capital(text)}." for text in result.warnings]
    if result.failed_runs:
        problems.append(
            f"Failed runs: {result.failed_runs:,}. They are kept as outputs on which nothing is bet. "
            "Dropping them would not be valid."
        )
    if result.retried_trials:
        problems.append(
            f"Retried {_retried_unit(result, plural=True)}: {result.retried_trials:,}. They were run again with the same coins "
            "and random streams, because a worker process had died."
        )
    if result.unscored_canaries:
        problems.append(
            f"Canaries that could not be scored: {result.unscored_canaries:,}. They got a constant score, which is valid."
        )
    return problems


def _retried_unit(result: AuditResult, *, plural: bool = False) -> str:
    """Return what is retried as a whole: a trial, which in a pair audit is a block of runs."""
    if result.design.has_canaries:
        return "trials" if plural else "trial"
    return "blocks of runs" if plural else "block of runs"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
