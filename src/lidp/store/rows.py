"""Encode facts, arrays and trials as rows of a store, and decode rows whose checksums match.

Arrays are stored as raw little-endian float64, everything else as JSON. The checksum of a row covers the random id of its audit,
so that a row copied from another audit does not match.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lidp.designs.trial_record import TrialRecord

DECODING_ERRORS = (
    sqlite3.Error,
    struct.error,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
)
"""Exceptions that reading a damaged or crafted row may raise."""
_EVIDENCE = "evidence/"
"""Prefix of the names of arrays in the table ``scores`` that are evidence for ``lidp diagnose``, and no scores."""


class TrialRow(NamedTuple):
    """A row of the table ``trials``; arrays of the trial are rows of the table ``scores``."""

    number: int
    audit_id: bytes
    seconds: float
    attempts: int
    failures: str
    metadata: str
    checksum: bytes


def encode_fact(audit_id: bytes, name: str, value: Any) -> list[Any]:
    """Return the row of a JSON value."""
    text = json.dumps(value)
    return [name, text, _checksum(audit_id, name, text)]


def decode_fact(audit_id: bytes, name: str, text: str, checksum: bytes) -> Any:
    """Return the JSON value of a row."""
    _compare(checksum, _checksum(audit_id, name, text))
    return json.loads(text)


def encode_array(audit_id: bytes, owner: str, name: str, array: NDArray[Any]) -> list[Any]:
    """Return the row of an array."""
    plain = np.asarray(array, dtype="<f8")  # not ascontiguousarray, which makes (1,) of the shape ()
    shape, data = json.dumps(plain.shape), plain.tobytes()
    return [owner, name, shape, data, _checksum(audit_id, owner, name, shape, data)]


def decode_array(audit_id: bytes, owner: str, name: str, shape: str, data: bytes, checksum: bytes) -> NDArray[Any]:
    """Return the array of a row."""
    _compare(checksum, _checksum(audit_id, owner, name, shape, data))
    return np.frombuffer(data, "<f8").reshape(json.loads(shape))


def encode_trial(audit_id: bytes, record: TrialRecord) -> tuple[TrialRow, list[tuple[int, str, bytes]]]:
    """Return the row of a trial, and the rows (trial, name, data) of its arrays."""
    named = {**record.arrays, **{_EVIDENCE + name: array for name, array in record.evidence.items()}}
    arrays = [(name, np.asarray(array, dtype="<f8").tobytes()) for name, array in sorted(named.items())]
    row = TrialRow(
        record.index,
        audit_id,
        float(record.seconds),
        record.attempts,
        json.dumps(dict(record.failures)),
        json.dumps(dict(record.metadata), default=str),
        b"",
    )
    row = row._replace(checksum=_trial_checksum(row, arrays))
    return row, [(record.index, name, data) for name, data in arrays]


def decode_trials(rows: list[TrialRow], array_rows: Iterable[tuple[Any, ...]]) -> Iterator[TrialRecord]:
    """Yield the trials of all rows of one audit, in the order of ``rows``; ``array_rows`` are tuples (trial, name, data).

    Raises:
        ValueError: if a checksum does not match, or a trial has no arrays, or arrays have no trial.
    """
    arrays: dict[int, list[tuple[str, bytes]]] = {}
    for number, name, data in array_rows:
        arrays.setdefault(number, []).append((name, data))
    if set(arrays) != {row.number for row in rows}:
        raise ValueError("trials and scores do not match")
    all_failures, all_metadata = _parse_all([row.failures for row in rows]), _parse_all([row.metadata for row in rows])
    for row, failures, metadata in zip(rows, all_failures, all_metadata, strict=True):
        _compare(row.checksum, _trial_checksum(row, arrays[row.number]), f"trial {row.number}")
        named = {name: np.frombuffer(data, "<f8") for name, data in arrays[row.number]}
        evidence = {name.removeprefix(_EVIDENCE): named.pop(name) for name in list(named) if name.startswith(_EVIDENCE)}
        yield TrialRecord(row.number, named, failures, row.seconds, metadata, row.attempts, evidence)


def _trial_checksum(row: TrialRow, arrays: Iterable[tuple[str, bytes]]) -> bytes:
    numbers = struct.pack("<qdq", row.number, row.seconds, row.attempts)
    return _checksum(row.audit_id, numbers, row.failures, row.metadata, *(part for array in arrays for part in array))


def _checksum(audit_id: bytes, *parts: str | bytes) -> bytes:
    """Return a digest of the audit's id and the parts of a row, each part with its length."""
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]
    lengths = struct.pack(f"<{len(encoded)}q", *map(len, encoded))
    return hashlib.blake2b(b"".join((audit_id, lengths, *encoded)), digest_size=16).digest()


def _compare(stored: bytes, computed: bytes, row: str = "it") -> None:
    if stored != computed:
        raise ValueError(f"the checksum of {row} does not match")


def _parse_all(texts: list[str]) -> list[Any]:
    """Parse JSON objects as one list, which is much faster than one by one."""
    values: list[Any] = json.loads(f"[{','.join(texts)}]")
    if len(values) != len(texts) or not all(isinstance(value, dict) for value in values):
        raise ValueError(f"expected {len(texts)} JSON objects, got {len(values)} values")
    return values
