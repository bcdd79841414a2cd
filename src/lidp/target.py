"""What is audited: ``Target``, a mechanism with data, canaries and a score; ``PairTarget``, a mechanism with two data sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lidp._runtime.copies import copy_for_run
from lidp.canaries import CanaryDistribution
from lidp.claim import Neighbours
from lidp.curves import PrivacyCurve
from lidp.errors import InvalidArgument


@dataclass(frozen=True)
class Output:
    """An output with metadata (accuracy, steps, ...) that is stored with the trial. A mechanism may return it."""

    value: Any
    metadata: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """The result of a preparation step: arrays, and the number of models that were trained for them.

    ``model_seconds`` is how long the fastest of them took, if it was measured: a first one also imports and compiles. Progress
    shows what the audit costs by it.
    """

    arrays: Mapping[str, ArrayLike]
    models: int = 0
    model_seconds: float | None = None


@dataclass(frozen=True)
class CanaryCount:
    """How many canaries a trial has unless a design says otherwise, and why."""

    number: int
    reason: str

    def __str__(self) -> str:
        return f"{self.number:,} per model, chosen by default: {self.reason}"


def plain_preparation(returned: Prepared | Mapping[str, ArrayLike]) -> Prepared:
    """Convert the return value of a preparation step to arrays of floats, which can be stored and sent to workers."""
    prepared = returned if isinstance(returned, Prepared) else Prepared(returned)
    arrays = {name: np.asarray(array, dtype=np.float64) for name, array in prepared.arrays.items()}
    return Prepared(arrays, prepared.models, prepared.model_seconds)


@dataclass(frozen=True)
class Target:
    """A mechanism, the canaries to plant in its data, and the score that looks for them.

    Attributes:
        mechanism: ``mechanism(dataset, rng) -> output``. It may have ``run_many(datasets, rngs) -> outputs`` to run on several
            data sets at once; each output must depend on its own data set and generator only. All randomness should come from
            ``rng``. A mechanism that can promise so has an attribute ``draws_only_from_rng = True``. Other mechanisms are run up
            to three more times before trials start in several processes, and up to five more times before an audit is resumed
            in one process, to find random numbers that repeat; fast ones for about a second (:mod:`lidp.trials.probe`). Those
            without a preparation step run for about a second in a process of their own, to find noise that is the same in every run
            (:mod:`lidp.trials.repeated_noise`).
        canaries: a :class:`~lidp.canaries.CanaryDistribution`.
        score: ``score(output, canary) -> float``, higher when the canary looks inserted. It may have
            ``many(output, canaries) -> array``. With a preparation step, both get its arrays as another argument.
            See :mod:`lidp.trials.scoring` for scores that use more of a trial.
        dataset: the base data set D: a sequence or an array, to which canaries are appended; or an object with a length and
            ``with_canaries(canaries)``, which returns the data set to run on and shares no canary with its argument.
        prepare: an optional step ``prepare(dataset, rng) -> Prepared`` that runs once before the first trial, with its own
            randomness: pilot models, a decomposition. Its result is stored with the audit and its models are counted.
        name: the name of the target in results.
        facts: further facts about the target for results: numbers or words by name.
        neighbours: the neighbour relation that planting a canary creates, if the data set or the noise is made for one.
            Audits of another relation are refused.
        curve: what the accountant promises for the mechanism, at every ε. An audit of a point (ε, δ) that follows from it tests
            the whole curve, which takes far fewer models, and then the point.
        interference: why the score of one canary depends on other canaries of the same run, if it does; None if nobody knows.
            With a reason, an audit may not count every canary as a trial of its own (``independent_canaries``).
        canary_count: the number of canaries for audits that give no design; 64 if left out. It must not depend on coins or
            scores.
    """

    mechanism: Any
    canaries: CanaryDistribution
    score: Any
    dataset: Any = ()
    prepare: Any = None
    name: str = ""
    facts: Mapping[str, float | str] = field(default_factory=dict)
    neighbours: Neighbours | None = None
    curve: PrivacyCurve | None = None
    interference: str | None = None
    canary_count: CanaryCount | None = None

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


@dataclass(frozen=True)
class PairTarget:
    """The target of a pair audit, which infers from an output which of two data sets the mechanism got.

    Attributes:
        mechanism: ``mechanism(dataset, rng) -> output`` with a numpy ``Generator`` for all its randomness. Outputs may be numbers,
            vectors, strings, tuples, lists of any length, dicts, None. If it also has ``many(dataset, size, rng)``, which returns
            the outputs of ``size`` independent runs (a list, or an array with one row per run), that is used instead.
        d0, d1: data sets that are neighbours in the sense of the claim.
        features: ``features(output) -> sequence of numbers``, given to the classifier in addition to the output's own numbers.
        name: the name of the target in results.
    """

    mechanism: Callable[..., Any]
    d0: Any
    d1: Any
    features: Callable[[Any], Any] | None = None
    name: str = field(default="")

    def __post_init__(self) -> None:
        if not callable(self.mechanism):
            raise InvalidArgument(f"a mechanism must be callable as mechanism(dataset, rng), got {self.mechanism!r}")
        if self.features is not None and not callable(self.features):
            raise InvalidArgument(f"features must be callable as features(output), got {self.features!r}")
        if not self.name:
            named = getattr(self.mechanism, "__name__", None) or type(self.mechanism).__name__
            object.__setattr__(self, "name", named)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Everything that determines what is audited."""
        return self.mechanism, self.d0, self.d1, self.features


def with_canaries(dataset: Any, canaries: Any) -> Any:
    """Return the data set with canaries appended, all copied.

    A mechanism that changes its records in place thus changes neither the canaries that are scored nor the next trial.
    """
    append = getattr(dataset, "with_canaries", None)
    if append is not None:
        return append(canaries)
    if isinstance(canaries, np.ndarray) and canaries.dtype != object:
        if isinstance(dataset, np.ndarray) and dataset.dtype != object:
            return np.concatenate([dataset, canaries])
        if not len(dataset):
            return canaries.copy()
    return copy_for_run([*dataset, *canaries])


def _name_of(mechanism: Any) -> str:
    return str(getattr(mechanism, "__qualname__", None) or type(mechanism).__qualname__)
