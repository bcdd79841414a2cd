"""Comparison of outputs, canaries and trial records, bit for bit."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from lidp.designs.trial_record import TrialRecord


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are of one type and equal: arrays by their bytes, collections by their items, NaN to NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray) and one.dtype != object:
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    if isinstance(one, (list, tuple, np.ndarray)):
        return len(one) == len(other) and all(equal(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if is_dataclass(one):
        return all(equal(getattr(one, item.name), getattr(other, item.name)) for item in fields(one))
    if isinstance(one, (float, complex, np.generic)):
        return bool(one == other) or bool(one != one and other != other)
    return bool(one == other) or _same_bytes(one, other)


def _same_bytes(one: Any, other: Any) -> bool:
    """Return whether two objects that do not compare as equal, such as tensors or models, are pickled alike."""
    try:
        return pickle.dumps(one) == pickle.dumps(other)
    except Exception:  # noqa: BLE001  # what cannot be pickled can fail in any way, and is not known to be equal
        return False


def same_record(one: TrialRecord, other: TrialRecord) -> bool:
    """Return whether two records of a trial hold the same scores and notes; their times and tracebacks may differ."""
    arrays = {name: np.asarray(array) for name, array in one.arrays.items()}
    others = {name: np.asarray(array) for name, array in other.arrays.items()}
    return (
        one.index == other.index
        and equal(arrays, others)
        and set(one.failures) == set(other.failures)
        and equal(dict(one.metadata), dict(other.metadata))
    )
