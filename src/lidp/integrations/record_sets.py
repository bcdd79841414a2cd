"""Copy, select and concatenate records of any type: lists, arrays, tuples of arrays (columns), PyTorch data sets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.copies import copy_for_run
from lidp._runtime.global_generators import preserve_global_generators, seed_global_generators
from lidp.arrays import Ints
from lidp.errors import InvalidArgument


def are_columns(records: Any) -> bool:
    """Return whether records are columns: a tuple of arrays or tensors, such as features and labels."""
    return isinstance(records, tuple) and bool(records) and all(_is_array(column) for column in records)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or _is_tensor(value)


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def count(records: Any) -> int:
    """Return the number of records.

    Raises:
        InvalidArgument: if columns differ in length.
    """
    if not are_columns(records):
        return len(records)
    lengths = {len(column) for column in records}
    if len(lengths) > 1:
        raise InvalidArgument(f"columns must have the same length, got {sorted(lengths)}")
    return lengths.pop()


def record(records: Any, number: int) -> Any:
    """Return a copy of one record; that of columns is a tuple."""
    if are_columns(records):
        return tuple(_copy(column[number]) for column in records)
    return _copy(records[number])


def copy_records(records: Any) -> Any:
    """Return a copy of all records that shares no memory with them.

    Every run gets a copy, so that changes in place affect neither later runs nor the scoring. Otherwise a run would depend on the
    coins of earlier runs.

    Raises:
        AuditFailed: if the records cannot be copied, or hold a random number generator: see :mod:`lidp._runtime.copies`.
    """
    return tuple(map(_copy, records)) if are_columns(records) else _copy(records)


def snapshot(pool: Any) -> Any:
    """Return a copy of the records of a pool, in a collection that reading does not change.

    A data set of PyTorch becomes a list of its items, because reading an item may change the data set (normalisation in place)
    or draw random numbers (augmentation). The items are read from a copy, after the global generators were set to a fixed seed.
    """
    copied = copy_records(pool)
    if are_columns(copied) or _is_array(copied) or isinstance(copied, (list, tuple)):
        return copied
    with preserve_global_generators():
        seed_global_generators(np.random.default_rng(0))
        return [_copy(copied[number]) for number in range(len(copied))]


def _copy(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_copy(part) for part in value)
    if type(value) is dict:
        return {key: _copy(part) for key, part in value.items()}
    if _is_tensor(value):
        return value.detach().clone()  # deepcopy would also copy the rest of the memory of which the tensor is a view
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.copy()
    return copy_for_run(value)


def select(records: Any, numbers: Ints) -> Any:
    """Return separate copies of the records with these numbers, which the caller may change."""
    if are_columns(records):
        return tuple(select(column, numbers) for column in records)
    if _is_array(records):
        chosen = records[numbers]
        if chosen.dtype == object:  # an array of references
            for index in np.ndindex(chosen.shape):
                chosen[index] = _copy(chosen[index])
        return chosen
    return [_copy(records[int(number)]) for number in numbers]


def concatenate(records: Any, more: Any) -> Any:
    """Return a copy of ``records`` followed by ``more``, in one collection of the same type."""
    if are_columns(records):
        return tuple(concatenate(one, other) for one, other in zip(records, more, strict=True))
    if isinstance(records, np.ndarray):
        return np.concatenate([_copy(records) if records.dtype == object else records, more])
    if _is_tensor(records):
        return sys.modules["torch"].cat([records, more]).detach()
    if isinstance(records, (list, tuple)):
        return [*_copy(list(records)), *more]
    from torch.utils.data import ConcatDataset

    return ConcatDataset([_copy(records), more])


@dataclass(frozen=True)
class CanaryPool:
    """Canaries drawn uniformly from a pool of records. A canary is the number of its record, by which scores look it up.

    A pool should have several times as many records as a trial has canaries: if two canaries of a trial are the same record, the
    score of one also depends on the coin of the other.
    """

    size: int

    def __post_init__(self) -> None:
        checks.count(size=self.size)

    def draw(self, rng: np.random.Generator, size: int) -> Ints:
        """Return ``size`` numbers of records."""
        return rng.integers(0, self.size, size)


@dataclass(frozen=True)
class PooledRecords:
    """Records, and a pool from which canaries are drawn. Inserted canaries follow the records.

    The pool is stored as a :func:`snapshot`. Scores must look up canaries there, not in the collection that was passed.
    """

    records: Any = field(repr=False)
    pool: Any = field(repr=False)

    def __post_init__(self) -> None:
        if are_columns(self.records) != are_columns(self.pool) or (
            are_columns(self.pool) and len(self.pool) != len(self.records)
        ):
            raise InvalidArgument(
                "records and pool must have the same type: both lists, both arrays, or both tuples of equally many arrays"
            )
        if not count(self.pool):
            raise InvalidArgument("the pool of canaries is empty; it needs at least one record")
        object.__setattr__(self, "pool", snapshot(self.pool))
        copy_records(self.records)  # raises before the first run if records cannot be copied or hold a generator

    def __len__(self) -> int:
        return count(self.records)

    def with_canaries(self, canaries: Sequence[int] | Ints) -> Any:
        """Return copies of the records, followed by copies of the records of the pool with these numbers."""
        return concatenate(self.records, select(self.pool, np.asarray(canaries, dtype=np.int64)))


def mislabelled_records(records: Any, size: int = 256, *, seed: int = 0) -> tuple[NDArray[Any], ...]:
    """Return a pool of canaries from columns (features, labels): records of the data with wrong labels.

    Hardly any other record supports a wrong label, so that the loss on it shows clearly whether the model was trained on it.
    """
    if not are_columns(records) or len(records) != 2:
        raise InvalidArgument("mislabelled_records takes a tuple of two arrays: features and labels")
    features, labels = records
    classes = np.unique(labels)
    if len(classes) < 2:
        raise InvalidArgument("mislabelling needs at least 2 different labels")
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, count(records), checks.count(size=size))
    class_indices = np.searchsorted(classes, labels[chosen])
    wrong = classes[(class_indices + rng.integers(1, len(classes), size)) % len(classes)]
    return features[chosen], wrong
