"""A small canvas for inline SVG: scales, axes, legends. Colours are classes, so that the page decides on light or dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from lidp.report.texts import clean

WIDTH, HEIGHT = 440, 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 14, 44, 44
_CHARACTER = 7.2  # approximate width of a letter of a label, in pixels
_MOST_TICKS = 6


class Canvas:
    """A figure with a title and a description for screen readers."""

    def __init__(self, name: str, title: str, description: str, *, width: float = WIDTH, height: float = HEIGHT) -> None:
        self.name = name
        self.title = title
        self.description = description
        self.width = width
        self.height = height
        self.parts: list[Markup] = []

    def line(self, kind: str, x: Sequence[float] | NDArray[np.float64], y: Sequence[float] | NDArray[np.float64]) -> None:
        """Draw a line through points, in pixels."""
        self.parts.append(Markup('<path class="{}" d="{}"/>').format(kind, _path(x, y)))

    def area(self, kind: str, x: Sequence[float] | NDArray[np.float64], y: Sequence[float] | NDArray[np.float64]) -> None:
        """Draw a filled polygon with these corners, in pixels."""
        self.parts.append(Markup('<path class="{}" d="{}Z"/>').format(kind, _path(x, y)))

    def box(self, kind: str, x: float, y: float, width: float, height: float, *, opacity: float | None = None) -> None:
        """Draw a rectangle, in pixels."""
        more = Markup("") if opacity is None else Markup(' fill-opacity="{}"').format(_short(opacity))
        self.parts.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"{}/>').format(
                kind, _short(x), _short(y), _short(max(0.0, width)), _short(max(0.0, height)), more
            )
        )

    def dot(self, kind: str, x: float, y: float, radius: float = 4) -> None:
        """Draw a disc, in pixels."""
        self.parts.append(Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(kind, _short(x), _short(y), radius))

    def text(self, words: str, x: float, y: float, *, anchor: str = "start", kind: str = "label") -> None:
        """Draw text at a position, in pixels; the text is escaped."""
        self.parts.append(
            Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
                kind, _short(x), _short(y), anchor, clean(words)
            )
        )

    def legend(self, entries: Iterable[tuple[str, str]], *, left: float = _LEFT, y: float = 12) -> None:
        """Draw samples of lines and shapes with their names, in a row that wraps."""
        x = left
        for kind, words in entries:
            needed = 24 + _CHARACTER * len(words) + 12
            if x > left and x + needed > self.width:
                x, y = left, y + 17
            if kind.startswith("fill"):
                self.box(kind, x, y - 9, 18, 10)
            elif kind.startswith("dot"):
                self.dot(kind, x + 9, y - 4)
            else:
                self.line(kind, [x, x + 18], [y - 4, y - 4])
            self.text(words, x + 23, y)
            x += needed

    def markup(self) -> Markup:
        """Return the figure as an ``svg`` element."""
        return Markup(
            '<svg role="img" viewBox="0 0 {} {}" aria-labelledby="{name}-title {name}-description">'
            '<title id="{name}-title">{}</title><desc id="{name}-description">{}</desc>{}</svg>'
        ).format(
            self.width,
            self.height,
            clean(self.title),
            clean(self.description),
            Markup("").join(self.parts),
            name=self.name,
        )


class Plot(Canvas):
    """A canvas with two axes."""

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        labels: tuple[str, str],
    ) -> None:
        super().__init__(name, title, description)
        self._x, self._y = _wide(*x), _wide(*y)
        self._labels = labels

    def across(self, values: Sequence[float] | NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the x coordinates of values, in pixels."""
        low, high = self._x
        return _LEFT + (np.asarray(values, dtype=np.float64) - low) / (high - low) * (self.width - _LEFT - _RIGHT)

    def up(self, values: Sequence[float] | NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the y coordinates of values, in pixels."""
        low, high = self._y
        share = (np.asarray(values, dtype=np.float64) - low) / (high - low)
        return self.height - _BOTTOM - share * (self.height - _TOP - _BOTTOM)

    def axes(self, *, whole: bool = False) -> None:
        """Draw grid, ticks and labels; ``whole`` keeps the ticks of the x axis at whole numbers."""
        bottom, left, right = self.height - _BOTTOM, _LEFT, self.width - _RIGHT
        for value in ticks(*self._y):
            y = float(self.up(value))
            self.line("grid", [left, right], [y, y])
            self.text(tick_text(value), left - 6, y + 4, anchor="end", kind="tick")
        for value in ticks(*self._x, least=1.0 if whole else 0.0):
            x = float(self.across(value))
            self.line("axis", [x, x], [bottom, bottom + 4])
            words = tick_text(value)
            # The last number stays within the figure.
            self.text(words, min(x, self.width - 3.6 * len(words)), bottom + 18, anchor="middle", kind="tick")
        self.line("axis", [left, right], [bottom, bottom])
        self.text(self._labels[0], (left + right) / 2, self.height - 6, anchor="middle")
        self.text(self._labels[1], 4, _TOP - 8)


def ticks(low: float, high: float, *, least: float = 0.0) -> list[float]:
    """Return a few round numbers within a range, at least ``least`` apart."""
    raw = (high - low) / (_MOST_TICKS - 1)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * 0.999)
    step = max(step, least)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12 - math.floor(math.log10(step))) for number in range(first, last + 1)]


def tick_text(value: float) -> str:
    """Return a round number as short text."""
    size = abs(value)
    if 0 < size < 1e-3:  # with all its zeros it would not fit beside the axis
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    if size >= 1e6:
        return f"{value:.2g}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:g}"


def _wide(low: float, high: float) -> tuple[float, float]:
    """Return the range, widened if it is empty."""
    if high - low > 1e-9 * max(abs(low), abs(high), 1e-9):
        return low, high
    reach = max(abs(low), 1.0) * 0.5
    return low - reach, high + reach


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if abs(value) >= 1 else f"{value:.2f}".removesuffix(".00")


def _path(x: Sequence[float] | NDArray[np.float64], y: Sequence[float] | NDArray[np.float64]) -> Markup:
    points = (f"{_short(float(a))} {_short(float(b))}" for a, b in zip(x, y, strict=True))
    return escape("M" + "L".join(points))
