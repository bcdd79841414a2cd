"""Draw the figures of the report as inline SVG, from their data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from lidp.arrays import Floats
from lidp.claim import Claim
from lidp.report.curve_figure_data import ClaimedTradeOff
from lidp.report.figure_data import BoundPath, CanaryCorrelation, Gauge, ScoreDistributions
from lidp.report.roc import RocCurve, excluded_corners, has_visible_corner
from lidp.report.svg import WIDTH, Canvas, Plot, tick_text, ticks
from lidp.report.trial_facts import Series
from lidp.report.wording import number
from lidp.rounding import at_least, counted, exact

_SHADES = 40


def gauge(name: str, data: Gauge) -> Markup:
    """Draw claim and bound on one line that starts at ε = 0."""
    bound, claim = data.bound, data.claim
    relation = "above" if bound > claim else "at" if bound == claim else "below"
    shown = at_least(bound, above=claim)
    description = f"The lower bound, ε = {shown}, lies {relation} the claimed ε = {data.claim_text}."
    canvas = Canvas(name, "Claim and bound", description, height=104)
    left, right, y = 14.0, WIDTH - 14.0, 46.0

    def at(value: float) -> float:
        return left + value / data.most * (right - left)

    canvas.box("fill track", left, y, right - left, 18)
    canvas.box("fill beyond" if data.refuted else "fill bound", left, y, max(2.0, at(bound) - left), 18)
    canvas.line("halo", [at(claim)] * 2, [y - 8, y + 26])  # keeps the mark visible on the bar
    canvas.line("mark", [at(claim)] * 2, [y - 8, y + 26])
    for value in ticks(0.0, data.most):
        canvas.line("axis", [at(value)] * 2, [y + 18, y + 22])
        canvas.text(tick_text(value), at(value), y + 38, anchor="middle", kind="tick")
    canvas.text("ε", right, y + 54, anchor="end")
    labels = []
    for words, value in ((data.claim_words, claim), (data.bound_words, bound)):
        half = 3.6 * len(words)
        labels.append((words, min(max(at(value), left + half), right - half), half, value == max(bound, claim)))
    crowded = abs(labels[0][1] - labels[1][1]) < labels[0][2] + labels[1][2] + 8
    for (words, middle, _, strong), level in zip(labels, (y - 12, y - 28 if crowded else y - 12), strict=True):
        canvas.text(words, middle, level, anchor="middle", kind="label strong" if strong else "label")
    return canvas.markup()


def path_figure(name: str, path: BoundPath, unit: str) -> Markup:
    """Draw the bound by number of trials, and the claim; for a claimed curve, both bounds and when the curve was refuted."""
    if path.point is None:
        return paths_figure(name, [("the bound", path)], unit, legend=True)
    return paths_figure(name, [("by the curve", path), ("at this δ alone", path.point)], unit, legend=True)


def paths_figure(name: str, paths: Sequence[tuple[str, BoundPath]], unit: str, *, legend: bool = False) -> Markup:
    """Draw the bounds of several audits by number of trials, and the claim if they share one."""
    last = max(int(path.trials[-1]) for _, path in paths)
    claims = {path.claim: path.claim_text for _, path in paths}
    highest = max(*(float(path.epsilons.max()) for _, path in paths), *claims)
    ends = (
        f"{label}: ε = {at_least(path.epsilons[-1], above=path.claim)} after {counted(path.trials[-1], unit)}"
        for label, path in paths
    )
    fell_at = paths[0][1].fell_at if legend else None
    fell = "" if fell_at is None else f" The curve was refuted after {counted(fell_at, unit)}."
    plot = Plot(
        name,
        f"The bound by number of {unit}",
        f"{'; '.join(ends)}. Claimed: {', '.join(claims[claim] for claim in sorted(claims))}.{fell}",
        x=(0, last),
        y=(0, 1.1 * highest or 1.0),
        labels=(unit, "ε"),
    )
    plot.axes(whole=True)
    entries = []
    if len(claims) == 1:
        (claim,) = claims
        plot.line("claim", plot.across([0, last]), plot.up([claim, claim]))
        entries.append(("claim", "the claim"))
    if fell_at is not None:
        plot.line("mark", plot.across([fell_at, fell_at]), plot.up([0, 1.1 * highest]))
    for order, (label, path) in enumerate(paths):
        kind = f"bound-line line-{order % 6}"
        if path.has_path:
            x, y = _steps(path.trials.astype(np.float64), path.epsilons)
            plot.line(kind, plot.across(x), plot.up(y))
        plot.dot(f"bound-dot line-{order % 6}", float(plot.across(path.trials[-1])), float(plot.up(path.epsilons[-1])))
        entries.append((kind if path.has_path else f"dot bound-dot line-{order % 6}", label))
    if fell_at is not None:
        entries.append(("mark", f"curve refuted after {counted(fell_at, unit)}"))
    if legend:
        plot.legend(entries)
    return plot.markup()


def score_figure(name: str, scores: ScoreDistributions, axis: str) -> Markup:
    """Draw the two distributions of scores as outlines over the same bins."""
    most = max(scores.inserted.max(), scores.held_out.max(), 1e-12)
    plot = Plot(
        name,
        "Distributions of inserted and held-out scores",
        f"The mean of {scores.count_inserted:,} inserted scores is {number(scores.mean_inserted)}, "
        f"that of {scores.count_held_out:,} held-out scores is {number(scores.mean_held_out)}.",
        x=(float(scores.edges[0]), float(scores.edges[-1])),
        y=(0, 1.05 * float(most)),
        labels=(axis, "share"),
    )
    plot.axes()
    x = np.repeat(scores.edges, 2)
    for kind, shares in (("held-out", scores.held_out), ("inserted", scores.inserted)):
        y = np.concatenate([[0.0], np.repeat(shares, 2), [0.0]])
        plot.area(f"fill {kind}", plot.across(x), plot.up(y))
        plot.line(f"{kind}-line", plot.across(x), plot.up(y))
    plot.legend([("inserted-line", "inserted"), ("held-out-line", "held-out")])
    return plot.markup()


def roc_figure(name: str, roc: RocCurve, claim: Claim, trade_off: ClaimedTradeOff | None = None) -> Markup:
    """Draw the ROC curve, its band, and the corners that a true claim excludes: by its curve if there is a trade-off."""
    title = "ROC curve of inserted and held-out scores"
    corners = excluded_corners(claim) if trade_off is None else trade_off.claimed.excluded_corners()
    shaded = has_visible_corner(corners[0])
    band = (
        "no band"
        if not roc.has_band or roc.reach_inserted is None or roc.reach_held_out is None
        else f"a band of ± {number(roc.reach_inserted)} and ± {number(roc.reach_held_out)}"
    )
    excluding = f"a true claim of ε = {exact(claim.epsilon)}" if trade_off is None else "the claimed privacy curve"
    description = (
        f"The area under the curve is {number(roc.area)}; the figure has {band}. "
        f"The corners that are excluded by {excluding} are {'shaded' if shaded else 'too small to be seen'}."
    )
    plot = Plot(name, title, description, x=(0, 1), y=(0, 1), labels=("held-out at or above", "inserted at or above"))
    plot.axes()
    for x, y in corners if shaded else ():
        plot.area("fill excluded", plot.across(x), plot.up(y))
    if roc.has_band:
        # Draw only the edges: with few trials a filled band would cover the whole figure.
        for x, y in (roc.upper(), roc.lower()):
            plot.line("band-line", plot.across(x), plot.up(y))
    plot.line("chance", plot.across([0, 1]), plot.up([0, 1]))
    plot.line("inserted-line", plot.across([0, *roc.held_out]), plot.up([0, *roc.inserted]))
    entries = [("inserted-line", "the curve")]
    entries += [("fill excluded", "excluded by a true claim")] if shaded else []
    entries += [("band-line", "band")] if roc.has_band else []
    plot.legend(entries)
    return plot.markup()


def correlation_figure(name: str, data: CanaryCorrelation) -> Markup:
    """Draw the matrix of correlations, with a colour scale from -1 to 1."""
    size = len(data.shown)
    description = (
        f"Correlations between {size} canaries of a trial; the mean over all {data.canaries:,} is {number(data.mean)}, "
        f"and by chance alone a single correlation varies by about ± {number(data.noise)}."
    )
    canvas = Canvas(name, "Correlation between canaries of a trial", description, height=336)
    side = 288 / size
    left = 76.0
    for row, column in np.ndindex(size, size):
        value = float(data.matrix[row, column])
        if row != column and abs(value) >= 0.01:
            canvas.box(_warmth(value), left + column * side, 8 + row * side, side, side, opacity=abs(value))
    for index in range(size):
        canvas.box("fill diagonal", left + index * side, 8 + index * side, side, side)
    x, y = [left, left + 288, left + 288, left, left], [8, 8, 296, 296, 8]
    canvas.line("axis", x, y)
    _correlation_scale(canvas, left, left + 200)
    canvas.legend([("fill diagonal", "itself")], left=left + 216, y=316)
    return canvas.markup()


def _warmth(correlation: float) -> str:
    return "fill warm" if correlation > 0 else "fill cool"


def _correlation_scale(canvas: Canvas, left: float, right: float) -> None:
    """Draw the colour scale of correlations from -1 to 1."""
    width = (right - left) / _SHADES
    for index in range(_SHADES):
        value = (2 * index + 1) / _SHADES - 1
        canvas.box(_warmth(value), left + index * width, 306, width, 10, opacity=abs(value))
    canvas.line("axis", [left, right, right, left, left], [306, 306, 316, 316, 306])
    for words, x in (("−1", left), ("0", (left + right) / 2), ("+1", right)):
        canvas.text(words, x, 330, anchor="middle", kind="tick")


def series_figure(name: str, series: Series) -> Markup:
    """Draw a number by trial: the mean and the range of each bin."""
    low, high = float(series.low.min()), float(series.high.max())
    plot = Plot(
        name,
        f"{series.name} by trial",
        f"{counted(series.count, 'trials')}, {number(series.overall)} on average, from {number(low)} to {number(high)}.",
        x=(0, float(series.last[-1] + 1)),
        y=_axis(low, high),
        labels=("trial", series.name if len(series.name) <= 50 else f"{series.name[:49]}…"),
    )
    plot.axes(whole=True)
    x = plot.across((series.last + np.concatenate([[0], series.last[:-1] + 1])) / 2 + 0.5)
    if len(x) > 1:
        if series.has_range:
            corners = np.concatenate([plot.up(series.high), plot.up(series.low)[::-1]])
            plot.area("fill band", np.concatenate([x, x[::-1]]), corners)
        plot.line("inserted-line", x, plot.up(series.mean))
    else:
        plot.dot("bound-dot", float(x[0]), float(plot.up(series.mean)[0]))
    return plot.markup()


def _axis(low: float, high: float) -> tuple[float, float]:
    """Return the range of an axis: the values with a margin that does not cross 0; from 0 if all values are equal."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = min(0.0, low), max(0.0, high)
    margin = (high - low) / 20 or 1.0
    return (0.0 if 0 <= low < margin else low - margin), (0.0 if -margin < high <= 0 and low < 0 else high + margin)


def _steps(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the corners of a step function that keeps each value until the next."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]
