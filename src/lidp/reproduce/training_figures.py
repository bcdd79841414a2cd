"""Draw the figures of the experiments on trained models from their tables and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

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
from lidp.reproduce.sweeps import SINGLE, select

_LINES = (  # method, candidates, score, label, colour, style
    (SINGLE, "tail", "centred", SINGLE, GREY, "-"),
    ("1st-order Wilson", "tail", "centred", "LiDP + 1st-order Wilson", BLUE, "-"),
    ("2nd-order Wilson", "tail", "centred", "LiDP + 2nd-order Wilson", ORANGE, "-"),
    ("4th-order Wilson", "tail", "centred", "LiDP + 4th-order Wilson", GREEN, "-"),
    ("2nd-order Wilson", "tail", "raw", "... 2nd order, raw scores", ORANGE, "--"),
    ("lifted betting", "none", "centred", "lifted betting", RED, "-"),
    ("coin wager", "none", "centred", "coin wager", PURPLE, "-"),
)


def _grid(table: Sequence[Row], axis: str, label: str) -> Figure:
    """Draw ε̂ against the axis: a panel per kind of canary and nominal ε, a line per method."""
    canaries = sorted({row["canary"] for row in table})
    nominals = sorted({row["nominal_epsilon"] for row in table})
    rows, columns = (len(canaries), len(nominals)) if len(nominals) > 1 else (1, len(canaries))
    figure, every = panels(columns, rows=rows, width=max(9.0, 3.1 * columns), height=2.9 * rows + 0.7)
    for (canary, nominal), axes in zip(itertools.product(canaries, nominals), every, strict=True):
        here = select(table, canary=canary, nominal_epsilon=nominal)
        for method, candidates, score, name, colour, style in _LINES:
            line = select(here, method=method, candidates=candidates, score=score)
            if line:
                draw_band(axes, line, axis, style=style, label=name, color=colour)
        if here:
            use_log_scale(axes, [row[axis] for row in here])
        axes.set(title=f"{canary}, ε = {nominal:g}", xlabel=label)
        axes.set_ylim(bottom=0)
    for axes in every[::columns]:
        axes.set_ylabel("lower bound ε̂")
    add_legend(figure)
    return figure


def trials_figure(table: Sequence[Row]) -> Figure:
    """Draw ε̂ against all models trained, for many canaries, and for one as the baseline."""
    most = max(row["canaries"] for row in table)
    rows = [row for row in table if row["canaries"] == most or row["method"] == SINGLE]
    return _grid(rows, "models", "models trained, tuning and pilots counted")


def canaries_figure(table: Sequence[Row]) -> Figure:
    """Draw ε̂ against the number of canaries, at the largest number of trials."""
    return _grid(select(table, trials=max(row["trials"] for row in table)), "canaries", "canaries K")


def factors_figure(table: Sequence[Row]) -> Figure:
    """Draw how many times fewer trials many canaries need, ours beside the paper's: a panel per data set and model."""
    shown = select(table, score="centred", candidates="tail", method="2nd-order Wilson")
    pairs = list(dict.fromkeys(row["pair"] for row in shown))
    figure, every = panels(len(pairs), width=4.2 * len(pairs), height=3.4)
    for axes, pair in zip(every, pairs, strict=True):
        rows = select(shown, pair=pair)
        positions = np.arange(len(rows))
        axes.bar(positions - 0.2, [row["paper"] for row in rows], 0.4, color=GREY, label="paper")
        axes.bar(positions + 0.2, [row["factor"] or 0 for row in rows], 0.4, color=ORANGE, label="ours")
        axes.axhline(1, color="black", linewidth=0.8)
        labels = [f"{row['canary'].split('-')[0]}\nε = {row['nominal_epsilon']:g}" for row in rows]
        axes.set_xticks(positions, labels, fontsize=7)
        axes.set_yscale("log", base=2)
        axes.set_title(f"{pair}, 2nd-order Wilson")
    every[0].set_ylabel("times fewer trials than one canary")
    add_legend(figure)
    return figure


def utility_figure(table: Sequence[Row]) -> Figure:
    """Draw test accuracy against the number of canaries: a panel per kind of canary, a line per nominal ε."""
    kinds = sorted({row["canary"] for row in table})
    nominals = sorted({row["nominal_epsilon"] for row in table})
    figure, every = panels(len(kinds), width=4.4 * len(kinds), height=3.4)
    for axes, canary in zip(every, kinds, strict=True):
        for nominal, colour in zip(nominals, (BLUE, ORANGE, GREEN, PURPLE), strict=False):
            rows = select(table, canary=canary, nominal_epsilon=nominal)
            draw_band(axes, rows, "canaries", "accuracy", label=f"nominal ε = {nominal:g}", color=colour)
        use_log_scale(axes, [row["canaries"] for row in table])
        axes.set(ylim=(0, 1), title=canary, xlabel="canaries K")
    every[0].set_ylabel("test accuracy")
    add_legend(figure)
    return figure


def wagers_figure(table: Sequence[Row]) -> Figure:
    """Draw ε̂ of the coin wager against models trained: a panel per size of the data."""
    sizes = sorted({(row["records"], row["nominal_epsilon"]) for row in table})
    figure, every = panels(len(sizes), width=4.4 * len(sizes), height=3.4)
    colours = {"random-gradient": BLUE, "dirac-gradient": ORANGE}
    for axes, (records, nominal) in zip(every, sizes, strict=True):
        here = select(table, records=records)
        for canary, canaries in dict.fromkeys((row["canary"], row["canaries"]) for row in here):
            rows = select(here, canary=canary, canaries=canaries)
            style = "-" if canaries == min(row["canaries"] for row in here) else "--"
            draw_band(axes, rows, "models", style=style, label=f"{canary}, K = {canaries}", color=colours[canary])
        axes.set(title=f"{records:,} records, nominal ε = {nominal:g}", xlabel="models trained, pilots included")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
    every[0].set_ylabel("lower bound ε̂")
    return figure
