"""The pictures of the experiments, drawn from their tables and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lidp.reproduce.experiment import Row
from lidp.reproduce.gaussian_correlation import FITTED, fitted, slope

# Colours that stay apart in print and for colour-blind readers.
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#7f7f7f"
_AXES = {"trials": "trials n", "canaries": "canaries K", "dimension": "dimension d"}


def sweep_figure(table: Sequence[Row], axis: str, single: str) -> Figure:
    """A panel for each nominal ε: ε̂ against the axis, a line for each method, bands of one standard error."""
    lines = [
        (single, "paper", single, GREY, "-"),
        ("1st-order Wilson", "paper", "LiDP + 1st-order Wilson", BLUE, "-"),
        ("2nd-order Wilson", "paper", "LiDP + 2nd-order Wilson", ORANGE, "-"),
        ("4th-order Wilson", "paper", "LiDP + 4th-order Wilson", GREEN, "-"),
        ("2nd-order Wilson", "tail", "... 2nd order, tail candidates", ORANGE, "--"),
        ("lifted betting", "none", "lifted betting", RED, "-"),
        ("coin wager", "none", "coin wager", PURPLE, "-"),
    ]
    nominals = sorted({row["nominal_epsilon"] for row in table})
    figure = Figure(figsize=(3.1 * len(nominals), 3.6), layout="constrained")
    for axes, nominal in zip(np.atleast_1d(figure.subplots(1, len(nominals))), nominals, strict=True):
        here = [row for row in table if row["nominal_epsilon"] == nominal]
        for method, candidates, label, colour, style in lines:
            rows = [row for row in here if (row["method"], row["candidates"]) == (method, candidates)]
            if len(rows) == 1 and axis != "trials":  # one canary, whatever K is
                axes.axhline(rows[0]["epsilon_hat"], color=colour, label=label)
                continue
            band(axes, rows, axis, label, colour, style)
        axes.axhline(here[0]["exact_epsilon"], color="black", linestyle=":", label="exact ε")
        axes.axhline(nominal, color="black", linestyle=(0, (1, 4)), label="nominal ε (Rényi accounting)")
        axes.set_title(f"nominal ε = {nominal:g} (exact {here[0]['exact_epsilon']:.2f})")
        logarithmic(axes, [row[axis] for row in here], base=10 if axis == "dimension" else 2)
        axes.set_xlabel(_AXES[axis])
        axes.set_ylim(bottom=0)
    figure.axes[0].set_ylabel("lower bound ε̂")
    legend(figure)
    return figure


def bias_variance_figure(table: Sequence[Row]) -> Figure:
    """Bias and variance gains against K, a panel for each nominal ε."""
    nominals = sorted({row["nominal_epsilon"] for row in table})
    figure = Figure(figsize=(3.1 * len(nominals), 3.4), layout="constrained")
    columns = [
        ("bias", "ΔBias(K)", BLUE),
        ("variance_gain_2", "ΔVar(K, 2)", ORANGE),
        ("variance_gain_4", "ΔVar(K, 4)", GREEN),
    ]
    for axes, nominal in zip(np.atleast_1d(figure.subplots(1, len(nominals))), nominals, strict=True):
        here = [row for row in table if (row["nominal_epsilon"], row["candidates"]) == (nominal, "paper")]
        for column, label, colour in columns:
            rows = [
                {"canaries": row["canaries"], "epsilon_hat": row[column], "standard_error": row[f"{column}_error"]}
                for row in here
                if row[column] != ""
            ]
            band(axes, rows, "canaries", label, colour, "-")
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_title(f"nominal ε = {nominal:g}")
        logarithmic(axes, [row["canaries"] for row in here], base=2)
        axes.set_xlabel(_AXES["canaries"])
    figure.axes[0].set_ylabel("change of ε̂")
    legend(figure)
    return figure


def correlation_figure(table: Sequence[Row]) -> Figure:
    """The two differences of moments against K and against d, log-log, with fitted lines at ε = 2."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    nominal = 2.0
    for axes, axis in zip(figure.subplots(1, 2), FITTED, strict=True):
        arm, statistic = FITTED[axis]
        every = [row for row in table if (row["axis"], row["arm"], row["nominal_epsilon"]) == (axis, arm, nominal)]
        for moment, label, colour in (("second", "|μ̂2 - μ̂1²|", BLUE), ("fourth", "|μ̂4 - μ̂2²|", ORANGE)):
            values = [abs(row[f"{moment}_{statistic}"]) for row in every]
            axes.loglog([row[axis] for row in every], values, "o", color=colour, fillstyle="none")
            used = fitted(table, axis, moment, nominal)
            found = slope(table, axis, moment, nominal)
            if found is not None:
                x = np.array([row[axis] for row in used], dtype=float)
                y = np.array([row[f"{moment}_{statistic}"] for row in used])
                axes.plot(x, y, "o", color=colour)
                middle = np.exp(np.mean(np.log(y)) + found * (np.log(x) - np.mean(np.log(x))))
                axes.plot(x, middle, color=colour, label=f"{label}, slope {found:.2f}")
        if axis == "canaries":
            axes.plot(
                [row[axis] for row in every],
                [row["size_if_independent"] for row in every],
                ":",
                color="black",
                label="independent canaries: noise only",
            )
        else:
            error = [3 * row["second_error"] for row in every]
            axes.plot(
                [row[axis] for row in every], error, ":", color="black", label="3 standard errors (hollow: not fitted)"
            )
        axes.set_xlabel(_AXES[axis])
        axes.set_title(f"{arm} canaries, n = {every[0]['trials']:,}, nominal ε = 2")
        axes.legend(frameon=False)
    return figure


