"""``Target``: what is audited, bundled."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lidp._runtime.copies import copy_for_run
from lidp.canaries import CanaryDistribution
from lidp.claim import Neighbours
from lidp.errors import InvalidArgument
from lidp.pair_target import PairTarget

_PLAIN = (bool, int, float, complex, str, bytes, np.generic)


@dataclass(frozen=True)
class Output:
    """What a mechanism may return instead of its bare output, to have metadata (accuracy, steps, ...) kept with the trial."""

    value: Any
    metadata: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """What a preparation step found: plain arrays, and how many models it trained to find them."""

    arrays: Mapping[str, ArrayLike]
    models: int = 0


def plain_preparation(found: Prepared | Mapping[str, ArrayLike]) -> Prepared:
    """What a preparation step returned, as arrays that can be kept and sent."""
    prepared = found if isinstance(found, Prepared) else Prepared(found)
    arrays = {name: np.asarray(array, dtype=np.float64) for name, array in prepared.arrays.items()}
    return Prepared(arrays, prepared.models)


@dataclass(frozen=True)
class Target:
    """A mechanism, the canaries to plant in its data, and the score that looks for them.

    Attributes:
        mechanism: ``mechanism(dataset, rng) -> output``. May have ``run_many(datasets, rngs) -> outputs`` for several
            data sets at a time; each output may depend on its own data set and generator only. All randomness should come from
            ``rng``. A mechanism that can promise so says it by an attribute ``draws_only_from_rng = True``; others are run up to
            three times more before trials start in several processes, and up to five times before an audit is resumed in one,
            to find random numbers of their own that repeat; fast ones more often, for about a second (:mod:`lidp.trials.probe`).
        canaries: a :class:`~lidp.canaries.CanaryDistribution`.
        score: ``score(output, canary) -> float``, higher when the canary looks inserted. May have
            ``many(output, canaries) -> array``. With a preparation step both get its arrays as a further argument.
            See :mod:`lidp.trials.scoring` for scores that use more of a trial than that.
        dataset: the base data set D: a sequence or an array, and canaries are appended to it; or an object of one's own with a
            length and ``with_canaries(canaries)``, which returns the data set to run on and shares no canary with its argument.
        prepare: an optional step ``prepare(dataset, rng) -> Prepared`` that runs once before the first trial, with
            randomness of its own: pilot models, a decomposition. It is stored with the audit and its models are counted.
        name: how results call the target.
        facts: what results should say of the target besides: numbers or words by name.
        neighbours: the relation that planting a canary makes, where the data set or the noise of the mechanism is made for one;
            audits of another are refused.
    """

    mechanism: Any
    canaries: CanaryDistribution
    score: Any
    dataset: Any = ()
    prepare: Any = None
    name: str = ""
    facts: Mapping[str, float | str] = field(default_factory=dict)
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        if not callable(self.mechanism):
            raise InvalidArgument(f"mechanism must be callable as mechanism(dataset, rng), got {self.mechanism!r}")
        if not callable(self.score) and not hasattr(self.score, "score_trial"):
            raise InvalidArgument(f"score must be callable as score(output, canary), got {self.score!r}")
        if isinstance(self.canaries, type):
            raise InvalidArgument(
                f"canaries is the class {self.canaries.__name__}; give an instance, {self.canaries.__name__}(...)"
            )
        if not isinstance(self.canaries, CanaryDistribution):
            raise InvalidArgument(f"canaries must have a method draw(rng, size), got {self.canaries!r}")
        if self.prepare is not None and not callable(self.prepare):
            raise InvalidArgument(f"prepare must be callable as prepare(dataset, rng), got {self.prepare!r}")
        if not isinstance(self.dataset, (np.ndarray, list, tuple)) and not hasattr(self.dataset, "with_canaries"):
            raise InvalidArgument(
                f"dataset must be a list, a tuple or an array of records, or have a method with_canaries(canaries), "
                f"got {type(self.dataset).__name__}; let the mechanism turn records into what it needs"
            )
        if not self.name:
            object.__setattr__(self, "name", _name_of(self.mechanism))

    @property
    def parts(self) -> tuple[Any, ...]:
        """All that decides what is audited."""
        return self.mechanism, self.canaries, self.score, self.prepare, self.dataset


def with_canaries(dataset: Any, canaries: Any) -> Any:
    """The data set with canaries appended, all copied.

    What a mechanism does to its records in place must not reach the canaries that are scored, nor the next trial.
    """
    own = getattr(dataset, "with_canaries", None)
    if own is not None:
        return own(canaries)
    if isinstance(canaries, np.ndarray) and canaries.dtype != object:
        if isinstance(dataset, np.ndarray) and dataset.dtype != object:
            return np.concatenate([dataset, canaries])
        if not len(dataset):
            return canaries.copy()
    return copy_for_run([*dataset, *canaries])


def fingerprint(target: Target | PairTarget) -> str:
    """A digest of what is audited, so that a store is not gone on with for something else."""
    return fingerprint_of(target.parts)


def fingerprint_of(parts: Any) -> str:
    """Return a digest of functions, settings and data."""
    return hashlib.sha256(json.dumps([_described(part) for part in parts]).encode()).hexdigest()[:16]


def _described(thing: Any) -> Any:
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return [str(thing.dtype), list(thing.shape), hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()]
    if is_dataclass(thing) and not isinstance(thing, type):
        # What does not count when two are compared does not tell them apart here either.
        return [
            type(thing).__qualname__,
            *(_described(getattr(thing, item.name)) for item in fields(thing) if item.compare),
        ]
    if isinstance(thing, (list, tuple)):
        return [_described(part) for part in thing]
    if isinstance(thing, dict):  # in no order: the same entries are the same settings
        return ["dict", *sorted(([_described(key), _described(value)] for key, value in thing.items()), key=json.dumps)]
    if isinstance(thing, functools.partial):
        return ["partial", _described(thing.func), _described(thing.args), _described(sorted(thing.keywords.items()))]
    if thing is None or isinstance(thing, _PLAIN):
        return repr(thing)
    name = [getattr(thing, "__module__", ""), getattr(thing, "__qualname__", type(thing).__qualname__)]
    if isinstance(getattr(thing, "__code__", None), CodeType):
        return [*name, *_described_function(getattr(thing, "py_func", thing))]  # what numba has compiled
    if hasattr(thing, "detach") and hasattr(thing, "numpy"):  # a tensor
        return [*name, _described(thing.detach().cpu().numpy())]
    if hasattr(thing, "tensors"):  # a data set of tensors
        return [*name, _described(tuple(thing.tensors))]
    call = getattr(type(thing), "__call__", None)  # noqa: B004  # its code, not whether it has any
    return [*name, *(_described_function(call) if isinstance(getattr(call, "__code__", None), CodeType) else [])]


def _described_function(function: Any) -> list[Any]:
    """A function's code, and the plain values and functions that it brings along."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    brought = [*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items()), *cells]
    return [_described_code(function.__code__, _globals(function)), [_brought(value) for value in brought]]


