"""The pictures of the experiments on trained models, drawn from their tables and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from lidp.reproduce.experiment import Row
from lidp.reproduce.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, band, legend, logarithmic
from lidp.reproduce.sweeps import SINGLE

_LINES = [  # method, candidates, score, label, colour, style
    (SINGLE, "tail", "centred", SINGLE, GREY, "-"),
    ("1st-order Wilson", "tail", "centred", "LiDP + 1st-order Wilson", BLUE, "-"),
    ("2nd-order Wilson", "tail", "centred", "LiDP + 2nd-order Wilson", ORANGE, "-"),
    ("4th-order Wilson", "tail", "centred", "LiDP + 4th-order Wilson", GREEN, "-"),
    ("2nd-order Wilson", "tail", "raw", "... 2nd order, raw scores", ORANGE, "--"),
    ("lifted betting", "none", "centred", "lifted betting", RED, "-"),
    ("coin wager", "none", "centred", "coin wager", PURPLE, "-"),
]


def _grid(table: Sequence[Row], axis: str, label: str) -> Figure:
    """A panel for each kind of canary and nominal ε."""
    canaries = sorted({row["canary"] for row in table})
    nominals = sorted({row["nominal_epsilon"] for row in table})
    down, across = (len(canaries), len(nominals)) if len(nominals) > 1 else (1, len(canaries))
    figure = Figure(figsize=(max(9.0, 3.1 * across), 2.9 * down + 0.7), layout="constrained")
    panels = np.reshape(figure.subplots(down, across), (down, across))
    for (canary, nominal), axes in zip(itertools.product(canaries, nominals), panels.ravel(), strict=True):
        here = [row for row in table if (row["canary"], row["nominal_epsilon"]) == (canary, nominal)]
        for method, candidates, score, words, colour, style in _LINES:
            wanted = (method, candidates, score)
            rows = [row for row in here if (row["method"], row["candidates"], row["score"]) == wanted]
            if rows:
                band(axes, rows, axis, words, colour, style)
        if here:
            logarithmic(axes, [row[axis] for row in here], base=2)
        axes.set_title(f"{canary}, ε = {nominal:g}")
        axes.set_xlabel(label)
        axes.set_ylim(bottom=0)
    for axes in panels[:, 0]:
        axes.set_ylabel("lower bound ε̂")
    legend(figure)
    return figure


def trials_figure(table: Sequence[Row]) -> Figure:
    """ε̂ against models trained, all of them counted: of many canaries, and of one as the baseline."""
    most = max(row["canaries"] for row in table)
    shown = [row for row in table if row["canaries"] == most or row["method"] == SINGLE]
    return _grid(shown, "models", "models trained, tuning and pilots counted")


def canaries_figure(table: Sequence[Row]) -> Figure:
    """ε̂ against the number of canaries, at the largest number of trials."""
    most = max(row["trials"] for row in table)
    return _grid([row for row in table if row["trials"] == most], "canaries", "canaries K")


def factors_figure(table: Sequence[Row]) -> Figure:
    """Times fewer trials, ours beside the paper's, a panel for each data set and model."""
    shown = [row for row in table if (row["score"], row["candidates"]) == ("centred", "tail")]
    pairs = list(dict.fromkeys(row["pair"] for row in shown))
    figure = Figure(figsize=(4.2 * len(pairs), 3.4), layout="constrained")
    for axes, pair in zip(np.atleast_1d(figure.subplots(1, len(pairs))), pairs, strict=True):
        rows = [row for row in shown if row["pair"] == pair and row["method"] == "2nd-order Wilson"]
        places = np.arange(len(rows))
        axes.bar(places - 0.2, [row["paper"] for row in rows], 0.4, color=GREY, label="paper")
        axes.bar(places + 0.2, [row["factor"] or 0 for row in rows], 0.4, color=ORANGE, label="ours")
        axes.axhline(1, color="black", linewidth=0.8)
        words = [f"{row['canary'].split('-')[0]}\nε = {row['nominal_epsilon']:g}" for row in rows]
        axes.set_xticks(places, words, fontsize=7)
        axes.set_yscale("log", base=2)
        axes.set_title(f"{pair}, 2nd-order Wilson")
    figure.axes[0].set_ylabel("times fewer trials than one canary")
    legend(figure)
    return figure


def utility_figure(table: Sequence[Row]) -> Figure:
    """Test accuracy against the number of canaries, a panel for each kind of them and a line for each nominal ε."""
    kinds = sorted({row["canary"] for row in table})
    nominals = sorted({row["nominal_epsilon"] for row in table})
    figure = Figure(figsize=(4.4 * len(kinds), 3.4), layout="constrained")
    for axes, canary in zip(np.atleast_1d(figure.subplots(1, len(kinds))), kinds, strict=True):
        for nominal, colour in zip(nominals, (BLUE, ORANGE, GREEN, PURPLE), strict=False):
            here = [row for row in table if (row["canary"], row["nominal_epsilon"]) == (canary, nominal)]
            rows = [row | {"epsilon_hat": row["accuracy"]} for row in here]
            band(axes, rows, "canaries", f"nominal ε = {nominal:g}", colour, "-")
        logarithmic(axes, [row["canaries"] for row in table], base=2)
        axes.set_ylim(0, 1)
        axes.set_title(canary)
        axes.set_xlabel("canaries K")
    figure.axes[0].set_ylabel("test accuracy")
    legend(figure)
    return figure


def wagers_figure(table: Sequence[Row]) -> Figure:
    """ε̂ against models trained, pilots included."""
    sizes = sorted({(row["records"], row["nominal_epsilon"]) for row in table})
    figure = Figure(figsize=(4.4 * len(sizes), 3.4), layout="constrained")
    colours = {"random-gradient": BLUE, "dirac-gradient": ORANGE}
    for axes, (records, nominal) in zip(np.atleast_1d(figure.subplots(1, len(sizes))), sizes, strict=True):
        here = [row for row in table if row["records"] == records]
        for canary, canaries in dict.fromkeys((row["canary"], row["canaries"]) for row in here):
            rows = [row for row in here if (row["canary"], row["canaries"]) == (canary, canaries)]
            style = "-" if canaries == min(row["canaries"] for row in here) else "--"
            band(axes, rows, "models", f"{canary}, K = {canaries}", colours[canary], style)
        axes.set_title(f"{records:,} records, nominal ε = {nominal:g}")
        axes.set_xlabel("models trained, pilots included")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
    figure.axes[0].set_ylabel("lower bound ε̂")
    return figure
