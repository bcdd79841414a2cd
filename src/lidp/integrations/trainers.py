"""Audit any trainer, given ``train(records, seed) -> model`` and ``loss(model, record) -> float``."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.global_generators import seed_global_generators
from lidp._runtime.user_code import must_propagate, user_code
from lidp.arrays import NamedArrays
from lidp.canaries.difficulty import difficulty
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.canary_counts import count_pooled
from lidp.integrations.record_sets import CanaryPool, PooledRecords, count, record
from lidp.target import Prepared, Target
from lidp.trials.repeated_noise import IDENTICAL_PILOTS

Loss = Callable[[Any, Any], float]
"""Loss of a model on a record."""
PoolLoss = Callable[[Any, int], float]
"""Loss of an output on the record of the pool with this number."""


class PilotWarning(UserWarning):
    """Some pilot runs failed. The audit remains valid, and uses the others."""


@dataclass(frozen=True)
class Trainer:
    """A function ``train(records, seed)`` as a mechanism. All randomness of the training must come from the seed."""

    train: Callable[[Any, int], Any]

    def __call__(self, records: Any, rng: np.random.Generator) -> Any:
        return self.train(records, int(rng.integers(2**31)))


@dataclass(frozen=True)
class RecordLoss:
    """Returns the loss of a model on the record of the pool with a given number. The loss function gets a copy of it."""

    loss: Loss
    pool: Any = field(repr=False)

    def __call__(self, model: Any, number: int) -> float:
        return float(self.loss(model, record(self.pool, number)))


@dataclass(frozen=True)
class PoolScore:
    """Mean loss of pilot models on a canary minus its loss in this run, in units of its spread among the pilot models.

    Without pilot models, the score is minus the loss. A canary is a number in the pool; ``loss_of(output, number)`` is its loss.
    """

    loss_of: PoolLoss

    def __call__(self, output: Any, canary: int, *prepared: NamedArrays) -> float:
        number = int(canary)
        loss = self.loss_of(output, number)
        if not prepared:
            return -loss
        score: float = (prepared[0]["pool_losses"][number] - loss) / prepared[0]["pool_spreads"][number]
        return score


@dataclass(frozen=True)
class PoolPilots:
    """A preparation step: train ``models`` models without canaries, and return their mean loss on each record of the pool.

    Pilot runs that fail are left out with a :class:`PilotWarning`. It is an error only if all of them fail.
    """

    mechanism: Callable[[Any, np.random.Generator], Any]
    loss_of: PoolLoss
    models: int

    def __call__(self, records: PooledRecords, rng: np.random.Generator) -> Prepared:
        numbers = range(count(records.pool))
        pool_losses: list[NDArray[Any]] = []
        seconds: list[float] = []
        first_error: BaseException | None = None
        for pilot_rng in rng.spawn(self.models):
            seed_global_generators(pilot_rng)
            start = time.monotonic()
            try:
                with user_code():
                    output = self.mechanism(records.with_canaries(np.empty(0, np.int64)), pilot_rng)
                    losses = np.array([self.loss_of(output, number) for number in numbers])
                if not np.isfinite(losses).all():
                    raise InvalidArgument(
                        f"the loss on record {int(np.argmin(np.isfinite(losses)))} of the pool is not finite"
                    )
                pool_losses.append(losses)
                seconds.append(time.monotonic() - start)
            except BaseException as error:  # anything that a trainer may raise; one failed run must not end the audit
                if must_propagate(error):
                    raise
                first_error = first_error or error
        if not pool_losses:
            raise AuditFailed(f"all {self.models} pilot runs failed, the first with: {first_error}") from first_error
        failed = self.models - len(pool_losses)
        if failed:
            warnings.warn(
                f"{failed} of {self.models} pilot runs failed and are left out, the first with: {first_error}; repair the trainer, "
                "or expect the same share of trials to fail",
                PilotWarning,
                stacklevel=1,
            )
        if len(pool_losses) > 1 and np.array_equal(pool_losses[0], pool_losses[1]):
            raise AuditFailed(IDENTICAL_PILOTS)
        means, spreads = difficulty(np.array(pool_losses))
        # Models with a canary may differ even where pilot models hardly do: shrink half-way to the mean variance of the pool.
        spreads = np.sqrt((spreads**2 + np.mean(spreads**2)) / 2)
        arrays = {"pool_losses": means, "pool_spreads": spreads}
        return Prepared(arrays, models=self.models, model_seconds=min(seconds))


def pool_target(
    mechanism: Any,
    loss_of: PoolLoss,
    data: PooledRecords,
    *,
    pilots: int,
    name: str,
    facts: Mapping[str, float | str] | None = None,
) -> Target:
    """Return a target whose canaries are records of a pool, and whose score is based on a loss."""
    return Target(
        mechanism,
        CanaryPool(count(data.pool)),
        PoolScore(loss_of),
        dataset=data,
        prepare=PoolPilots(mechanism, loss_of, checks.count(pilots=pilots)) if pilots else None,
        name=name,
        facts=facts or {},
        interference="the final model mixes what all canaries have added",
        canary_count=count_pooled(count(data.pool), count(data.records)),
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
    """Return a target for any training function.

    Args:
        train: ``train(records, seed) -> model``. Public quantities, such as a sampling rate, must not depend on the number of
            records: canaries are among them in some runs and not in others.
        loss: ``loss(model, record) -> float``, smaller for records on which the model was trained.
        records: the data: a list, an array, or a tuple of arrays (columns); ``train`` gets the same type with canaries added.
        canaries: a pool of records of the same type, fixed before the audit, from which canaries are drawn.
        pilots: number of models trained before the audit without canaries, to measure how hard each record of the pool is; may
            be 0.
        facts: numbers or words by name, which results show.

    Guarantee: valid for any ``train`` and ``loss``, if runs are independent given their arguments.
    """
    for argument, function in (("train", train), ("loss", loss)):
        if not callable(function):
            raise InvalidArgument(f"{argument} must be callable, got {function!r}")
    name = name or str(getattr(train, "__qualname__", type(train).__qualname__))
    data = PooledRecords(records, canaries)
    return pool_target(Trainer(train), RecordLoss(loss, data.pool), data, pilots=pilots, name=name, facts=facts)
