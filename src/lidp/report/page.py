"""The pages: one HTML file each, with its style and its figures inside, no script, nothing to fetch."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lidp.epsilon_bound import Guarantee
from lidp.errors import InvalidArgument
from lidp.pairs.audits import PairResult
from lidp.report import drawings, wording
from lidp.report.command import command_of
from lidp.report.evidence import settings_of, statements_of
from lidp.report.figure_data import BoundPath, CanaryCorrelation, ScoreDistributions, thinned
from lidp.report.roc import RocCurve
from lidp.report.texts import finalize
from lidp.report.trial_facts import TrialFacts
from lidp.result import AuditResult, Verdict

if TYPE_CHECKING:
    from jinja2 import Environment

_ROWS = 12  # of the tables that repeat a figure in numbers


def write_report(result: AuditResult, path: str | Path) -> Path:
    """Write the report of a result; an existing file is replaced.

    Raises:
        InvalidArgument: if there is no such folder, or the path is a folder.
    """
    return write_page(render_report(result), path)


def write_page(page: str, path: str | Path) -> Path:
    """Write a page; an existing file is replaced."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InvalidArgument(f"{path}: there is no such folder to write the report to")
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"{path}: the report cannot be written: {error.strerror}") from None
    return path


def render_report(result: AuditResult) -> str:
    """The report of a result as one HTML page.

    Guarantee: needs no network and holds no script; every text of the user's is escaped; its size does not grow with the
    number of trials.
    """
    pair = isinstance(result, PairResult)
    return render(
        "report.html.j2",
        result=result,
        bound=result.bound,
        claim=result.claim,
        pair=result if pair else None,
        unit=wording.unit(result),
        refuted=result.verdict is Verdict.REFUTED,
        credible=result.bound.guarantee is Guarantee.CREDIBLE,
        headline=wording.headline(result),
        guarantee=wording.guarantee(result),
        too_early=wording.too_early(result),
        gauge=gauge_of(result, "gauge"),
        path=_path(result),
        scores=_scores(result),
        roc=_roc(result),
        correlations=_correlations(result),
        facts=_facts(result),
        statements=statements_of(result),
        settings=settings_of(result),
        command=command_of(result.configuration),
        trial_seconds=sum(note.seconds for note in result.notes) if result.notes else result.seconds,
    )


def gauge_of(result: AuditResult, name: str) -> Markup:
    """Claim against bound."""
    return drawings.gauge(
        name,
        result.bound.epsilon,
        result.claim.epsilon,
        refuted=result.verdict is Verdict.REFUTED,
        provisional=wording.too_early(result),
    )


def render(template: str, **values: Any) -> str:
    """A template filled in; what is not already markup is escaped."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        finalize=finalize,
        loader=PackageLoader("lidp.report"),
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"number": wording.number, "exact": _exact, "shown": _shown}
    return environment


def _exact(value: Any) -> str:
    """A number so that it can be read back as the same number; anything else as text."""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _shown(value: Any) -> str:
    """A value to read: whole numbers with separators, others short, text as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else wording.number(value)


def _path(result: AuditResult) -> dict[str, Any]:
    data = BoundPath.of(result)
    rows = [(int(data.trials[at]), float(data.epsilons[at])) for at in thinned(len(data.trials), _ROWS)]
    return {"data": data, "figure": drawings.path_figure("path", data, wording.unit(result)), "rows": rows}


def _scores(result: AuditResult) -> dict[str, Any]:
    data = ScoreDistributions.of(result.scores)
    axis = "log-odds that were predicted" if isinstance(result, PairResult) else "score: higher looks more inserted"
    return {"data": data, "figure": drawings.score_figure("scores", data, axis)}


def _roc(result: AuditResult) -> dict[str, Any]:
    data = RocCurve.of(result)
    kept = thinned(len(data.thresholds) - 1, _ROWS)  # the last is minus infinity, where all are above
    rows = [(float(data.thresholds[at]), float(data.held_out[at]), float(data.inserted[at])) for at in kept]
    return {"data": data, "figure": drawings.roc_figure("roc", data, result.claim), "rows": rows}


def _correlations(result: AuditResult) -> list[dict[str, Any]]:
    found = CanaryCorrelation.of(result.scores)
    return [
        {"data": data, "figure": drawings.correlation_figure(f"correlation-{order}", data)}
        for order, data in enumerate(found)
    ]


def _facts(result: AuditResult) -> dict[str, Any]:
    data = TrialFacts.of(result.notes)
    figures = [drawings.series_figure(f"trials-{order}", series) for order, series in enumerate(data.series)]
    return {"data": data, "series": list(zip(data.series, figures, strict=True))}
