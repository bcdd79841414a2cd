"""Format numbers so that statements about them stay true: round lower bounds down, upper bounds and claims up.

>>> at_least(1.02996), at_most(0.05001), exact(1.02996)
('1.029', '0.05001', '1.02996')
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

_CLAIMED_DIGITS = 3
_MAX_DIGITS = 17
"""Number of digits that distinguishes any two floats."""


def counted(number: int, noun: str) -> str:
    """Return a count with its noun, which is given in the plural.

    >>> counted(1, "trials"), counted(2, "trials"), counted(1, "canaries")
    ('1 trial', '2 trials', '1 canary')
    """
    return f"{number:,} {singular(noun) if number == 1 else noun}"


def singular(noun: str) -> str:
    """Return the singular of a regular plural."""
    return f"{noun.removesuffix('ies')}y" if noun.endswith("ies") else noun.removesuffix("s")


def at_least(value: float, digits: int = 4, *, above: float | None = None) -> str:
    """Return a lower bound with ``digits`` significant digits, rounded down.

    If ``above`` is given and smaller, use as many digits as needed for the text to exceed it: a bound above a claim must look so.
    """
    text = _rounded(value, digits, ROUND_FLOOR)
    while above is not None and float(text) <= above < value and digits < _MAX_DIGITS:
        digits += 1
        text = _rounded(value, digits, ROUND_FLOOR)
    return text


def at_most(value: float, digits: int = 4) -> str:
    """Return an upper bound with ``digits`` significant digits, rounded up."""
    return _rounded(value, digits, ROUND_CEILING)


def fixed(value: float, places: int) -> str:
    """Return a lower bound with ``places`` decimal places, rounded down, for tables and progress lines."""
    if not math.isfinite(value):
        return str(value)
    return f"{Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), ROUND_FLOOR):f}"


def exact(value: float) -> str:
    """Return a number exactly: with six digits if that is the same number, otherwise with all of its digits."""
    text = f"{value:g}"
    return text if float(text) == value else repr(float(value))


def claimed(value: float, *bounds: float) -> str:
    """Return a claimed ε as a person would write it: with up to six digits if that is the same number, else rounded up to three.

    A claim of the rounded ε follows from the claim of the exact one. If a bound lies between the two, return all digits: a bound
    above a claim must look so.

    >>> claimed(4.22594402474479), claimed(2.125), claimed(4.22594402474479, 4.227)
    ('4.23', '2.125', '4.22594402474479')
    """
    text = f"{value:g}"
    if float(text) == value:
        return text
    text = at_most(value, _CLAIMED_DIGITS)
    return exact(value) if any(value < bound <= float(text) for bound in bounds) else text


def duration(seconds: float) -> str:
    """Return a number of seconds in words, with two units at most."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    for size, name, smaller, small_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            return f"{whole // size:,} {name} {whole % size // smaller} {small_name}"
    return f"{whole} s"


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not value or not math.isfinite(value):
        return f"{value:g}"
    number = Decimal(repr(float(value)))
    short = number.quantize(Decimal(1).scaleb(number.adjusted() - digits + 1), rounding)
    return f"{float(short):.{digits}g}"
