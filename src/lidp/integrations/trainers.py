"""Any trainer: ``train(records, seed) -> model`` and ``loss(model, record) -> float`` are all that it takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.global_generators import seed_global_generators
from lidp._runtime.user_code import must_propagate, user_code
from lidp.canaries.difficulty import difficulty
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.record_sets import CanaryPool, PooledRecords, count, record
from lidp.target import Prepared, Target

Floats = NDArray[np.float64]
Loss = Callable[[Any, Any], float]
"""Of a model on a record."""
LossOf = Callable[[Any, int], float]
"""Of an output on the record of the pool that has a number."""

SAME_RUNS = (
    "two pilot runs with different seeds came out exactly the same: the trainer does not use its seed, so that all runs would have "
    "the same noise and a true claim could be refuted; or it adds none. Use the seed; "
    "or no pilot runs (pilots=0, --pilots 0) to audit it as it is"
)


class PilotWarning(UserWarning):
    """Pilot runs failed: the audit stays valid, and rests on fewer of them."""


@dataclass(frozen=True)
class Trainer:
    """``train(records, seed)`` as a mechanism. All randomness of the training must come from the seed."""

    train: Callable[[Any, int], Any]

    def __call__(self, records: Any, rng: np.random.Generator) -> Any:
        return self.train(records, int(rng.integers(2**31)))


@dataclass(frozen=True)
class RecordLoss:
    """The loss of a model on the record of the pool that has a number. The loss gets a copy of it."""

    loss: Loss
    pool: Any = field(repr=False)

    def __call__(self, model: Any, number: int) -> float:
        return float(self.loss(model, record(self.pool, number)))


@dataclass(frozen=True)
class PoolScore:
    """How much smaller the loss on a canary is than under pilot models, in units of its spread among them.

    Without pilot models: minus the loss. A canary is a number in the pool; ``loss_of(output, number)`` is its loss.
    """

    loss_of: LossOf

    def __call__(self, output: Any, canary: int, *prepared: Mapping[str, NDArray[Any]]) -> float:
        number = int(canary)
        loss = self.loss_of(output, number)
        if not prepared:
            return -loss
        found: float = (prepared[0]["pool_losses"][number] - loss) / prepared[0]["pool_spreads"][number]
        return found


@dataclass(frozen=True)
class PoolPilots:
    """A preparation step: train ``models`` on the records alone, and note their mean loss on each record of the pool.

    Those that fail are left out, with a :class:`PilotWarning`; it is an error only if all do.
    """

    mechanism: Callable[[Any, np.random.Generator], Any]
    loss_of: LossOf
    models: int

    def __call__(self, records: PooledRecords, rng: np.random.Generator) -> Prepared:
        numbers = range(count(records.pool))
        found: list[NDArray[Any]] = []
        trouble: BaseException | None = None
        for own in rng.spawn(self.models):
            seed_global_generators(own)
            try:
                with user_code():
                    output = self.mechanism(records.with_canaries(np.empty(0, np.int64)), own)
                    losses = np.array([self.loss_of(output, number) for number in numbers])
                if not np.isfinite(losses).all():
                    raise InvalidArgument(
                        f"the loss on record {int(np.argmin(np.isfinite(losses)))} of the pool is not finite"
                    )
                found.append(losses)
            except BaseException as error:  # whatever a trainer may raise; one bad run must not end the audit
                if must_propagate(error):
                    raise
                trouble = trouble or error
        if not found:
            raise AuditFailed(f"all {self.models} pilot runs failed, the first with: {trouble}") from trouble
        if len(found) < self.models:
            told = (
                f"{self.models - len(found)} of {self.models} pilot runs failed and are left out, the first with: {trouble}"
            )
            warnings.warn(f"{told}; mend the trainer, or expect as many of the trials to fail", PilotWarning, stacklevel=1)
        if len(found) > 1 and np.array_equal(found[0], found[1]):
            raise AuditFailed(SAME_RUNS)
        means, spreads = difficulty(np.array(found))
        # Where pilot models hardly differ, models with a canary may all the same: half-way to what the pool has in common.
        spreads = np.sqrt((spreads**2 + np.mean(spreads**2)) / 2)
        return Prepared({"pool_losses": means, "pool_spreads": spreads}, models=self.models)


def pool_target(
    mechanism: Any,
    loss_of: LossOf,
    data: PooledRecords,
    *,
    pilots: int,
    name: str,
    facts: Mapping[str, float | str] | None = None,
) -> Target:
    """A target whose canaries are records of a pool and whose score is a loss."""
    return Target(
        mechanism,
        CanaryPool(count(data.pool)),
        PoolScore(loss_of),
        dataset=data,
        prepare=PoolPilots(mechanism, loss_of, checks.count(pilots=pilots)) if pilots else None,
        name=name,
        facts=facts or {},
    )


def trainer_target(
    train: Callable[[Any, int], Any],
    loss: Loss,
    records: Any,
    canaries: Any,
    *,
    pilots: int = 8,
    name: str = "",
    facts: Mapping[str, float | str] | None = None,
) -> Target:
    """A target from any way to train.

    Args:
        train: ``train(records, seed) -> model``. What is public about the data, such as a sampling rate, must not depend on how
            many records there are: canaries are among them in some runs and not in others.
        loss: ``loss(model, record) -> float``, smaller for records that the model has seen.
        records: the data: a list, an array, or a tuple of arrays (columns); ``train`` gets the same make with canaries added.
        canaries: a pool of records of the same make that canaries are drawn from, fixed beforehand.
        pilots: models trained before the audit, without canaries, to learn how hard each record of the pool is; 0 for none.

    Guarantee: valid whatever ``train`` and ``loss`` do, if runs are independent but for what they are given.
    """
    for which, function in (("train", train), ("loss", loss)):
        if not callable(function):
            raise InvalidArgument(f"{which} must be callable, got {function!r}")
    name = name or str(getattr(train, "__qualname__", type(train).__qualname__))
    data = PooledRecords(records, canaries)
    return pool_target(Trainer(train), RecordLoss(loss, data.pool), data, pilots=pilots, name=name, facts=facts)