def models_figure(table: Sequence[Row], targets: Iterable[float]) -> Figure:
    """ε̂ against models trained, a line for each method."""
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    axes = figure.subplots()
    keys = dict.fromkeys((row["method"], row["candidates"]) for row in table)
    shown = [
        ("DP + Wilson", "paper", "one canary, Wilson (paper)", GREY, "-"),
        ("DP + Wilson", "tail", "one canary, Wilson, tail candidates", GREY, "--"),
        ("2nd-order Wilson", "paper", "2nd-order Wilson (paper)", ORANGE, "-"),
        ("2nd-order Wilson", "tail", "2nd-order Wilson, tail candidates", ORANGE, "--"),
        ("2nd-order Bernstein", "tail", "2nd-order Bernstein", GREEN, "-"),
        ("lifted betting", "none", "lifted betting", RED, "-"),
        ("one run, pooled", "none", "one run, pooled", BLUE, "-"),
        ("coin wager", "none", "coin wager", PURPLE, "-"),
    ]
    for method, candidates, label, colour, style in shown:
        if (method, candidates) in keys:
            band(
                axes,
                [r for r in table if (r["method"], r["candidates"]) == (method, candidates)],
                "models",
                label,
                colour,
                style,
            )
    for target in targets:
        axes.axhline(target, color="black", linestyle=":", linewidth=0.8)
        axes.annotate(
            f"{target}", (1, target), xycoords=("axes fraction", "data"), xytext=(3, -3), textcoords="offset points"
        )
    axes.set_xscale("log", base=10)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("models trained, tuning counted")
    axes.set_ylabel("lower bound ε̂ (nominal ε = 2)")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.06, 1))
    return figure


def interval_figure(table: Sequence[Row]) -> Figure:
    """Distances of the lower and the upper limit from p, against n, log-log."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, side, words in zip(
        figure.subplots(1, 2), ("below", "above"), ("p - lower limit", "upper limit - p"), strict=True
    ):
        for name, colour in zip(dict.fromkeys(row["interval"] for row in table), (BLUE, ORANGE, GREEN, RED), strict=True):
            rows = [row for row in table if row["interval"] == name]
            axes.loglog(
                [row["trials"] for row in rows], [row[side] for row in rows], "o-", color=colour, label=name, markersize=3
            )
        axes.axvline(100, color="black", linestyle=":", linewidth=0.8)
        axes.set_xlabel("n (dotted: 1/p²)")
        axes.set_ylabel(words)
        axes.legend(frameon=False)
    return figure


def band(axes: Axes, rows: Sequence[Row], axis: str, label: str, colour: str, style: str) -> None:
    """A line with a band of one standard error."""
    rows = sorted(rows, key=lambda row: row[axis])
    x = [row[axis] for row in rows]
    mean = np.array([row["epsilon_hat"] for row in rows], dtype=float)
    error = np.array([row["standard_error"] for row in rows], dtype=float)
    axes.plot(x, mean, style, color=colour, label=label, marker="o", markersize=2.5, linewidth=1.3)
    axes.fill_between(x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


def logarithmic(axes: Axes, values: Sequence[int], base: int) -> None:
    """A logarithmic axis just wide enough for the values."""
    axes.set_xscale("log", base=base)
    axes.set_xlim(min(values) / 1.15, max(values) * 1.15)


def legend(figure: Figure) -> None:
    """One legend below all panels, of the lines of the first."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
