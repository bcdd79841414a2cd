"""Write tables, figures and summaries of experiments, and read tables back."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lidp.errors import InvalidArgument
from lidp.reproduce.experiment import Row

_FONT = "font-family: 'DejaVu Sans', sans-serif"


def write_table(path: Path, table: Sequence[Row]) -> None:
    """Write a table as a CSV file, numbers with six digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table[0])
        writer.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in row.values()] for row in table)


def read_table(path: Path) -> list[Row]:
    """Return the table of a CSV file, with numbers as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _parse(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _parse(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def write_json(path: Path, value: Row) -> None:
    """Write a value as indented JSON."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def require_matplotlib() -> None:
    """Refuse to begin without the library that draws figures."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise InvalidArgument("figures need matplotlib; pip install 'lidp[plot]'") from None


def write_figure(path: Path, experiment: str, table: Sequence[Row]) -> None:
    """Draw the table of an experiment and write the figure as SVG, the same bytes each time."""
    import matplotlib as mpl

    from lidp.reproduce.figures import FIGURES

    with mpl.rc_context({"svg.hashsalt": experiment, "svg.fonttype": "none", "font.size": 9}):
        text = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        FIGURES[experiment](table).savefig(text, format="svg", metadata=nothing)
    path.write_text(shorten_svg(text.getvalue()), encoding="utf-8")


def shorten_svg(text: str) -> str:
    """Return a figure of matplotlib's with rounded coordinates and without what no viewer needs: about half as long."""
    text = re.sub(r"font-family: [^;\"]+(; )?", "", text).replace("*{", f"text{{{_FONT}}} *{{", 1)
    text = re.sub(r' (?:transform="rotate\(-0 [^"]*"|id="\w+_\d+")', "", text)
    text = re.sub(r' (?:d|height|style|transform|viewBox|width|x|y)="[^"]*"', _shorten_attribute, text)
    return re.sub(r"\s*\n\s*", "\n", text)


def _shorten_attribute(attribute: re.Match[str]) -> str:
    text = re.sub(r"-?\d+\.\d+", lambda number: _round(float(number[0])), attribute[0])
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", text[4:]).join((' d="', "")) if text.startswith(' d="') else text


def _round(value: float) -> str:
    """Return a coordinate to a tenth of a point, and to a hundredth within the few points of a marker."""
    text = f"{value:.{2 if abs(value) < 10 else 1}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
