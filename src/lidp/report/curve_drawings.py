"""Draw the figures of a claimed privacy curve as inline SVG, from their data."""

from __future__ import annotations

from markupsafe import Markup

from lidp.report.curve_figure_data import ClaimedTradeOff, NoiseGauge
from lidp.report.roc import RocCurve, has_visible_corner
from lidp.report.svg import WIDTH, Canvas, Plot, tick_text, ticks
from lidp.rounding import at_most


def noise_gauge(name: str, data: NoiseGauge) -> Markup:
    """Draw the claimed noise as a mark, and the amounts of noise that the audit excluded as a bar, on a line from 0."""
    claimed = f"The claimed {data.name}, {data.claimed:.4g}, is at 1."
    if data.noise is None:
        description = f"{claimed} No amount of noise is excluded."
    else:
        start = "1 and more" if data.noise == 1 else f"{at_most(data.noise)} times as much and more"
        excluded = "Provisionally excluded" if data.provisional else "Excluded"
        relation = "includes" if data.noise <= 1 else "does not include"
        description = f"{claimed} {excluded}: {start}, which {relation} the claim."
    canvas = Canvas(name, "Effective noise and claimed noise", description, height=104)
    left, right, y = 14.0, WIDTH - 14.0, 46.0

    def at(value: float) -> float:
        return left + value / data.most * (right - left)

    canvas.box("fill track", left, y, right - left, 18)
    if data.noise is not None:
        canvas.box("fill beyond" if data.refuted else "fill bound", at(data.noise), y, right - at(data.noise), 18)
    canvas.line("halo", [at(1.0)] * 2, [y - 8, y + 26])  # keeps the mark visible on the bar
    canvas.line("mark", [at(1.0)] * 2, [y - 8, y + 26])
    for value in ticks(0.0, data.most):
        canvas.line("axis", [at(value)] * 2, [y + 18, y + 22])
        canvas.text(tick_text(value), at(value), y + 38, anchor="middle", kind="tick")
    canvas.text("noise, in units of the claimed noise", right, y + 54, anchor="end")
    noise_at = left if data.noise is None else at(data.noise)
    half = 3.6 * len(data.noise_words)
    middle = min(max(noise_at, left + half), right - half)
    claim_half = 3.6 * len(data.claim_words)
    crowded = abs(middle - at(1.0)) < half + claim_half + 8
    canvas.text(data.claim_words, at(1.0), y - 12, anchor="middle")
    canvas.text(data.noise_words, middle, y - 28 if crowded else y - 12, anchor="middle", kind="label strong")
    return canvas.markup()


def trade_off_figure(name: str, data: ClaimedTradeOff, roc: RocCurve) -> Markup:
    """Draw the errors that the claimed curve excludes, the curve that was shown to be exceeded, and the observed errors."""
    shaded = has_visible_corner(data.claimed.excluded_corners()[0])
    corner = "The shaded corner" if shaded else "The corner below the claim, too small to be shaded,"
    described = [f"{corner} has the pairs of error rates that the claimed privacy curve excludes."]
    if data.exceeded is not None and data.noise is not None:
        times = at_most(data.noise)
        described.append(f"One line is the curve of {times} times the claimed noise, which the audit excludes.")
    if data.refuted:
        described.append("The claimed curve is refuted.")
    described.append("Another line has the errors that were observed at each threshold of the scores.")
    plot = Plot(
        name,
        "Trade-off between the two kinds of errors",
        " ".join(described),
        x=(0, 1),
        y=(0, 1),
        labels=("false positive rate", "false negative rate"),
    )
    plot.axes()
    corners = data.claimed.visible()
    x, y = plot.across(corners[0]), plot.up(corners[1])
    if shaded:
        plot.area("fill excluded", [*x, float(plot.across(0.0))], [*y, float(plot.up(0.0))])
    plot.line("chance", plot.across([0, 1]), plot.up([1, 0]))
    plot.line("claim", x, y)
    entries = [("claim", "claim"), ("fill excluded", "excluded")] if shaded else [("claim", "claim")]
    if data.exceeded is not None:
        kind = "bound-line line-3"
        corners = data.exceeded.visible()
        plot.line(kind, plot.across(corners[0]), plot.up(corners[1]))
        entries.append((kind, "exceeded"))
    plot.line("inserted-line", plot.across([0, *roc.held_out]), plot.up([1, *(1 - roc.inserted)]))
    plot.legend([*entries, ("inserted-line", "observed")])
    return plot.markup()
