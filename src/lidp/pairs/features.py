"""From outputs of any kind to columns that a classifier can look at.

An output is taken apart into named numbers: a number is its value; a list its length, its elements, how many of them are equal;
a dict its values by key; a string its length. Beside them stands the output as a whole, for those that recur exactly. What does not
apply to an output is missing (NaN) there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.errors import AuditFailed

Floats = NDArray[np.float64]

_MOST_ELEMENTS = 64
"""Elements of a long list or vector that become columns of their own."""


@dataclass(frozen=True)
class Columns:
    """Some outputs, taken apart: a column of numbers for each name, and each output as one hashable thing (None: too long)."""

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


def columns_of(outputs: Any, features: Callable[[Any], Any] | None = None, *, bits: bool = False) -> Columns:
    """Take outputs apart. ``bits`` adds what the bit patterns of floats show.

    Raises:
        AuditFailed: if outputs are of different kinds, which no column could hold.
    """
    if isinstance(outputs, np.ndarray) and outputs.ndim in (1, 2) and outputs.dtype.kind in "fiub" and features is None:
        return _numeric(outputs, bits)
    _check_kinds(outputs)
    rows = [_take_apart(output, bits) for output in outputs]
    if features is not None:
        for row, output in zip(rows, outputs, strict=True):
            row |= {f"feature {k}": float(value) for k, value in enumerate(np.ravel(features(output)))}
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    values = np.array([[row.get(name, math.nan) for name in names] for row in rows], dtype=np.float64)
    return Columns(names, values.reshape(len(rows), len(names)), [_whole(output) for output in outputs])


def _numeric(outputs: NDArray[Any], bits: bool) -> Columns:
    """The same for an array of numbers, all at once."""
    values = outputs.astype(np.float64)
    if values.ndim == 1:
        names = ["value"]
        table = [values]
        wholes: Any = values
    else:
        used = min(values.shape[1], _MOST_ELEMENTS)
        names = [f"element {k}" for k in range(used)]
        table = [values[:, k] for k in range(used)]
        if values.shape[1] > 1:
            names += ["sum", "largest", "place of the largest"]
            table += [values.sum(axis=1), values.max(axis=1), values.argmax(axis=1).astype(np.float64)]
        wholes = [row.tobytes() for row in values]
    if bits and outputs.dtype.kind == "f":
        names.append("trailing zero bits")
        table.append(_trailing_zeros(values[:, 0] if values.ndim == 2 else values))
    return Columns(tuple(names), np.column_stack(table), wholes)


def _trailing_zeros(values: Floats) -> Floats:
    """How many of the last bits of a float are 0: noise added to a float leaves a pattern there."""
    words = values.view(np.uint64)
    lowest = words & (~words + np.uint64(1))
    return np.where(words == 0, 64.0, np.log2(np.maximum(lowest, np.uint64(1)).astype(np.float64)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))


def kind_of(output: Any) -> str:
    """What an output is, in a word; outputs of one mechanism must be of one kind, or None."""
    if output is None:
        return "None"
    if _is_number(output):
        return "number"
    if isinstance(output, (str, bytes)):
        return "text"
    if isinstance(output, np.ndarray):
        return "number" if output.ndim == 0 else "list"
    if isinstance(output, (list, tuple, set, frozenset)):
        return "list"
    if isinstance(output, Mapping):
        return "dict"
    return type(output).__name__


def _check_kinds(outputs: Sequence[Any]) -> None:
    first: dict[str, int] = {}
    for place, output in enumerate(outputs):
        first.setdefault(kind_of(output), place)
    kinds = [kind for kind in first if kind != "None"]
    if len(kinds) > 1:
        one, other = kinds[:2]
        examples = f"{outputs[first[one]]!r}, {outputs[first[other]]!r}"
        raise AuditFailed(
            f"the mechanism returns a {one} in one run and a {other} in another ({examples}); "
            "wrap it so that outputs are of one kind"
        )


def _take_apart(output: Any, bits: bool) -> dict[str, float]:
    if output is None:
        return {"is None": 1.0}
    if isinstance(output, np.ndarray) and output.ndim:
        output = output.ravel().tolist()
    if _is_number(output) or isinstance(output, np.ndarray):
        value = _as_float(output)
        row = {"value": value}
        if bits:
            row["trailing zero bits"] = float(_trailing_zeros(np.array([value]))[0])
        return row
    if isinstance(output, (str, bytes)):
        return {"length": float(len(output))}
    if isinstance(output, Mapping):
        return {
            f"{key}: {name}" if name != "value" else f"{key}": number
            for key in output
            for name, number in _take_apart(output[key], bits).items()
        }
    if isinstance(output, (set, frozenset)):
        output = sorted(output, key=repr)
    if isinstance(output, (list, tuple)):
        return _elements(output, bits)
    return {}


def _elements(output: Sequence[Any], bits: bool) -> dict[str, float]:
    row = {"length": float(len(output))}
    numbers = [_as_float(value) for value in output if _is_number(value)]
    if numbers:
        row |= {"sum": math.fsum(numbers) if all(map(math.isfinite, numbers)) else math.nan}
        row |= {"largest": max(numbers), "last": numbers[-1]}
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
    if isinstance(output, np.ndarray):
        return ("array", output.shape, output.tobytes())
    if isinstance(output, (float, np.floating)):
        return "nan" if math.isnan(output) else float(output)
    if isinstance(output, (list, tuple)):
        return tuple(_whole(value) for value in output)
    if isinstance(output, (set, frozenset)):
        return tuple(sorted(repr(value) for value in output))
    if isinstance(output, Mapping):
        return tuple(sorted((repr(key), _whole(value)) for key, value in output.items()))
    return output if isinstance(output, Hashable) else repr(output)
