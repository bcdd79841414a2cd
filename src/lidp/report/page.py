"""Write reports as single HTML files that include their styles and figures, load nothing and run no script."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lidp.epsilon_bound import Guarantee
from lidp.errors import InvalidArgument
from lidp.report import drawings, wording
from lidp.report.command import command_of
from lidp.report.evidence import statements_of
from lidp.report.figure_data import BoundPath, CanaryCorrelation, Gauge, ScoreDistributions, thinned
from lidp.report.roc import RocCurve
from lidp.report.tables import facts_of, numbers_behind, settings_of, versions_of
from lidp.report.texts import finalize
from lidp.report.trial_facts import TrialFacts
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_least, exact

if TYPE_CHECKING:
    from jinja2 import Environment

_ROWS = 12  # of a table that repeats a figure in numbers


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
    """Return the report of a result as one HTML page.

    Guarantee: the page needs no network and holds no script; all text from the user is escaped; the size does not grow with
    the number of trials.
    """
    return render(
        "report.html.j2",
        result=result,
        bound=result.bound,
        claim=result.claim,
        pair=not result.design.has_canaries,
        unit=wording.unit(result),
        verdict=wording.verdict(result),
        bound_words=wording.bound_words(result),
        refuted=result.verdict is Verdict.REFUTED,
        credible=result.bound.guarantee is Guarantee.CREDIBLE,
        headline=wording.headline(result),
        guarantee=wording.guarantee(result),
        provisional=result.provisional,
        gauge=gauge_of(result, "gauge"),
        path=_path(result),
        scores=_scores(result),
        roc=_roc(result),
        correlations=_correlations(result),
        trials=_trials(result),
        statements=statements_of(result),
        numbers=numbers_behind(result),
        settings=settings_of(result),
        facts=facts_of(result),
        versions=versions_of(result),
        command=command_of(result.configuration),
    )


def gauge_of(result: AuditResult, name: str) -> Markup:
    """Return the figure of claim and bound."""
    return drawings.gauge(name, Gauge.of(result))


def render(template: str, **values: Any) -> str:
    """Return a template filled in; every value that is not already markup is escaped."""
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
    environment.filters |= {
        "exact": _exact,
        "shown": wording.shown,
        "claimed": exact,
        "at_least": at_least,
        "counted": wording.counted,
    }
    return environment


def _exact(value: Any) -> str:
    """Return a number with all its digits, so that it reads back as the same number; anything else as text."""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _approximate_count(value: float) -> str:
    """Return an estimated count without needless digits."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _path(result: AuditResult) -> dict[str, Any]:
    data = BoundPath.of(result)
    kept = thinned(len(data.trials), _ROWS) if data.has_path else [-1]
    rows = [(int(data.trials[at]), float(data.epsilons[at])) for at in kept]
    return {"data": data, "figure": drawings.path_figure("path", data, wording.unit(result)), "rows": rows}


def _scores(result: AuditResult) -> dict[str, Any]:
    data = ScoreDistributions.of(result.scores)
    return {"data": data, "figure": drawings.score_figure("scores", data, result.design.score_label)}


def _roc(result: AuditResult) -> dict[str, Any]:
    data = RocCurve.of(result)
    kept = thinned(len(data.thresholds) - 1, _ROWS)  # the last threshold is minus infinity
    rows = [(float(data.thresholds[at]), float(data.held_out[at]), float(data.inserted[at])) for at in kept]
    return {"data": data, "figure": drawings.roc_figure("roc", data, result.claim), "rows": rows}


def _correlations(result: AuditResult) -> list[dict[str, Any]]:
    correlations = CanaryCorrelation.of(result.scores)
    return [
        {
            "data": data,
            "figure": drawings.correlation_figure(f"correlation-{order}", data),
            "effective": _approximate_count(data.effective),
        }
        for order, data in enumerate(correlations)
    ]


def _trials(result: AuditResult) -> dict[str, Any]:
    data = TrialFacts.of(result.notes)
    figures = [drawings.series_figure(f"trials-{order}", series) for order, series in enumerate(data.series)]
    return {"data": data, "series": list(zip(data.series, figures, strict=True))}
