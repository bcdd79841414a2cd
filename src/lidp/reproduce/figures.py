"""Draw the figure of each experiment from its table and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from lidp.reproduce.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    add_legend,
    draw_band,
    panels,
    use_log_scale,
)
from lidp.reproduce.experiment import Row
from lidp.reproduce.gaussian_correlation import FITTED, fitted, slope
from lidp.reproduce.models_needed import TARGETS
from lidp.reproduce.sweeps import SINGLE, select
from lidp.reproduce.training_figures import (
    canaries_figure,
    factors_figure,
    trials_figure,
    utility_figure,
    wagers_figure,
)

_AXES = {"trials": "trials n", "canaries": "canaries K", "dimension": "dimension d"}
_SWEEP_LINES = (  # method, candidates, label, colour, style
    (SINGLE, "paper", SINGLE, GREY, "-"),
    ("1st-order Wilson", "paper", "LiDP + 1st-order Wilson", BLUE, "-"),
    ("2nd-order Wilson", "paper", "LiDP + 2nd-order Wilson", ORANGE, "-"),
    ("4th-order Wilson", "paper", "LiDP + 4th-order Wilson", GREEN, "-"),
    ("2nd-order Wilson", "tail", "... 2nd order, tail candidates", ORANGE, "--"),
    ("lifted betting", "none", "lifted betting", RED, "-"),
    ("coin wager", "none", "coin wager", PURPLE, "-"),
)
_MODELS_LINES = (
    (SINGLE, "paper", "one canary, Wilson (paper)", GREY, "-"),
    (SINGLE, "tail", "one canary, Wilson, tail candidates", GREY, "--"),
    ("2nd-order Wilson", "paper", "2nd-order Wilson (paper)", ORANGE, "-"),
    ("2nd-order Wilson", "tail", "2nd-order Wilson, tail candidates", ORANGE, "--"),
    ("2nd-order Bernstein", "tail", "2nd-order Bernstein", GREEN, "-"),
    ("lifted betting", "none", "lifted betting", RED, "-"),
    ("one run, pooled", "none", "one run, pooled", BLUE, "-"),
    ("coin wager", "none", "coin wager", PURPLE, "-"),
)


def sweep_figure(table: Sequence[Row], axis: str) -> Figure:
    """Draw ε̂ against the axis: a panel per nominal ε, a line per method."""
    nominals = sorted({row["nominal_epsilon"] for row in table})
    figure, every = panels(len(nominals), width=3.1 * len(nominals), height=3.6)
    for axes, nominal in zip(every, nominals, strict=True):
        here = select(table, nominal_epsilon=nominal)
        for method, candidates, label, colour, style in _SWEEP_LINES:
            rows = select(here, method=method, candidates=candidates)
            if len(rows) == 1 and axis != "trials":  # one canary, the same for every K
                axes.axhline(rows[0]["epsilon_hat"], color=colour, label=label)
            else:
                draw_band(axes, rows, axis, style=style, label=label, color=colour)
        exact = here[0]["exact_epsilon"]
        axes.axhline(exact, color="black", linestyle=":", label="exact ε")
        axes.axhline(nominal, color="black", linestyle=(0, (1, 4)), label="nominal ε (Rényi accounting)")
        axes.set(title=f"nominal ε = {nominal:g} (exact {exact:.2f})", xlabel=_AXES[axis])
        use_log_scale(axes, [row[axis] for row in here], base=10 if axis == "dimension" else 2)
        axes.set_ylim(bottom=0)
    every[0].set_ylabel("lower bound ε̂")
    add_legend(figure)
    return figure


def bias_variance_figure(table: Sequence[Row]) -> Figure:
    """Draw bias and variance gains against K: a panel per nominal ε."""
    lines = [
        ("bias", "ΔBias(K)", BLUE),
        ("variance_gain_2", "ΔVar(K, 2)", ORANGE),
        ("variance_gain_4", "ΔVar(K, 4)", GREEN),
    ]
    nominals = sorted({row["nominal_epsilon"] for row in table})
    figure, every = panels(len(nominals), width=3.1 * len(nominals), height=3.4)
    for axes, nominal in zip(every, nominals, strict=True):
        here = select(table, nominal_epsilon=nominal, candidates="paper")
        for column, label, colour in lines:
            rows = [row | {"standard_error": row[f"{column}_error"]} for row in here if row[column] != ""]
            draw_band(axes, rows, "canaries", column, label=label, color=colour)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set(title=f"nominal ε = {nominal:g}", xlabel=_AXES["canaries"])
        use_log_scale(axes, [row["canaries"] for row in here])
    every[0].set_ylabel("change of ε̂")
    add_legend(figure)
    return figure


def correlation_figure(table: Sequence[Row]) -> Figure:
    """Draw the two differences of moments against K and against d at ε = 2, log-log, with fitted lines."""
    figure, every = panels(2, width=9, height=3.8)
    for axes, (axis, (arm, statistic)) in zip(every, FITTED.items(), strict=True):
        rows = select(table, axis=axis, arm=arm, nominal_epsilon=2.0)
        for moment, label, colour in (("second", "|μ̂2 - μ̂1²|", BLUE), ("fourth", "|μ̂4 - μ̂2²|", ORANGE)):
            column = f"{moment}_{statistic}"
            axes.loglog(
                [row[axis] for row in rows], [abs(row[column]) for row in rows], "o", color=colour, fillstyle="none"
            )
            exponent = slope(table, axis, moment, 2.0)
            if exponent is not None:
                used = fitted(table, axis, moment, 2.0)
                x, y = (np.array([row[name] for row in used], dtype=float) for name in (axis, column))
                line = np.exp(np.mean(np.log(y)) + exponent * (np.log(x) - np.mean(np.log(x))))
                axes.plot(x, y, "o", color=colour)
                axes.plot(x, line, color=colour, label=f"{label}, slope {exponent:.2f}")
        noise, label = {
            "canaries": ([row["size_if_independent"] for row in rows], "independent canaries: noise only"),
            "dimension": ([3 * row["second_error"] for row in rows], "3 standard errors (hollow: not fitted)"),
        }[axis]
        axes.plot([row[axis] for row in rows], noise, ":", color="black", label=label)
        axes.set(xlabel=_AXES[axis], title=f"{arm} canaries, n = {rows[0]['trials']:,}, nominal ε = 2")
        axes.minorticks_off()
        axes.legend(frameon=False)
    return figure


def models_figure(table: Sequence[Row]) -> Figure:
    """Draw ε̂ against models trained: a line per method."""
    figure, (axes,) = panels(1, width=8, height=4.4)
    for method, candidates, label, colour, style in _MODELS_LINES:
        rows = select(table, method=method, candidates=candidates)
        if rows:
            draw_band(axes, rows, "models", style=style, label=label, color=colour)
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
    figure, every = panels(2, width=8, height=3.4)
    for axes, side, label in zip(every, ("below", "above"), ("p - lower limit", "upper limit - p"), strict=True):
        for name, colour in zip(dict.fromkeys(row["interval"] for row in table), (BLUE, ORANGE, GREEN, RED), strict=True):
            rows = select(table, interval=name)
            x, y = ([row[column] for row in rows] for column in ("trials", side))
            axes.loglog(x, y, "o-", color=colour, label=name, markersize=3)
        axes.axvline(100, color="black", linestyle=":", linewidth=0.8)
        axes.set(xlabel="n (dotted: 1/p²)", ylabel=label)
        axes.minorticks_off()
        axes.legend(frameon=False)
    return figure


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
    "fmnist-canaries": canaries_figure,
    "utility": utility_figure,
    "fmnist-wagers": wagers_figure,
}
"""How to draw the table of each experiment."""
