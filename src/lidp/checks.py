"""Validators: each returns the value, converted, or raises InvalidArgument.

The value is given by keyword, under the name that the error message should use.

>>> probability(failure_probability=1.5)
Traceback (most recent call last):
    ...
lidp.errors.InvalidArgument: failure_probability must lie strictly between 0 and 1, got 1.5
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lidp.errors import InvalidArgument

Member = TypeVar("Member", bound=StrEnum)


def _number(name: str, value: object) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise InvalidArgument(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)  # type: ignore[arg-type]  # numpy scalars, fractions
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be a number, got {value!r}") from None
    except OverflowError:
        raise InvalidArgument(f"{name} must be a number in the range of a float, got a larger one") from None
    if math.isnan(number):
        raise InvalidArgument(f"{name} must be a number, got nan")
    return number


def _single(named: dict[str, object]) -> tuple[str, object]:
    ((name, value),) = named.items()
    return name, value


def probability(**named: object) -> float:
    """Return a probability strictly between 0 and 1."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 < number < 1:
        raise InvalidArgument(f"{name} must lie strictly between 0 and 1, got {value}")
    return number


def share(**named: object) -> float:
    """Return a share of a whole: above 0, at most 1."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 < number <= 1:
        raise InvalidArgument(f"{name} must be above 0 and at most 1, got {value}")
    return number


def delta(**named: object) -> float:
    """Return the δ of a claim: at least 0, below 1."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 <= number < 1:
        raise InvalidArgument(f"{name} must be at least 0 and below 1, got {value}")
    return number


def non_negative(**named: object) -> float:
    """Return a finite number of at least 0."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 <= number < math.inf:
        raise InvalidArgument(f"{name} must be at least 0 and finite, got {value}")
    return number


def positive(**named: object) -> float:
    """Return a finite number above 0."""
    name, value = _single(named)
    number = _number(name, value)
    if not 0 < number < math.inf:
        raise InvalidArgument(f"{name} must be above 0 and finite, got {value}")
    return number


def finite(**named: object) -> float:
    """Return a finite number."""
    name, value = _single(named)
    number = _number(name, value)
    if not math.isfinite(number):
        raise InvalidArgument(f"{name} must be finite, got {value}")
    return number


def count(**named: object) -> int:
    """Return a whole number of at least 1."""
    name, value = _single(named)
    number = _number(name, value)
    if not 1 <= number < math.inf or number != int(number):
        raise InvalidArgument(f"{name} must be a whole number of at least 1, got {value}")
    return int(number)


def one_of(known: Sequence[str], /, **named: object) -> str:
    """Return one of the ``known`` words."""
    name, value = _single(named)
    if not isinstance(value, str) or value not in known:
        raise InvalidArgument(f"{name} must be one of {', '.join(known)}, got {value!r}")
    return value


def member(kind: type[Member], /, **named: object) -> Member:
    """Return the member of the enumeration ``kind`` that has the given value.

    >>> from lidp.claim import Neighbours
    >>> member(Neighbours, neighbours="add-remove")
    <Neighbours.ADD_REMOVE: 'add-remove'>
    """
    name, value = _single(named)
    return value if isinstance(value, kind) else kind(one_of(list(kind), **{name: value}))


def first_not_finite(features: NDArray[Any], unit: float = 1.0) -> tuple[int, ...] | None:
    """Return the index of the first feature that is not finite after conversion to float32 and multiplication by ``unit``.

    Return None if all are finite. Models are trained in float32.
    """
    if features.dtype.kind not in "biuf" or not features.size:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.float32(unit)
        extremes = np.array([features.min(), features.max()]).astype(np.float32) * scale  # both are NaN if any feature is
        if np.isfinite(extremes).all():
            return None
        finite = np.isfinite(features.astype(np.float32) * scale)
    return tuple(int(number) for number in np.argwhere(~finite)[0])
