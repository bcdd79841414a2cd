"""What a verdict rests on: what is assumed, what was checked, and what went wrong on the way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lidp.report.wording import counted, stopping, unit
from lidp.result import AuditResult


class Standing(StrEnum):
    """How a statement stands."""

    ASSUMED = "assumed"
    CHECKED = "checked"
    TROUBLE = "trouble"


@dataclass(frozen=True)
class Statement:
    """Something that the verdict rests on."""

    standing: Standing
    text: str


def statements_of(result: AuditResult) -> tuple[Statement, ...]:
    """All that a reader should know before believing the verdict."""
    assumed = [f"{_capital(text)}." for text in result.assumptions]
    if not result.design.has_canaries:
        assumed.append(f"The two data sets are {result.claim.neighbours} neighbours.")
        assumed.append("Runs are independent of one another, but for what outputs already told.")
    assumed.append("The mechanism that was run is the one that the claim is about.")
    return (
        *(Statement(Standing.ASSUMED, text) for text in assumed),
        *(Statement(Standing.CHECKED, text) for text in _checked(result)),
        *(Statement(Standing.TROUBLE, text) for text in _trouble(result)),
    )


def _checked(result: AuditResult) -> list[str]:
    scores, what = result.scores, unit(result)
    found = (
        [] if not result.design.has_canaries else [f"Claim and design are both about {result.claim.neighbours} neighbours."]
    )
    found += [
        f"Every score of the {counted(scores.trials, what)} is a finite number, or its run is marked as failed.",
    ]
    if scores.has_coins:
        _, coins = scores.flips()
        found.append(
            f"{int(coins.sum()):,} of {coins.size:,} coins are 1. Coins that fair ones would give in fewer than one of 10¹² "
            "audits are refused."
        )
    if result.method.anytime:
        found.append(f"{_capital(what)} were bet on in the order of their numbers, not of their completion.")
    found.append(stopping(result))
    if result.preparation_models and result.design.has_canaries:
        found.append(f"Models trained to prepare: {result.preparation_models:,}; they are counted.")
    elif result.preparation_models:
        found.append(f"Runs spent on choosing the data sets: {result.preparation_models:,}; the bound does not use them.")
    if not result.failed_runs:
        found.append("No run failed.")
    if result.notes and not result.retried_trials:
        found.append("No trial was tried a second time after its process had died.")
    return found


def _trouble(result: AuditResult) -> list[str]:
    found = []
    if result.failed_runs:
        found.append(
            f"Failed: {counted(result.failed_runs, 'runs')}, kept as outputs that nobody bets on. Dropping them would not be valid."
        )
    if result.retried_trials:
        found.append(
            f"Run again: {counted(result.retried_trials, 'trials')}, with the same coins and streams, because a worker died."
        )
    if result.unscored_canaries:
        found.append(
            f"Canaries without a score: {result.unscored_canaries:,}. They got a constant, which is a valid score."
        )
    return found


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
