"""Shorten figures that matplotlib wrote as SVG."""

from __future__ import annotations

import re

_FONT = "font-family: 'DejaVu Sans', sans-serif"


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