def _brought(value: Any) -> Any:
    if isinstance(value, FunctionType):  # by its code alone: functions may bring one another
        return _described_code(value.__code__, _globals(value))
    if isinstance(value, (tuple, functools.partial)) or (_is_plain(value) and not isinstance(value, list)):
        return _described(value)
    return type(value).__qualname__  # a list, say, may be where a function notes what it has seen


def _described_code(code: CodeType, names: Mapping[str, Any]) -> list[Any]:
    """Code, its constants, and those of its module that it names; they are in upper case, other names may change as it runs."""
    documented = bool(code.co_consts) and isinstance(code.co_consts[0], str) and code.co_name != "<lambda>"
    constants = [
        one for one in code.co_consts[documented:] if not isinstance(one, frozenset)
    ]  # sets are printed in any order
    described = [_described_code(one, names) if isinstance(one, CodeType) else repr(one) for one in constants]
    used = [name for name in code.co_names if name.isupper() and name in names and _is_plain(names[name])]
    shared = [[name, _described(names[name])] for name in used]
    return [hashlib.sha256(code.co_code).hexdigest(), described, list(code.co_names), shared]


def _globals(function: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(function, "__globals__", {})
    return found


def _is_plain(value: Any) -> bool:
    """Whether a value is described by what it holds alone: numbers, texts, arrays, and collections of them."""
    if isinstance(value, dict):
        return all(_is_plain(part) for entry in value.items() for part in entry)
    if isinstance(value, (list, tuple)):
        return all(_is_plain(part) for part in value)
    return value is None or isinstance(value, _PLAIN) or (isinstance(value, np.ndarray) and value.dtype != object)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that has no value yet
        return False


def _name_of(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or type(thing).__qualname__)
