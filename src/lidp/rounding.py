"""Numbers as text, rounded to the side on which they stay true: bounds down, error rates up, claims not at all.

>>> at_least(1.02996), at_most(0.05001), exact(1.02996)
('1.029', '0.05001', '1.02996')
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

_ALL = 17
"""Digits that tell any two floats apart."""


def at_least(value: float, digits: int = 4, *, above: float | None = None) -> str:
    """A lower bound in so many digits, rounded down.

    With ``above``, the claim that it stands beside: as many digits as it takes to be seen above it, if it is.
    """
    text = _rounded(value, digits, ROUND_FLOOR)
    while above is not None and float(text) <= above < value and digits < _ALL:
        digits += 1
        text = _rounded(value, digits, ROUND_FLOOR)
    return text


def at_most(value: float, digits: int = 4) -> str:
    """An upper bound in so many digits, rounded up."""
    return _rounded(value, digits, ROUND_CEILING)


def fixed(value: float, places: int) -> str:
    """A lower bound with so many decimal places, rounded down: for tables and lines that are watched."""
    if not math.isfinite(value):
        return str(value)
    return f"{Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), ROUND_FLOOR):f}"


def exact(value: float) -> str:
    """A number as it was given: short if that is the same number, else all of its digits."""
    text = f"{value:g}"
    return text if float(text) == value else repr(float(value))


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not value or not math.isfinite(value):
        return f"{value:g}"
    number = Decimal(repr(float(value)))
    short = number.quantize(Decimal(1).scaleb(number.adjusted() - digits + 1), rounding)
    return f"{float(short):.{digits}g}"
