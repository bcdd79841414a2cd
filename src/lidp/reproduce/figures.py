"""Draw the figure of each experiment from its table and nothing else."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lidp.report.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, new_figure
from lidp.reproduce.correlation import FITTED, MOMENTS, fitted, slope
from lidp.reproduce.models_needed import TARGETS
from lidp.reproduce.setting import NO_CANDIDATES, SINGLE
from lidp.reproduce.svg import shorten_svg
from lidp.reproduce.tables import Row, group, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panel: TypeAlias = "tuple[Axes, Any, list[Row]]"
_NAMES = {
    "trials": "trials n",
    "canaries": "canaries K",
    "dimension": "dimension d",
    "models": "models trained, tuning and pilots counted",
}


@dataclass(frozen=True)
class Line:
    """A line with a band of one standard error, through the rows that have certain values."""

    label: str
    colour: str
    rows: Row
    style: str = "-"
    y: str = "epsilon_hat"
    error: str = "standard_error"

    def draw(self, axes: Axes, table: Sequence[Row], x: str) -> None:
        """Draw the line against a column, if the table has its rows."""
        rows = sorted((row for row in select(table, **self.rows) if row[self.y] != ""), key=lambda row: row[x])
        if not rows:
            return
        positions = [row[x] for row in rows]
        mean, error = (np.array([row[name] for row in rows], dtype=float) for name in (self.y, self.error))
        axes.plot(
            positions, mean, self.style, marker="o", markersize=2.5, linewidth=1.3, label=self.label, color=self.colour
        )
        axes.fill_between(positions, mean - error, mean + error, color=self.colour, alpha=0.2, linewidth=0)


def _bound_lines(candidates: str, variant: Line, **values: str) -> list[Line]:
    """Return the lines of intervals with these candidates, of a variant to compare them with, and of bets."""
    colours = {"1st-order Wilson": BLUE, "2nd-order Wilson": ORANGE, "4th-order Wilson": GREEN}
    lines = [Line(SINGLE, GREY, {"method": SINGLE, "candidates": candidates} | values)]
    for method, colour in colours.items():
        lines.append(Line(f"LiDP + {method}", colour, {"method": method, "candidates": candidates} | values))
    lines.append(variant)
    for method, colour in (("lifted betting", RED), ("coin wager", PURPLE)):
        lines.append(Line(method, colour, {"method": method, "candidates": NO_CANDIDATES} | values))
    return lines


_SECOND = {"method": "2nd-order Wilson", "candidates": "tail"}
_SWEEP_LINES = _bound_lines("paper", Line("... 2nd order, tail candidates", ORANGE, _SECOND, "--"))
_TRAINING_LINES = _bound_lines(
    "tail", Line("... 2nd order, raw scores", ORANGE, _SECOND | {"score": "raw"}, "--"), score="centred"
)
_MODELS_LINES = [
    Line(label, colour, {"method": method, "candidates": candidates}, style)
    for method, candidates, label, colour, style in (
        (SINGLE, "paper", "one canary, Wilson (paper)", GREY, "-"),
        (SINGLE, "tail", "one canary, Wilson, tail candidates", GREY, "--"),
        ("2nd-order Wilson", "paper", "2nd-order Wilson (paper)", ORANGE, "-"),
        ("2nd-order Wilson", "tail", "2nd-order Wilson, tail candidates", ORANGE, "--"),
        ("2nd-order Bernstein", "tail", "2nd-order Bernstein", GREEN, "-"),
        ("lifted betting", NO_CANDIDATES, "lifted betting", RED, "-"),
        ("one run, pooled", NO_CANDIDATES, "one run, pooled", BLUE, "-"),
        ("coin wager", NO_CANDIDATES, "coin wager", PURPLE, "-"),
    )
]


def _subplots(columns: int, *, width: float, height: float, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels, and the panels row by row."""
    figure = new_figure(width, height)
    return figure, list(np.ravel(figure.subplots(rows, columns)))


def _panels(table: Sequence[Row], column: str, *, width: float, height: float) -> tuple[Figure, list[Panel]]:
    """Return a figure with a panel per value in a column; for each panel its axes, the value, and the rows that have it."""
    values = sorted({row[column] for row in table})
    figure, every = _subplots(len(values), width=width * len(values), height=height)
    return figure, [(axes, value, select(table, **{column: value})) for axes, value in zip(every, values, strict=True)]


