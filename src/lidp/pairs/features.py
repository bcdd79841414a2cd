"""From outputs of any kind to columns that a classifier can look at.

An output is taken apart into named numbers: a number is its value; a list its length, its elements, how many of them are equal;
a dict its values by key; a string its length. Beside them stands the output as a whole, for those that recur exactly. What does not
apply to an output is missing (NaN) there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.user_code import must_propagate, user_code
from lidp.errors import AuditFailed

Floats = NDArray[np.float64]

_MOST_ELEMENTS = 64
"""Elements of a long list or vector that become columns of their own."""
_MOST_COLUMNS = 256
"""Columns in all; of more, those known already and then the commonest."""


@dataclass(frozen=True)
class Columns:
    """Some outputs, taken apart: a column of numbers for each name, and each output as one hashable thing."""

    names: tuple[str, ...]
    values: Floats
    wholes: Sequence[Hashable] | Floats

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> Columns:
        """Some of the outputs."""
        return Columns(self.names, self.values[start:stop], self.wholes[start:stop])

    def select(self, names: Sequence[str]) -> Floats:
        """The columns of these names; missing ones are NaN."""
        if tuple(names) == self.names:
            return self.values
        place = {name: k for k, name in enumerate(self.names)}
        found = np.full((len(self.values), len(names)), np.nan)
        for k, name in enumerate(names):
            if name in place:
                found[:, k] = self.values[:, place[name]]
        return found


def columns_of(
    outputs: Any, features: Callable[[Any], Any] | None = None, *, bits: bool = False, known: Sequence[str] = ()
) -> Columns:
    """Take outputs apart. ``bits`` adds what the bit patterns of floats show.

    Guarantee: columns that are ``known`` from the past are kept whatever these outputs are. Which new ones find room beside them
    depends on all outputs, so nothing may be staked by these before the next block.

    Raises:
        AuditFailed: if outputs are of different kinds, or of one that cannot be taken apart.
    """
    if isinstance(outputs, np.ndarray) and outputs.ndim in (1, 2) and outputs.dtype.kind in "fiub" and features is None:
        return _numeric(outputs, bits)
    _check_kinds(outputs)
    try:
        rows = [_take_apart(output, bits) for output in outputs]
        wholes = [_whole(output) for output in outputs]
    except RecursionError:
        raise AuditFailed("the mechanism returns something nested too deeply to be taken apart") from None
    if features is not None:
        for row, output in zip(rows, outputs, strict=True):
            row |= _own_features(features, output)
    counts = Counter(name for row in rows for name in row)
    names = tuple(dict.fromkeys([*known, *(name for name, _ in counts.most_common())]))[:_MOST_COLUMNS]
    values = np.array([[row.get(name, math.nan) for name in names] for row in rows], dtype=np.float64)
    return Columns(names, values.reshape(len(rows), len(names)), wholes)


def _own_features(features: Callable[[Any], Any], output: Any) -> dict[str, float]:
    try:
        with user_code():
            return {f"feature {k}": float(value) for k, value in enumerate(np.ravel(features(output)))}
    except BaseException as error:
        if must_propagate(error):
            raise
        raise AuditFailed(f"features({short(output)}) failed: {type(error).__name__}: {error}") from error


def _numeric(outputs: NDArray[Any], bits: bool) -> Columns:
    """The same for an array of numbers, all at once."""
    values = outputs.astype(np.float64)
    patterns = bits and outputs.dtype.kind == "f"
    if values.ndim == 1:
        table = {"value": values}
        if patterns:
            table["trailing zero bits"] = _trailing_zeros(values)
        return Columns(tuple(table), np.column_stack(list(table.values())), values)
    table = {f"element {k}": values[:, k] for k in range(min(values.shape[1], _MOST_ELEMENTS))}
    if patterns:
        table |= {f"{name}: trailing zero bits": _trailing_zeros(column) for name, column in list(table.items())}
    if values.shape[1] > 1:
        table |= {"sum": values.sum(axis=1), "largest": values.max(axis=1)}
        table["place of the largest"] = values.argmax(axis=1).astype(np.float64)
        ties = (np.diff(np.sort(values, axis=1), axis=1) == 0).sum(axis=1)
        table["equal to an earlier element"] = ties.astype(np.float64)
    wholes = [row.tobytes() for row in values]
    if not table:
        return Columns((), np.empty((len(values), 0)), wholes)
    return Columns(tuple(table), np.column_stack(list(table.values())), wholes)


def _trailing_zeros(values: Floats) -> Floats:
    """How many of the last bits of a float are 0: noise added to a float leaves a pattern there."""
    words = values.view(np.uint64)
    lowest = words & (~words + np.uint64(1))
    return np.where(words == 0, 64.0, np.log2(np.maximum(lowest, np.uint64(1)).astype(np.float64)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating, Decimal, Fraction))


def _plain(output: Any) -> Any:
    """An output as one of few kinds: None, number, text, list, dict."""
    if isinstance(output, np.ndarray):
        return output.item() if output.ndim == 0 else output.tolist()
    if isinstance(output, Enum):
        return output.name
    if isinstance(output, (complex, np.complexfloating)):
        return [output.real, output.imag]
    if isinstance(output, (set, frozenset)):
        return sorted(output, key=repr)
    if is_dataclass(output) and not isinstance(output, type):
        return {item.name: getattr(output, item.name) for item in fields(output)}
    if isinstance(output, (date, time, timedelta)):
        return str(output)
    return output


def kind_of(output: Any) -> str:
    """What an output is, in a word; outputs of one mechanism must be of one kind, or None."""
    output = _plain(output)
    if output is None:
        return "None"
    if _is_number(output):
        return "number"
    if isinstance(output, (str, bytes)):
        return "text"
    if isinstance(output, (list, tuple)):
        return "list"
    if isinstance(output, Mapping):
        return "dict"
    # By what would two of them be told apart? Most objects are equal to themselves only, and print their address.
    raise AuditFailed(
        f"the mechanism returns {short(output)}, which is {type(output).__name__}; "
        "wrap it so that outputs are numbers, texts, lists, dicts or None"
    )


def short(value: Any) -> str:
    """A value in a line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check_kinds(outputs: Sequence[Any]) -> None:
    first: dict[str, int] = {}
    for place, output in enumerate(outputs):
        first.setdefault(kind_of(output), place)
    kinds = [kind for kind in first if kind != "None"]
    if len(kinds) > 1:
        one, other = kinds[:2]
        examples = f"{short(outputs[first[one]])}, {short(outputs[first[other]])}"
        raise AuditFailed(
            f"the mechanism returns a {one} in one run and a {other} in another ({examples}); "
            "wrap it so that outputs are of one kind"
        )


