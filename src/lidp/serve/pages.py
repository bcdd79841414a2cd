"""The pages as HTML: whole ones, and the parts of them that live updates replace."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Mapping
from importlib import resources
from typing import Any

from lidp.engine.progress import per_second
from lidp.report import drawings, wording
from lidp.report.figure_data import claim_words
from lidp.report.page import environment
from lidp.report.texts import clean
from lidp.result import Verdict
from lidp.rounding import at_least, at_most, counted, duration, exact
from lidp.serve.audits import Catalogue
from lidp.serve.listing import Entry, State
from lidp.serve.live import Snapshot

Parts = Mapping[str, str]
"""HTML by the id of the element that it fills; ``title`` is the title of the page, as text."""

_STYLE = re.compile(r"<style>(.*?)</style>", flags=re.DOTALL)


def _render(template: str, **values: Any) -> str:
    return environment("lidp.serve").get_template(template).render(**values)


def list_page(catalogue: Catalogue, places: list[str]) -> str:
    """Return the list of audits."""
    rows = [_row(entry) for entry in catalogue.entries]
    return _render("list.html.j2", rows=rows, parts=list_parts(catalogue), places=places, catalogue=catalogue)


def list_parts(catalogue: Catalogue, standings: Mapping[str, Snapshot] | None = None) -> dict[str, str]:
    """Return the cells of the list that change, and which audits it has, so that a page knows when to offer a reload.

    ``standings`` says by key how running audits stand, as far as they are followed.
    """
    parts: dict[str, str] = {}
    for entry in catalogue.entries:
        row = _row(entry, (standings or {}).get(entry.key))
        parts |= {f"{name}-{entry.key}": row[name] for name in ("state", "done", "outcome")}
    return parts | {"audits": ",".join(sorted(entry.key for entry in catalogue.entries))}


def _row(entry: Entry, standing: Snapshot | None = None) -> dict[str, Any]:
    outcome = entry.outcome
    so_far = standing.bound if standing is not None and not standing.reading else None
    bound = so_far if outcome is None else outcome
    return {
        "entry": entry,
        "name": entry.path.stem,
        "claim": f"ε = {wording.number(entry.epsilon)}, δ = {exact(entry.delta)}",
        "state": _render("state.html.j2", state=entry.state),
        "done": f"{entry.done:,} of {counted(entry.planned, entry.unit)}",
        "outcome": _render(
            "outcome.html.j2",
            outcome=outcome,
            bound=None if bound is None else at_least(bound.epsilon, above=entry.epsilon),
            refuted_so_far=standing is not None and standing.verdict is Verdict.REFUTED,
            ended=entry.state is State.ENDED,
        ),
        "changed": time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.changed)),
    }


def audit_page(entry: Entry, snapshot: Snapshot, price: float | None) -> str:
    """Return the live page of an audit."""
    return _render("audit.html.j2", entry=entry, plan=snapshot.plan, parts=audit_parts(snapshot, price))


def audit_parts(snapshot: Snapshot, price: float | None) -> dict[str, str]:
    """Return the parts of the live page of an audit; ``price`` is that of one model."""
    plan = snapshot.plan
    word = _verdict_word(snapshot)
    figures = _figures(snapshot)
    return {
        "title": clean(f"{word}: {plan.name}"),
        "state": _render("state.html.j2", state=snapshot.state),
        "verdict": _render(
            "verdict.html.j2", word=word, sentences=_sentences(snapshot), refuted=snapshot.verdict is Verdict.REFUTED
        ),
        "progress": _render("progress.html.j2", done=snapshot.done, planned=plan.rows, unit=plan.design.unit),
        "numbers": _render("numbers.html.j2", rows=_numbers(snapshot, price)),
        "path": figures["path"],
        "scores": figures["scores"],
        "failures": _render("failures.html.j2", snapshot=snapshot, unit=plan.design.unit),
    }


def _figures(snapshot: Snapshot) -> dict[str, str]:
    plan, path, scores = snapshot.plan, snapshot.path, snapshot.scores
    drawn = None if path is None else drawings.path_figure("path", path, plan.design.unit)
    spread = None if scores is None else drawings.score_figure("scores", scores, plan.design.score_label)
    return {
        "path": _render("path.html.j2", figure=drawn, snapshot=snapshot, unit=plan.design.unit),
        "scores": _render("scores.html.j2", figure=spread, data=scores),
    }


def _verdict_word(snapshot: Snapshot) -> str:
    if snapshot.result is not None:
        return wording.verdict(snapshot.result)
    if snapshot.problem:
        return "no result"
    if snapshot.verdict is None:
        return "no verdict yet"
    return str(snapshot.verdict) if snapshot.verdict is Verdict.REFUTED else f"{snapshot.verdict} so far"


def _sentences(snapshot: Snapshot) -> list[str]:
    """Return the verdict in words."""
    if snapshot.result is not None:
        return [wording.headline(snapshot.result), wording.guarantee(snapshot.result)]
    return [snapshot.problem or _standing(snapshot), *_state_sentences(snapshot)]


def _standing(snapshot: Snapshot) -> str:
    plan, bound, unit = snapshot.plan, snapshot.bound, snapshot.plan.design.unit
    if snapshot.reading:
        return f"The trials in the store are being read: {counted(snapshot.done, unit)} so far."
    if not snapshot.done:
        return f"None of the {counted(plan.rows, unit)} is finished yet."
    after = f"After {snapshot.done:,} of {counted(plan.rows, unit)}"
    if bound is None and not plan.method.anytime:
        return f"{after}: {plan.method.name} gives no bound before all of them are finished."
    if bound is None:
        return f"{after}: the first of them is still missing, and bets are placed in their order."
    if snapshot.verdict is Verdict.REFUTED:
        return f"The claim is refuted: {plan.name} claims {plan.claim}, and {_found(snapshot)}."
    if snapshot.verdict is None:
        return f"{after}: too few to refute any mechanism that claims {plan.claim}."
    return f"{after}, the claim is not refuted so far: {_found(snapshot)}. The bound is valid now and may still rise."


def _found(snapshot: Snapshot) -> str:
    bound = snapshot.bound
    assert bound is not None  # noqa: S101  # the caller has asked
    if bound.curve is not None:
        return f"the mechanism {bound.describe_noise()}" if bound.effective_noise is not None else bound.describe_noise()
    return f"the audit found that ε is at least {at_least(bound.epsilon, above=snapshot.plan.claim.epsilon)}"


def _state_sentences(snapshot: Snapshot) -> list[str]:
    if snapshot.state is State.PAUSED and not snapshot.reading:
        return ["Nobody runs this audit now. “lidp resume” continues it."]
    if snapshot.state is State.RUNNING and snapshot.quiet_seconds > 60:
        return [f"No trial has finished for {duration(snapshot.quiet_seconds)}."]
    return []


def _numbers(snapshot: Snapshot, price: float | None) -> list[tuple[str, str]]:
    """Return the numbers of the live page with their names."""
    plan, bound = snapshot.plan, snapshot.bound
    found = (0.0,) if bound is None else (bound.epsilon, bound.epsilon_point)
    rows = [("claimed ε", claim_words(plan.claim, found)), ("δ", exact(plan.claim.delta))]
    if bound is not None:
        rows.append(("lower bound, ε ≥", at_least(bound.epsilon, above=plan.claim.epsilon)))
        if bound.curve is not None:
            noise = "not bounded" if bound.effective_noise is None else f"at most {at_most(bound.effective_noise)}"
            rows.append(("effective noise, claimed = 1", noise))
    rows.append((f"{plan.design.unit} finished", f"{snapshot.done:,} of {plan.rows:,}"))
    if snapshot.state is State.RUNNING:
        rows += _speed(snapshot)
    if plan.design.has_canaries:
        rows.append(("models trained", f"{snapshot.models:,} of at most {snapshot.planned_models:,}"))
    if price is not None:
        spent, most = price * snapshot.models, price * snapshot.planned_models
        rows.append(("cost", f"{spent:,.2f} of at most {most:,.2f}"))
    rows.append((f"total time of all {plan.design.unit}", duration(snapshot.trial_seconds)))
    return [*rows, ("trials with failed runs", f"{snapshot.failed_trials:,}")]


def _speed(snapshot: Snapshot) -> list[tuple[str, str]]:
    unit, rate, left = snapshot.plan.design.unit, snapshot.rate, snapshot.seconds_left
    if rate is None or left is None:
        return [(f"{unit} per second", "being measured"), ("time left", "being measured")]
    return [
        (f"{unit} per second", per_second(rate)),
        ("time left, at most" if snapshot.plan.stop_when == "refuted" else "time left", duration(left)),
    ]


def error_page(title: str, message: str) -> str:
    """Return a page that says what went wrong."""
    return _render("error.html.j2", heading=title, message=message)


def report_policy(page: str) -> str:
    """Return the content-security policy of a report: its own style sheet and nothing else."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" for style in _STYLE.findall(page)
    )
    return f"default-src 'none'; style-src {hashes}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def static_file(name: str) -> str:
    """Return the text of a style sheet or script of the pages."""
    if name == "report.css":
        return resources.files("lidp.report").joinpath("templates", "style.css").read_text(encoding="utf-8")
    return resources.files("lidp.serve").joinpath("static", name).read_text(encoding="utf-8")