def _use_log_scale(axes: Axes, values: Sequence[int], base: int = 2) -> None:
    """Make the horizontal axis logarithmic and just wide enough for the values."""
    axes.set_xscale("log", base=base)
    axes.set_xlim(min(values) / 1.15, max(values) * 1.15)
    axes.minorticks_off()


def _finish(figure: Figure, ylabel: str, columns: int | None = None) -> Figure:
    """Name the vertical axes of the first column, and add one legend below all panels, for the lines of the first panel."""
    for axes in figure.axes[:: columns or len(figure.axes)]:
        axes.set_ylabel(ylabel)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def sweep_figure(table: Sequence[Row], axis: str) -> Figure:
    """Draw ε̂ against the axis: a panel per nominal ε, a line per method."""
    figure, panels = _panels(table, "nominal_epsilon", width=3.1, height=3.6)
    for axes, nominal, here in panels:
        for line in _SWEEP_LINES:
            rows = select(here, **line.rows)
            if len(rows) == 1 and axis != "trials":  # one canary, the same for every K
                axes.axhline(rows[0]["epsilon_hat"], color=line.colour, label=line.label)
            else:
                line.draw(axes, rows, axis)
        exact = here[0]["exact_epsilon"]
        axes.axhline(exact, color="black", linestyle=":", label="exact ε")
        axes.axhline(nominal, color="black", linestyle=(0, (1, 4)), label="nominal ε (Rényi accounting)")
        axes.set(title=f"nominal ε = {nominal:g} (exact {exact:.2f})", xlabel=_NAMES[axis])
        _use_log_scale(axes, [row[axis] for row in here], base=10 if axis == "dimension" else 2)
        axes.set_ylim(bottom=0)
    return _finish(figure, "lower bound ε̂")


def bias_variance_figure(table: Sequence[Row]) -> Figure:
    """Draw bias and variance gains against K: a panel per nominal ε."""
    columns = {
        "bias": ("ΔBias(K)", BLUE),
        "variance_gain_2": ("ΔVar(K, 2)", ORANGE),
        "variance_gain_4": ("ΔVar(K, 4)", GREEN),
    }
    figure, panels = _panels(select(table, candidates="paper"), "nominal_epsilon", width=3.1, height=3.4)
    for axes, nominal, here in panels:
        for column, (label, colour) in columns.items():
            Line(label, colour, {}, y=column, error=f"{column}_error").draw(axes, here, "canaries")
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set(title=f"nominal ε = {nominal:g}", xlabel=_NAMES["canaries"])
        _use_log_scale(axes, [row["canaries"] for row in here])
    return _finish(figure, "change of ε̂")


def correlation_figure(table: Sequence[Row]) -> Figure:
    """Draw the two differences of moments against K and against d at ε = 2, log-log, with fitted lines."""
    figure, every = _subplots(2, width=9, height=3.8)
    for axes, (axis, (arm, statistic)) in zip(every, FITTED.items(), strict=True):
        rows = select(table, axis=axis, arm=arm, nominal_epsilon=2.0)
        positions = [row[axis] for row in rows]
        for (moment, label), colour in zip(MOMENTS.items(), (BLUE, ORANGE), strict=True):
            column = f"{moment}_{statistic}"
            axes.loglog(positions, [abs(row[column]) for row in rows], "o", color=colour, fillstyle="none")
            exponent = slope(table, axis, moment)
            if exponent is not None:
                used = fitted(table, axis, moment)
                x, y = (np.array([row[name] for row in used], dtype=float) for name in (axis, column))
                line = np.exp(np.mean(np.log(y)) + exponent * (np.log(x) - np.mean(np.log(x))))
                axes.plot(x, y, "o", color=colour)
                axes.plot(x, line, color=colour, label=f"{label}, slope {exponent:.2f}")
        noise, label = {
            "canaries": ([row["size_if_independent"] for row in rows], "independent canaries: noise only"),
            "dimension": ([3 * row["second_error"] for row in rows], "3 standard errors (hollow: not fitted)"),
        }[axis]
        axes.plot(positions, noise, ":", color="black", label=label)
        axes.set(xlabel=_NAMES[axis], title=f"{arm} canaries, n = {rows[0]['trials']:,}, nominal ε = 2")
        axes.minorticks_off()
        axes.legend(frameon=False)
    return figure


