"""Validators that take the argument by its own name, so that the message can repeat it.

>>> probability(failure_probability=1.5)
Traceback (most recent call last):
    ...
lidp.errors.InvalidArgument: failure_probability must lie strictly between 0 and 1, got 1.5
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.errors import InvalidArgument


def _number(name: str, value: object) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise InvalidArgument(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)  # type: ignore[arg-type]  # numpy scalars and the like
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be a number, got {value!r}") from None
    except OverflowError:
        raise InvalidArgument(f"{name} must be a number that fits a float, got one that is larger") from None
    if math.isnan(number):
        raise InvalidArgument(f"{name} must be a number, got nan")
    return number


def _single(named: dict[str, object]) -> tuple[str, object]:
    ((name, value),) = named.items()
    return name, value


def probability(**named: object) -> float:
    """A probability that is neither 0 nor 1."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 < number < 1:
        raise InvalidArgument(f"{name} must lie strictly between 0 and 1, got {value}")
    return number


def share(**named: object) -> float:
    """A part of a whole, possibly all of it, not nothing."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 < number <= 1:
        raise InvalidArgument(f"{name} must be above 0 and at most 1, got {value}")
    return number


def delta(**named: object) -> float:
    """The δ of a claim: at least 0, below 1."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 <= number < 1:
        raise InvalidArgument(f"{name} must be at least 0 and below 1, got {value}")
    return number


def non_negative(**named: object) -> float:
    """A finite number that is at least 0."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 <= number < math.inf:
        raise InvalidArgument(f"{name} must be at least 0 and finite, got {value}")
    return number


def positive(**named: object) -> float:
    """A finite number above 0."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 < number < math.inf:
        raise InvalidArgument(f"{name} must be above 0 and finite, got {value}")
    return number


def finite(**named: object) -> float:
    """Any finite number."""
    name, value = _single(named)
    number = _number(name, value)
    if not math.isfinite(number):
        raise InvalidArgument(f"{name} must be finite, got {value}")
    return number


def count(**named: object) -> int:
    """A whole number of at least 1."""
    name, value = _single(named)
    number = _number(name, value)
    if not 1 <= number < math.inf or number != int(number):
        raise InvalidArgument(f"{name} must be a whole number of at least 1, got {value}")
    return int(number)


def one_of(known: Sequence[str], /, **named: object) -> str:
    """One of some words."""
    name, value = _single(named)
    if not isinstance(value, str) or value not in known:
        raise InvalidArgument(f"{name} must be one of {', '.join(known)}, got {value!r}")
    return value


def first_not_finite(features: NDArray[Any], unit: float = 1.0) -> tuple[int, ...] | None:
    """Return the first place where features times ``unit`` are not finite as float32, in which models are trained, if any."""
    if features.dtype.kind not in "biuf" or not features.size:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.float32(unit)
        extremes = np.array([features.min(), features.max()]).astype(np.float32) * scale  # a NaN is both
        if np.isfinite(extremes).all():
            return None
        finite = np.isfinite(features.astype(np.float32) * scale)
    return tuple(int(number) for number in np.argwhere(~finite)[0])
