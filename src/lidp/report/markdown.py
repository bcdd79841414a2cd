"""The result as a short Markdown text, for the summary of a CI job."""

from __future__ import annotations

import re

from lidp.report import curve_wording, wording
from lidp.report.command import command_of
from lidp.report.evidence import Status, statements_of
from lidp.report.figure_data import claimed_epsilon
from lidp.report.texts import clean
from lidp.result import AuditResult, Verdict
from lidp.rounding import exact

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&:@-]|(?<=www)\.)", re.IGNORECASE)  # GitHub turns "www." into a link
_ICONS = {Verdict.REFUTED: "❌", Verdict.NOT_REFUTED: "✅", Verdict.INCONCLUSIVE: "⚠️"}


def render_markdown(result: AuditResult) -> str:
    """Return the result as Markdown: the verdict, what it means, the numbers, assumptions and problems, and the command.

    Guarantee: text from the user is escaped, so that it is neither markup nor a link nor the name of a user.
    """
    sentences = [
        wording.headline(result),
        curve_wording.on_the_point(result),
        wording.guarantee(result),
        curve_wording.on_failure_probabilities(result),
    ]
    blocks = [
        f"## {_ICONS[result.verdict]} {_escape(result.target)}: {wording.verdict(result)}",
        *(_escape(sentence) for sentence in sentences if sentence),
        _table(result),
        *_statements(result),
        *_command(result),
    ]
    return "\n\n".join(blocks) + "\n"


def _table(result: AuditResult) -> str:
    bound = result.bound
    rows = [
        ("claimed ε", claimed_epsilon(result)),
        ("bound: ε ≥", wording.bound_words(result)),
        ("δ", exact(result.claim.delta)),
        ("neighbours", str(result.claim.neighbours)),
        ("method", bound.method),
        ("guarantee", bound.describe_guarantee(anytime=result.method.anytime)),
        (bound.certainty.name, bound.certainty.number),
        (wording.unit(result), f"{bound.trials:,} of {result.planned_trials:,}"),
        ("models", f"{result.models:,}"),
        ("failed runs", f"{result.failed_runs:,}"),
        *([] if result.sealed else [("seed", str(result.seed))]),  # the seed of a seal would tell its coins
    ]
    if result.leak:
        rows.append(("leak" if result.verdict is Verdict.REFUTED else "difference", result.leak))
    lines = ["| | |", "|---|---|", *(f"| {_escape(name)} | {_escape(words)} |" for name, words in rows)]
    return "\n".join(lines)


def _statements(result: AuditResult) -> list[str]:
    """Return problems, then assumptions; checks are in the HTML report."""
    statements = statements_of(result)
    blocks = []
    for status, title in ((Status.PROBLEM, "Problems"), (Status.ASSUMED, "Assumptions")):
        texts = [f"- {_escape(one.text)}" for one in statements if one.status is status]
        if texts:
            blocks += [f"### {title}", "\n".join(texts)]
    return blocks


def _command(result: AuditResult) -> list[str]:
    command = command_of(result.configuration)
    if not command:
        return []
    indented = "\n".join(
        f"    {line}" for line in clean(str(command)).splitlines()
    )  # an indented block cannot be closed early
    return ["### How to reproduce", indented]


def _escape(text: str) -> str:
    """Return plain text as Markdown in one line."""
    return _MARKUP.sub(r"\\\1", " ".join(clean(text).split()))
