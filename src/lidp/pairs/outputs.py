"""Convert outputs of any kind into named numbers, which can be stored and given to a classifier.

A number becomes its value; a list its length, its elements and its number of ties; a dict its values by key; a text its length.
Every output also has an identity, a number that is equal for equal outputs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.user_code import must_propagate, user_code
from lidp.arrays import Floats
from lidp.errors import AuditFailed
from lidp.pairs.columns import Columns

MOST_ELEMENTS = 64
"""Elements of a list or vector that become columns, at most."""
MOST_COLUMNS = 256
"""Columns that a classifier sees, at most."""
TEXTS_PER_BLOCK = 4096
"""Outputs at the start of a block whose text is kept, to explain a leak."""
_TEXT_LENGTH = 200
_IDENTITY_BITS = (1 << 53) - 1  # identities are stored as floats, which hold 53 bits exactly


@dataclass(frozen=True)
class OutputTable:
    """The stored form of outputs: their numbers by name, and their identities.

    A dense table stores a number for every output and name (``rows`` is None, ``values`` is the matrix row by row). A sparse
    table stores only numbers that exist (``values[i]`` belongs to output ``rows[i]`` and name ``columns[i]``).
    """

    names: tuple[str, ...]
    values: Floats
    identities: Floats
    texts: Mapping[float, str] | None
    rows: Floats | None = None
    columns: Floats | None = None

    def __len__(self) -> int:
        return len(self.identities)

    def look(self, known: Sequence[str] = ()) -> Columns:
        """Return the columns that a classifier sees: those ``known`` from earlier tables, then the most frequent ones.

        Guarantee: known columns are kept whatever these outputs are. The choice of new columns depends on all outputs of the
        table, so nothing may be staked on new columns before the next table.
        """
        if self.rows is None or self.columns is None:
            return Columns(self.names, self.values.reshape(len(self), len(self.names)), self.identities, self.texts)
        chosen = tuple(dict.fromkeys([*known, *self.names]))[:MOST_COLUMNS]
        position = {name: k for k, name in enumerate(chosen)}
        target = np.array([position.get(name, -1) for name in self.names], dtype=np.int64)
        columns = target[self.columns.astype(np.int64)] if len(self.columns) else np.zeros(0, dtype=np.int64)
        matrix = np.full((len(self), len(chosen)), np.nan)
        kept = columns >= 0
        matrix[self.rows.astype(np.int64)[kept], columns[kept]] = self.values[kept]
        return Columns(chosen, matrix, self.identities, self.texts)


def take_apart(outputs: Any, features: Callable[[Any], Any] | None = None, *, bits: bool = False) -> OutputTable:
    """Return outputs as a table of numbers. ``bits`` adds the number of trailing zero bits of floats.

    Raises:
        AuditFailed: if outputs are of different kinds, or of a kind that cannot be converted.
    """
    if isinstance(outputs, np.ndarray) and outputs.ndim in (1, 2) and outputs.dtype.kind in "fiub" and features is None:
        return _numeric_table(outputs, bits)
    _require_one_kind(outputs)
    try:
        parts = [_parts_of(output, bits) for output in outputs]
        texts = [_text_of(output) for output in outputs]
    except RecursionError:
        raise AuditFailed("the mechanism returns an output that is nested too deeply") from None
    if features is not None:
        for row, output in zip(parts, outputs, strict=True):
            row |= _feature_values(features, output)
    identities = np.array([_identity_of(text) for text in texts], dtype=np.float64)
    shown = {
        identity: text[:_TEXT_LENGTH] for identity, text in zip(identities[:TEXTS_PER_BLOCK].tolist(), texts, strict=False)
    }
    counts = Counter(name for row in parts for name in row)
    names = tuple(name for name, _ in counts.most_common())
    column_of = {name: float(k) for k, name in enumerate(names)}
    return OutputTable(
        tuple(json.loads(json.dumps(names))),  # as a store gives them back: JSON joins halves of surrogate pairs
        np.array([value for row in parts for value in row.values()], dtype=np.float64),
        identities,
        shown,
        rows=np.repeat(np.arange(len(parts), dtype=np.float64), [len(row) for row in parts]),
        columns=np.array([column_of[name] for row in parts for name in row], dtype=np.float64),
    )


def _feature_values(features: Callable[[Any], Any], output: Any) -> dict[str, float]:
    try:
        with user_code():
            return {f"feature {k}": float(value) for k, value in enumerate(np.ravel(features(output)))}
    except BaseException as error:
        if must_propagate(error):
            raise
        raise AuditFailed(f"features({short(output)}) failed: {type(error).__name__}: {error}") from error


def _numeric_table(outputs: NDArray[Any], bits: bool) -> OutputTable:
    """Return a numeric array of outputs as a dense table."""
    values = outputs.astype(np.float64)
    patterns = bits and outputs.dtype.kind == "f"
    if values.ndim == 1:
        table = {"value": values}
        if patterns:
            table["trailing zero bits"] = _trailing_zeros(values)
        return OutputTable(tuple(table), np.column_stack(list(table.values())).ravel(), values, None)
    table = {f"element {k}": values[:, k] for k in range(min(values.shape[1], MOST_ELEMENTS))}
    if patterns:
        table |= {f"{name}: trailing zero bits": _trailing_zeros(column) for name, column in list(table.items())}
    if values.shape[1] > 1:
        table |= {"sum": values.sum(axis=1), "largest": values.max(axis=1)}
        table["index of the largest"] = values.argmax(axis=1).astype(np.float64)
        ties = (np.diff(np.sort(values, axis=1), axis=1) == 0).sum(axis=1)
        table["equal to an earlier element"] = ties.astype(np.float64)
    identities = _row_identities(values)
    matrix = np.column_stack(list(table.values())) if table else np.empty((len(values), 0))
    return OutputTable(tuple(table), matrix.ravel(), identities, _row_texts(values, identities))


def _row_identities(values: Floats) -> Floats:
    """Return one number per row; rows with equal bits have equal numbers, and other rows almost surely do not."""
    words = np.ascontiguousarray(values).view(np.uint64)
    with np.errstate(over="ignore"):
        factors = _mixed(np.arange(1, values.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
        sums = (_mixed(words) * factors).sum(axis=1, dtype=np.uint64)
        return (_mixed(sums) & np.uint64(_IDENTITY_BITS)).astype(np.float64)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the output function of splitmix64 for each word."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = words ^ (words >> np.uint64(31))
    return mixed


def _row_texts(values: Floats, identities: Floats) -> dict[float, str]:
    first = identities[:TEXTS_PER_BLOCK]
    distinct, index, counts = np.unique(first, return_index=True, return_counts=True)
    if len(values) > TEXTS_PER_BLOCK:  # in long blocks, keep only rows that recur
        distinct, index = distinct[counts > 1], index[counts > 1]
    rows = values[index, :MOST_ELEMENTS].tolist()
    return {identity: repr(row)[:_TEXT_LENGTH] for identity, row in zip(distinct.tolist(), rows, strict=True)}


def _trailing_zeros(values: Floats) -> Floats:
    """Return the number of trailing zero bits of each float: noise added to a float leaves a pattern there."""
    words = values.view(np.uint64)
    lowest = words & (~words + np.uint64(1))
    return np.where(words == 0, 64.0, np.log2(np.maximum(lowest, np.uint64(1)).astype(np.float64)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating, Decimal, Fraction))


def _simplified(output: Any) -> Any:
    """Return an output converted to None, a number, a text, a list or a dict, if possible."""
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
    """Return the kind of an output; all outputs of a mechanism must be of one kind, or None."""
    output = _simplified(output)
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
    # Such objects cannot be compared: most equal only themselves, and their text is their address.
    raise AuditFailed(
        f"the mechanism returns {short(output)}, which is {type(output).__name__}; "
        "wrap it so that outputs are numbers, texts, lists, dicts or None"
    )


def short(value: Any) -> str:
    """Return a value as one line of at most 60 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _require_one_kind(outputs: Sequence[Any]) -> None:
    first: dict[str, int] = {}
    for index, output in enumerate(outputs):
        first.setdefault(kind_of(output), index)
    kinds = [kind for kind in first if kind != "None"]
    if len(kinds) > 1:
        one, other = kinds[:2]
        examples = f"{short(outputs[first[one]])}, {short(outputs[first[other]])}"
        raise AuditFailed(
            f"the mechanism returns a {one} in one run and a {other} in another ({examples}); "
            "wrap it so that outputs are of one kind"
        )