def _take_apart(output: Any, bits: bool) -> dict[str, float]:
    kind, output = kind_of(output), _plain(output)
    if kind == "None":
        return {"is None": 1.0}
    if kind == "number":
        value = _as_float(output)
        return {"value": value} | ({"trailing zero bits": float(_trailing_zeros(np.array([value]))[0])} if bits else {})
    if kind == "text":
        return {"length": float(len(output))}
    if kind == "dict":
        return {
            f"{key}: {name}" if name != "value" else f"{key}": number
            for key in output
            for name, number in _take_apart(output[key], bits).items()
        }
    return _elements(output, bits)


def _elements(output: Sequence[Any], bits: bool) -> dict[str, float]:
    row = {"length": float(len(output))}
    numbers = [_as_float(value) for value in output if _is_number(value)]
    if numbers:
        row["sum"] = math.fsum(numbers) if all(map(math.isfinite, numbers)) else math.nan
        row |= {"largest": max(numbers), "place of the largest": float(numbers.index(max(numbers))), "last": numbers[-1]}
        row["equal to an earlier element"] = float(len(numbers) - len(set(numbers)))
    for k, value in enumerate(output[:_MOST_ELEMENTS]):
        for name, number in _take_apart(value, bits).items():
            row[f"element {k}" if name == "value" else f"element {k}: {name}"] = number
    return row


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _whole(output: Any) -> Hashable:
    """An output as something that can be counted: equal outputs are equal, and a NaN equals a NaN."""
    if isinstance(output, np.ndarray) and output.dtype != object:
        return ("array", output.shape, output.tobytes())
    kind, output = kind_of(output), _plain(output)
    if kind == "list":
        return tuple(_whole(value) for value in output)
    if kind == "dict":
        return tuple(sorted((repr(key), _whole_text(value)) for key, value in output.items()))
    if kind == "number" and output != output:
        return "nan"
    found: Hashable = output
    return found


def _whole_text(value: Any) -> str:
    return repr(_whole(value))  # as text, so that values of different kinds can be sorted
