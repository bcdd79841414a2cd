"""Records of any make, joined and picked from: lists, arrays, tuples of arrays (columns), PyTorch data sets."""

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
from lidp.errors import InvalidArgument

Ints = NDArray[np.int64]


def are_columns(records: Any) -> bool:
    """Whether records are a tuple of arrays or tensors of one length: features and labels, say."""
    return isinstance(records, tuple) and bool(records) and all(_is_array(column) for column in records)


def _is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray) or _is_tensor(thing)


def _is_tensor(thing: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor)


def count(records: Any) -> int:
    """How many there are."""
    if not are_columns(records):
        return len(records)
    lengths = {len(column) for column in records}
    if len(lengths) > 1:
        raise InvalidArgument(f"columns must be of one length, got {sorted(lengths)}")
    return lengths.pop()


def record(records: Any, number: int) -> Any:
    """Return a copy of one record; a row of columns is a tuple."""
    if are_columns(records):
        return tuple(_copy_of(column[number]) for column in records)
    return _copy_of(records[number])


def copied(records: Any) -> Any:
    """Return a copy of all records that shares no memory with them.

    Every run gets one: what a run does to its records in place must reach neither the next run nor the scoring, whichever way
    the records are kept. A run that saw what an earlier run left behind would depend on that run's coins.

    Raises:
        AuditFailed: if the records cannot be copied, or hold a random number generator: see :mod:`lidp._runtime.copies`.
    """
    return tuple(map(_copy_of, records)) if are_columns(records) else _copy_of(records)


def snapshot(pool: Any) -> Any:
    """Return the records of a pool as they are now, in a collection that reading does not change.

    A data set of PyTorch becomes a list of its items, because reading an item may change the data set (normalisation in place)
    or draw random numbers (augmentation). The items are read from a copy, with generators that start from a fixed seed.
    """
    own = copied(pool)
    if are_columns(own) or _is_array(own) or isinstance(own, (list, tuple)):
        return own
    with preserve_global_generators():
        seed_global_generators(np.random.default_rng(0))
        return [_copy_of(own[number]) for number in range(len(own))]


def _copy_of(thing: Any) -> Any:
    if type(thing) in (list, tuple):
        return type(thing)(_copy_of(part) for part in thing)
    if type(thing) is dict:
        return {key: _copy_of(value) for key, value in thing.items()}
    if _is_tensor(thing):
        return thing.detach().clone()  # deepcopy would copy all of the memory that the tensor is a view of
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return thing.copy()
    return copy_for_run(thing)


def pick(records: Any, numbers: Ints) -> Any:
    """Return copies of some records, so that whoever gets them may write into them. A number given twice gives two copies."""
    if are_columns(records):
        return tuple(pick(column, numbers) for column in records)
    if _is_array(records):
        chosen = records[numbers]
        if chosen.dtype == object:  # an array of references
            for place in np.ndindex(chosen.shape):
                chosen[place] = _copy_of(chosen[place])
        return chosen
    return [_copy_of(records[int(number)]) for number in numbers]


def joined(records: Any, more: Any) -> Any:
    """Return a copy of ``records``, followed by ``more``, in one collection of the same make."""
    if are_columns(records):
        return tuple(joined(one, other) for one, other in zip(records, more, strict=True))
    if isinstance(records, np.ndarray):
        return np.concatenate([_copy_of(records) if records.dtype == object else records, more])
    if _is_tensor(records):
        return sys.modules["torch"].cat([records, more]).detach()
    if isinstance(records, (list, tuple)):
        return [*_copy_of(list(records)), *more]
    from torch.utils.data import ConcatDataset

    return ConcatDataset([_copy_of(records), more])


@dataclass(frozen=True)
class CanaryPool:
    """Canaries that are records, uniform over some: a canary is the number of its record, so that scores can look it up.

    A pool should be several times as large as a trial has canaries: of two that are the same record, one hides the other.
    """

    size: int

    def __post_init__(self) -> None:
        checks.count(size=self.size)

    def draw(self, rng: np.random.Generator, size: int) -> Ints:
        """So many numbers."""
        return rng.integers(0, self.size, size)


@dataclass(frozen=True)
class PooledRecords:
    """Records, and a pool that canaries come from; planted ones stand at the end.

    The pool is kept as a :func:`snapshot`; scores must take canaries from there, and not from what it was made of.
    """

    records: Any = field(repr=False)
    pool: Any = field(repr=False)

    def __post_init__(self) -> None:
        if are_columns(self.records) != are_columns(self.pool) or (
            are_columns(self.pool) and len(self.pool) != len(self.records)
        ):
            raise InvalidArgument(
                "records and pool must be of one make: both lists, both arrays, or both tuples of as many arrays"
            )
        if not count(self.pool):
            raise InvalidArgument("the pool of canaries is empty; give it at least one record")
        object.__setattr__(self, "pool", snapshot(self.pool))
        copied(self.records)  # what cannot be copied, or holds a generator, is refused before the first run

    def __len__(self) -> int:
        return count(self.records)

    def with_canaries(self, canaries: Sequence[int] | Ints) -> Any:
        """Return copies of the records and of those of the pool that have these numbers."""
        return joined(self.records, pick(self.pool, np.asarray(canaries, dtype=np.int64)))


def mislabelled_records(records: Any, size: int = 256, *, seed: int = 0) -> tuple[NDArray[Any], ...]:
    """A pool of canaries from columns (features, labels): records of the data under a label that is another's.

    The data have hardly anything like them, so that a model shows best whether it has seen one.
    """
    if not are_columns(records) or len(records) != 2:
        raise InvalidArgument("mislabelled_records takes a tuple of two arrays: features and labels")
    features, labels = records
    classes = np.unique(labels)
    if len(classes) < 2:
        raise InvalidArgument("mislabelling needs at least 2 different labels")
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, count(records), checks.count(size=size))
    places = np.searchsorted(classes, labels[chosen])
    wrong = classes[(places + rng.integers(1, len(classes), size)) % len(classes)]
    return features[chosen], wrong