def models_figure(table: Sequence[Row]) -> Figure:
    """Draw ε̂ against models trained: a line per method."""
    figure, (axes,) = _subplots(1, width=8, height=4.4)
    for line in _MODELS_LINES:
        line.draw(axes, table, "models")
    for target in TARGETS:
        axes.axhline(target, color="black", linestyle=":", linewidth=0.8)
        axes.text(1.01, target, f"{target}", va="center", transform=axes.get_yaxis_transform())
    axes.set_xscale("log", base=10)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set(xlabel="models trained, tuning counted", ylabel="lower bound ε̂ (nominal ε = 2)")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.06, 1))
    return figure


def interval_figure(table: Sequence[Row]) -> Figure:
    """Draw the distances of the lower and the upper limit from p against n, log-log."""
    figure, every = _subplots(2, width=8, height=3.4)
    for axes, side, label in zip(every, ("below", "above"), ("p - lower limit", "upper limit - p"), strict=True):
        for ((name,), rows), colour in zip(group(table, "interval").items(), (BLUE, ORANGE, GREEN, RED), strict=True):
            x, y = ([row[column] for row in rows] for column in ("trials", side))
            axes.loglog(x, y, "o-", color=colour, label=name, markersize=3)
        axes.axvline(100, color="black", linestyle=":", linewidth=0.8)
        axes.set(xlabel="n (dotted: 1/p²)", ylabel=label)
        axes.minorticks_off()
        axes.legend(frameon=False)
    return figure


def _training_figure(table: Sequence[Row], axis: str) -> Figure:
    """Draw ε̂ against the axis: a panel per kind of canary and nominal ε, a line per method."""
    canaries, nominals = (sorted({row[name] for row in table}) for name in ("canary", "nominal_epsilon"))
    rows, columns = (len(canaries), len(nominals)) if len(nominals) > 1 else (1, len(canaries))
    figure, every = _subplots(columns, rows=rows, width=max(9.0, 3.1 * columns), height=2.9 * rows + 0.7)
    for (canary, nominal), axes in zip(itertools.product(canaries, nominals), every, strict=True):
        here = select(table, canary=canary, nominal_epsilon=nominal)
        for line in _TRAINING_LINES:
            line.draw(axes, here, axis)
        if here:
            _use_log_scale(axes, [row[axis] for row in here])
        axes.set(title=f"{canary}, ε = {nominal:g}", xlabel=_NAMES[axis])
        axes.set_ylim(bottom=0)
    return _finish(figure, "lower bound ε̂", columns)


def trials_figure(table: Sequence[Row]) -> Figure:
    """Draw ε̂ against all models trained, for many canaries, and for one as the baseline."""
    most = max(row["canaries"] for row in table)
    return _training_figure([row for row in table if row["canaries"] == most or row["method"] == SINGLE], "models")


def canaries_figure(table: Sequence[Row]) -> Figure:
    """Draw ε̂ against the number of canaries, at the largest number of trials."""
    return _training_figure(select(table, trials=max(row["trials"] for row in table)), "canaries")


def factors_figure(table: Sequence[Row]) -> Figure:
    """Draw how many times fewer trials many canaries need, ours beside the paper's: a panel per data set and model."""
    shown = select(table, score="centred", candidates="tail", method="2nd-order Wilson")
    figure, panels = _panels(shown, "pair", width=4.2, height=3.4)
    for axes, pair, rows in panels:
        positions = np.arange(len(rows))
        axes.bar(positions - 0.2, [row["paper"] for row in rows], 0.4, color=GREY, label="paper")
        axes.bar(positions + 0.2, [row["factor"] or 0 for row in rows], 0.4, color=ORANGE, label="ours")
        axes.axhline(1, color="black", linewidth=0.8)
        labels = [f"{row['canary'].split('-')[0]}\nε = {row['nominal_epsilon']:g}" for row in rows]
        axes.set_xticks(positions, labels, fontsize=7)
        axes.set_yscale("log", base=2)
        axes.set_title(f"{pair}, 2nd-order Wilson")
    return _finish(figure, "times fewer trials than one canary")


