"""Write reports as single HTML files that include their styles and figures, load nothing and run no script."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from lidp.diagnosis import diagnose_result
from lidp.epsilon_bound import Guarantee
from lidp.errors import InvalidArgument
from lidp.report import curve_drawings, curve_wording, drawings, plain_words, wording
from lidp.report.command import command_of
from lidp.report.curve_figure_data import ClaimedTradeOff, NoiseGauge
from lidp.report.diagnosis_drawings import diagnosis_section
from lidp.report.evidence import statements_of
from lidp.report.figure_data import BoundPath, CanaryCorrelation, Gauge, ScoreDistributions, claimed_epsilon, thinned
from lidp.report.roc import RocCurve, excluded_corners, has_visible_corner
from lidp.report.tables import facts_of, numbers_behind, settings_of, versions_of
from lidp.report.texts import finalize
from lidp.report.trial_facts import TrialFacts
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_least, at_most, counted, exact

if TYPE_CHECKING:
    from jinja2 import Environment

_ROWS = 12  # of a table that repeats a figure in numbers
_FALSE_POSITIVES = np.array([0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0])  # of the table of a trade-off


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


def render_report(result: AuditResult, *, links: Mapping[str, str] | None = None) -> str:
    """Return the report of a result as one HTML page, with links to other pages if a server shows it.

    Guarantee: the page needs no network and holds no script; all text from the user is escaped; the size does not grow with
    the number of trials.
    """
    roc, trade_off = RocCurve.of(result), ClaimedTradeOff.of(result)
    return render(
        "report.html.j2",
        links=links,
        result=result,
        bound=result.bound,
        claim=result.claim,
        claimed_epsilon=claimed_epsilon(result),
        pair=not result.design.has_canaries,
        unit=wording.unit(result),
        verdict=wording.verdict(result),
        bound_words=wording.bound_words(result),
        refuted=result.verdict is Verdict.REFUTED,
        credible=result.bound.guarantee is Guarantee.CREDIBLE,
        headline=wording.headline(result),
        guarantee=wording.guarantee(result),
        early_stop=plain_words.early_stop(result),
        meaning=plain_words.meaning(result),
        next_step=plain_words.next_step(result),
        provisional=result.provisional,
        on_the_point=curve_wording.on_the_point(result),
        gauge=gauge_of(result, "gauge"),
        curve=_curve(result, trade_off, roc),
        path=_path(result),
        scores=_scores(result),
        roc=_roc(result, roc, trade_off),
        correlations=_correlations(result),
        trials=_trials(result),
        diagnosis=diagnosis_section(diagnose_result(result)),
        statements=statements_of(result),
        numbers=numbers_behind(result),
        settings=settings_of(result),
        facts=facts_of(result),
        versions=versions_of(result),
        command=command_of(result.configuration),
    )


def gauge_of(result: AuditResult, name: str) -> Markup:
    """Return the figure of claim and bound: of the noise if a curve with an amount of noise was tested, otherwise of ε."""
    noise = NoiseGauge.of(result)
    return drawings.gauge(name, Gauge.of(result)) if noise is None else curve_drawings.noise_gauge(name, noise)


def render(template: str, **values: Any) -> str:
    """Return a template filled in; every value that is not already markup is escaped."""
    return environment("lidp.report").get_template(template).render(**values)


@cache
def environment(package: str) -> Environment:
    """Return the templates of a package: they escape every value that is not markup, and know the filters of reports."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        finalize=finalize,
        loader=PackageLoader(package),
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "exact": _exact,
        "shown": wording.shown,
        "claimed": exact,
        "at_least": at_least,
        "counted": counted,
    }
    return environment


def _exact(value: Any) -> str:
    """Return a number with all its digits, so that it reads back as the same number; anything else as text."""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _approximate_count(value: float) -> str:
    """Return an estimated count without needless digits."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _curve(result: AuditResult, trade_off: ClaimedTradeOff | None, roc: RocCurve) -> dict[str, Any] | None:
    """Return words and figures about the curve that was tested; None if the audit tested a point."""
    if trade_off is None:
        return None
    bound = result.bound
    has_noise = NoiseGauge.of(result) is not None
    shown_twice = has_noise and bound.point is not None  # without an amount of noise, the first gauge is that of the point
    noise = None if bound.effective_noise is None or not has_noise else at_most(bound.effective_noise, 4)
    return {
        "noise": noise,
        "on_the_noise": curve_wording.on_the_noise(result),
        "hypothesis": curve_wording.on_the_hypothesis(result),
        "condition": curve_wording.condition(result),
        "failure_probabilities": curve_wording.on_failure_probabilities(result),
        "point_gauge": drawings.gauge("point-gauge", Gauge.of(result)) if shown_twice else None,
        "point_verdict": result.verdicts["point"],
        "trade_off": trade_off,
        "shaded": has_visible_corner(trade_off.claimed.excluded_corners()[0]),
        "figure": curve_drawings.trade_off_figure("trade-off", trade_off, roc),
        "rows": _trade_off_rows(trade_off),
    }


def _trade_off_rows(trade_off: ClaimedTradeOff) -> list[tuple[float, ...]]:
    curves = [trade_off.claimed] if trade_off.exceeded is None else [trade_off.claimed, trade_off.exceeded]
    columns = [_FALSE_POSITIVES, *(curve.at(_FALSE_POSITIVES) for curve in curves)]
    return [tuple(float(cell) for cell in row) for row in zip(*columns, strict=True)]


def _path(result: AuditResult) -> dict[str, Any]:
    data = BoundPath.of(result)
    kept = thinned(len(data.trials), _ROWS) if data.has_path else [-1]
    rows = [(int(data.trials[at]), *_bounds_after(result, data, at)) for at in kept]
    return {"data": data, "figure": drawings.path_figure("path", data, wording.unit(result)), "rows": rows}


def _bounds_after(result: AuditResult, path: BoundPath, at: int) -> tuple[float, ...]:
    """Return the bound at a step of its path, and beside a curve's the bound on ε at the claim's δ alone."""
    point = result.bound.point
    if point is None:
        return (float(path.epsilons[at]),)
    whole = not path.has_path or not point.path  # a method that gives a single bound, or a bound of 0
    return float(path.epsilons[at]), point.epsilon if whole else point.epsilon_after(int(path.trials[at]))


def _scores(result: AuditResult) -> dict[str, Any]:
    data = ScoreDistributions.of(result.scores)
    return {"data": data, "figure": drawings.score_figure("scores", data, result.design.score_label)}


def _roc(result: AuditResult, data: RocCurve, trade_off: ClaimedTradeOff | None) -> dict[str, Any]:
    kept = thinned(len(data.thresholds) - 1, _ROWS)  # the last threshold is minus infinity
    rows = [(float(data.thresholds[at]), float(data.held_out[at]), float(data.inserted[at])) for at in kept]
    corners = excluded_corners(result.claim) if trade_off is None else trade_off.claimed.excluded_corners()
    figure = drawings.roc_figure("roc", data, result.claim, trade_off)
    return {"data": data, "figure": figure, "rows": rows, "shaded": has_visible_corner(corners[0])}


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
