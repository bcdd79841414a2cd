"""Draw the figure of a diagnosis as inline SVG, and prepare its table."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from lidp.diagnosis import Diagnosis
from lidp.diagnosis.diagnosis import NO_BOUND
from lidp.report.diagnosis_figure_data import NoiseByPart
from lidp.report.svg import WIDTH, Canvas, tick_text, ticks

_ROW, _NAMES, _LONGEST_NAME = 20.0, 150.0, 21


def diagnosis_section(diagnosis: Diagnosis | None) -> dict[str, Any] | None:
    """Return words, table and figure for the page; None without a diagnosis."""
    if diagnosis is None:
        return None
    noise = NoiseByPart.of(diagnosis)
    return {
        "findings": diagnosis.summary,
        "found": bool(diagnosis.findings),
        "certainty": diagnosis.certainty,
        "no_bound": NO_BOUND,
        "notes": diagnosis.notes,
        "figure": noise_figure("noise-by-part", noise),
        "left_out": noise.left_out,
        "rows": diagnosis.rows,
    }


def noise_figure(name: str, data: NoiseByPart) -> Markup:
    """Draw limits on the noise of each part as a bar, and the claimed noise as a mark at 1."""
    described = "; ".join(f"{bar.where}: {bar.words}" for bar in data.bars)
    top, bottom = 24.0, 24.0 + _ROW * len(data.bars)
    title = "Noise of each part, in units of the claimed noise"
    canvas = Canvas(name, title, f"The claimed noise is at 1. {described}.", height=bottom + 44)
    left, right = _NAMES, WIDTH - 14.0

    def at(value: float) -> float:
        return left + min(value, data.most) / data.most * (right - left)

    for value in ticks(0.0, data.most):
        canvas.line("grid", [at(value)] * 2, [top, bottom])
        canvas.text(tick_text(value), at(value), bottom + 16, anchor="middle", kind="tick")
    for number, bar in enumerate(data.bars):
        y = top + _ROW * number
        canvas.text(_short(bar.where), left - 8, y + 14, anchor="end")
        width = max(2.0, at(bar.upper) - at(bar.lower))
        canvas.box("fill beyond" if bar.deviates else "fill bound", at(bar.lower), y + 4, width, _ROW - 8)
    canvas.line("mark", [at(1.0)] * 2, [top - 6, bottom])
    canvas.text("claimed", at(1.0), top - 10, anchor="middle")
    canvas.text("noise, in units of the claimed noise", right, bottom + 34, anchor="end")
    return canvas.markup()


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
