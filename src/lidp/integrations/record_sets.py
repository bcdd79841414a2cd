"""Records of any make, joined and picked from: lists, arrays, tuples of arrays (columns), PyTorch data sets."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
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
    """One of them; a row of columns is a tuple."""
    return tuple(column[number] for column in records) if are_columns(records) else records[number]


def pick(records: Any, numbers: Ints) -> Any:
    """Some of them, copied, so that whoever gets them may write into them."""
    if are_columns(records):
        return tuple(pick(column, numbers) for column in records)
    if _is_array(records):
        return records[numbers]
    if isinstance(records, (list, tuple)):
        return [copy.deepcopy(records[number]) for number in numbers]
    from torch.utils.data import Subset

    return Subset(records, [int(number) for number in numbers])


def joined(records: Any, more: Any) -> Any:
    """All of both, in this order, in one collection of the same make."""
    if are_columns(records):
        return tuple(joined(one, other) for one, other in zip(records, more, strict=True))
    if isinstance(records, np.ndarray):
        return np.concatenate([records, more])
    if _is_tensor(records):
        return sys.modules["torch"].cat([records, more])
    if isinstance(records, (list, tuple)):
        return [*copy.deepcopy(list(records)), *more]
    from torch.utils.data import ConcatDataset

    return ConcatDataset([records, more])


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
    """Records, and a pool that canaries come from; planted ones stand at the end."""

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

    def __len__(self) -> int:
        return count(self.records)

    def with_canaries(self, canaries: Sequence[int] | Ints) -> Any:
        """The records with those of the pool that have these numbers."""
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
