"""Draw lines with error bands on logarithmic axes: what the figures of all experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lidp.reproduce.experiment import Row

# Colours that stay distinct in print and for colour-blind readers.
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#7f7f7f"


def panels(columns: int, *, width: float, height: float, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels, and the panels row by row."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(np.ravel(figure.subplots(rows, columns)))


def draw_band(axes: Axes, rows: Sequence[Row], x: str, y: str = "epsilon_hat", style: str = "-", **options: Any) -> None:
    """Draw a line with a band of one standard error; ``options`` are its label and colour."""
    rows = sorted(rows, key=lambda row: row[x])
    positions = [row[x] for row in rows]
    mean = np.array([row[y] for row in rows], dtype=float)
    error = np.array([row["standard_error"] for row in rows], dtype=float)
    axes.plot(positions, mean, style, marker="o", markersize=2.5, linewidth=1.3, **options)
    axes.fill_between(positions, mean - error, mean + error, color=options["color"], alpha=0.2, linewidth=0)


def use_log_scale(axes: Axes, values: Sequence[int], base: int = 2) -> None:
    """Make the horizontal axis logarithmic and just wide enough for the values."""
    axes.set_xscale("log", base=base)
    axes.set_xlim(min(values) / 1.15, max(values) * 1.15)
    axes.minorticks_off()


def add_legend(figure: Figure) -> None:
    """Add one legend below all panels, for the lines of the first panel."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