def utility_figure(table: Sequence[Row]) -> Figure:
    """Draw test accuracy against the number of canaries: a panel per kind of canary, a line per nominal ε."""
    nominals = sorted({row["nominal_epsilon"] for row in table})
    figure, panels = _panels(table, "canary", width=4.4, height=3.4)
    for axes, canary, rows in panels:
        for nominal, colour in zip(nominals, (BLUE, ORANGE, GREEN, PURPLE), strict=False):
            line = Line(f"nominal ε = {nominal:g}", colour, {"nominal_epsilon": nominal}, y="accuracy")
            line.draw(axes, rows, "canaries")
        _use_log_scale(axes, [row["canaries"] for row in table])
        axes.set(ylim=(0, 1), title=canary, xlabel=_NAMES["canaries"])
    return _finish(figure, "test accuracy")


def wagers_figure(table: Sequence[Row]) -> Figure:
    """Draw ε̂ of the coin wager against models trained: a panel per size of the data."""
    figure, panels = _panels(table, "records", width=4.4, height=3.4)
    colours = {"random-gradient": BLUE, "dirac-gradient": ORANGE}
    for axes, records, here in panels:
        fewest = min(row["canaries"] for row in here)
        for canary, canaries in group(here, "canary", "canaries"):
            rows = {"canary": canary, "canaries": canaries}
            line = Line(f"{canary}, K = {canaries}", colours[canary], rows, "-" if canaries == fewest else "--")
            line.draw(axes, here, "models")
        title = f"{records:,} records, nominal ε = {here[0]['nominal_epsilon']:g}"
        axes.set(title=title, xlabel="models trained, pilots included")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
    figure.axes[0].set_ylabel("lower bound ε̂")
    return figure


def transcripts_figure(table: Sequence[Row]) -> Figure:
    """Draw ε̂ against models trained: a panel per nominal ε, a line per method, number of canaries and share of the noise."""
    figure, panels = _panels(table, "nominal_epsilon", width=4.6, height=3.8)
    for axes, nominal, here in panels:
        lines = group(here, "method", "noise", "canaries")
        for (method, noise, canaries), colour in zip(
            lines, itertools.cycle((BLUE, PURPLE, ORANGE, RED, GREEN)), strict=False
        ):
            label = method if method.startswith("final") else f"{method}, K = {canaries}"
            label += "" if noise == 1 else f", {noise:g} times the noise"
            rows = {"method": method, "noise": noise, "canaries": canaries}
            Line(label, colour, rows, "--" if "point" in method else "-").draw(axes, here, "models")
        axes.axhline(nominal, color="black", linestyle=":", label="nominal ε")
        axes.set(title=f"nominal ε = {nominal:g}", xlabel=_NAMES["models"])
        axes.set_xscale("log", base=10)
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
    return _finish(figure, "lower bound ε̂")


FIGURES: dict[str, Callable[[Sequence[Row]], Figure]] = {
    "gaussian-trials": partial(sweep_figure, axis="trials"),
    "gaussian-canaries": partial(sweep_figure, axis="canaries"),
    "gaussian-dimension": partial(sweep_figure, axis="dimension"),
    "gaussian-bias-variance": bias_variance_figure,
    "gaussian-correlation": correlation_figure,
    "models-needed": models_figure,
    "binomial-intervals": interval_figure,
    "table-1": factors_figure,
    "fmnist-trials": trials_figure,
    "fmnist-mlp-trials": trials_figure,
    "purchases-trials": trials_figure,
    "journey-trials": trials_figure,
    "fmnist-replace-one": trials_figure,
    "fmnist-canaries": canaries_figure,
    "utility": utility_figure,
    "fmnist-wagers": wagers_figure,
    "fmnist-transcripts": transcripts_figure,
    "cifar10-transcripts": transcripts_figure,
}
"""How to draw the table of each experiment."""


def write_figure(path: Path, experiment: str, table: Sequence[Row]) -> None:
    """Draw the table of an experiment and write the figure as SVG, the same bytes each time."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": experiment, "svg.fonttype": "none", "font.size": 9}):
        text = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        FIGURES[experiment](table).savefig(text, format="svg", metadata=nothing)
    path.write_text(shorten_svg(text.getvalue()), encoding="utf-8")