def _parts_of(output: Any, bits: bool) -> dict[str, float]:
    kind, output = kind_of(output), _simplified(output)
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
            for name, number in _parts_of(output[key], bits).items()
        }
    return _elements_of(output, bits)


def _elements_of(output: Sequence[Any], bits: bool) -> dict[str, float]:
    row = {"length": float(len(output))}
    numbers = [_as_float(value) for value in output if _is_number(value)]
    if numbers:
        row["sum"] = math.fsum(numbers) if all(map(math.isfinite, numbers)) else math.nan
        row |= {"largest": max(numbers), "index of the largest": float(numbers.index(max(numbers))), "last": numbers[-1]}
        row["equal to an earlier element"] = float(len(numbers) - len(set(numbers)))
    for k, value in enumerate(output[:MOST_ELEMENTS]):
        for name, number in _parts_of(value, bits).items():
            row[f"element {k}" if name == "value" else f"element {k}: {name}"] = number
    return row


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _identity_of(text: str) -> float:
    return float(
        int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        & _IDENTITY_BITS
    )


def _text_of(output: Any) -> str:
    """Return an output as text; equal outputs have equal texts, numbers of different types included."""
    kind, output = kind_of(output), _simplified(output)
    if kind == "list":
        return f"({', '.join(_text_of(value) for value in output)})"
    if kind == "dict":
        return f"{{{', '.join(sorted(f'{key!r}: {_text_of(value)}' for key, value in output.items()))}}}"
    if kind != "number" or isinstance(output, (bool, np.bool_)):
        return repr(output)
    number = _as_float(output)
    if number != number:
        return "nan"
    if number != output:
        return str(output)
    return repr(int(number)) if number.is_integer() and abs(number) < _IDENTITY_BITS else repr(number)
