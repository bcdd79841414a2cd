"""``PairRunner``: run a mechanism in blocks of runs, each on the data set that a coin chose."""

from __future__ import annotations

import copy
import hashlib
import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.global_generators import seed_global_generators
from lidp._runtime.tracebacks import describe_failure, format_failure
from lidp._runtime.user_code import must_propagate, user_code
from lidp.arrays import Bools
from lidp.claim import Claim
from lidp.errors import AuditFailed, InvalidArgument
from lidp.pairs.outputs import OutputTable, short, take_apart
from lidp.streams import Purpose, stream
from lidp.target import PairTarget
from lidp.trials.repeated_noise import never_varies

_FIRST_CHECK_RUNS = 16
"""Runs on each data set before the audit, to check that the mechanism can be audited; more if all outputs are equal."""
_MUTABLE = (np.ndarray, list, dict, set, bytearray)
_LARGE_EPSILON = 5.0
"""A mechanism of larger ε may give the same output in thousands of runs."""


@dataclass(frozen=True)
class Block:
    """The runs of a block: which ones failed, why the first of them failed, and the outputs of the others in order."""

    failed: Bools
    outputs: OutputTable
    first_failure: str = ""


class PairRunner:
    """Runs blocks. A block depends only on the seed, its number and its coins."""

    def __init__(self, target: PairTarget, seed: int, *, bits: bool = False) -> None:
        self.target = target
        self.seed = seed
        self.bits = bits
        self.many = getattr(target.mechanism, "many", None)
        self._digests = [_digest(target.d0), _digest(target.d1)]

    def check(self, claim: Claim) -> None:
        """Try the mechanism on both data sets.

        Raises:
            InvalidArgument: if the data sets are equal, or can be read only once.
            AuditFailed: if the mechanism always raises, changes its data, or has no randomness.
        """
        target = self.target
        for name, dataset in (("d0", target.d0), ("d1", target.d1)):
            if isinstance(dataset, Iterator):
                raise InvalidArgument(f"{name} can be read only once ({short(dataset)}); make it a list")
        if _equal(target.d0, target.d1):
            given = "d0 and d1 are not given" if target.d0 is None else f"d0 and d1 are equal ({short(target.d0)})"
            raise InvalidArgument(f"{given}; a leak shows only between data sets that differ")
        # If the claim is true, each output of one data set occurs on the other, at least e^-ε as often.
        patience = min(max(64, 20 * math.exp(min(claim.epsilon, _LARGE_EPSILON))), 4096)
        seen: list[set[float]] = [set(), set()]
        tried, size = 0, _FIRST_CHECK_RUNS
        while tried < patience:
            outputs: list[Any] = []
            for arm in (0, 1):
                rng = stream(self.seed, trial=tried, arm=arm, purpose=Purpose.PREPARATION)
                drawn, failures = self._outputs(arm, size, rng)
                if len(failures) == size:
                    raise AuditFailed(f"{target.name} raises on d{arm}: {next(iter(failures.values()))}")
                seen[arm] |= set(take_apart(list(drawn)).identities.tolist())
                outputs += list(drawn)
            take_apart(outputs, target.features, bits=self.bits)  # raises if outputs are of different kinds
            if max(map(len, seen)) > 1:
                return
            tried += size
            size = tried
        # Equal outputs on both data sets may vary rarely; the audit itself will show.
        if seen[0] != seen[1] and claim.epsilon <= _LARGE_EPSILON:
            raise never_varies(target.name, tried)

    def run(self, number: int, coins: Bools) -> Block:
        """Run a block: on d1 where the coin is 1, on d0 elsewhere."""
        size = len(coins)
        rngs = [stream(self.seed, trial=number, arm=arm, purpose=Purpose.NOISE) for arm in (0, 1)]
        failures: dict[int, str] = {}
        if self.many is None:
            # Run in the order of the coins: a mechanism with memory must not see all runs on one data set together.
            outputs: Any = []
            seed_global_generators(stream(self.seed, trial=number, purpose=Purpose.GLOBAL))
            for index, coin in enumerate(coins):
                self._try(int(coin), rngs[int(coin)], index, outputs, failures)
            for arm in (0, 1):
                self._check_unchanged(arm)
        else:
            runs = [np.flatnonzero(coins == arm) for arm in (0, 1)]
            # Neither the data set that runs first nor the order of the outputs of many may reveal the coins.
            order = stream(self.seed, trial=number, purpose=Purpose.AUXILIARY)
            arms = order.permutation(2).tolist()
            drawn = {arm: self._many(arm, len(runs[arm]), rngs[arm]) for arm in arms}
            outputs = _interleaved([order.permutation(runs[arm]) for arm in (0, 1)], [drawn[0], drawn[1]], size)
        failed = np.zeros(size, dtype=bool)
        failed[list(failures)] = True
        table = take_apart(outputs, self.target.features, bits=self.bits)
        return Block(failed, table, next(iter(failures.values()), ""))

    def _outputs(self, arm: int, size: int, rng: np.random.Generator) -> tuple[Any, dict[int, str]]:
        """Return the outputs of ``size`` runs on one data set, and the reasons of failed runs by index."""
        if self.many is not None:
            return self._many(arm, size, rng), {}
        outputs: list[Any] = []
        failures: dict[int, str] = {}
        seed_global_generators(rng)
        for index in range(size):
            self._try(arm, rng, index, outputs, failures)
        self._check_unchanged(arm)
        return outputs, failures

    def _try(self, arm: int, rng: np.random.Generator, index: int, outputs: list[Any], failures: dict[int, str]) -> None:
        # One generator per run: a mechanism that seeds another generator from it, without drawing, would repeat its noise.
        (run_rng,) = rng.spawn(1)
        try:
            with user_code():
                output = self.target.mechanism(self.target.d1 if arm else self.target.d0, run_rng)
        except BaseException as error:  # whatever it raises, nothing is bet on the run
            if must_propagate(error):
                raise
            failures[index] = (
                "" if failures else describe_failure(format_failure(error, frames=8))
            )  # the first one is reported
        else:
            # The mechanism may overwrite a mutable output in its next run.
            outputs.append(copy.deepcopy(output) if isinstance(output, _MUTABLE) else output)

    def _many(self, arm: int, size: int, rng: np.random.Generator) -> Any:
        assert self.many is not None  # noqa: S101  # for the type checker
        if not size:
            return []
        seed_global_generators(rng)
        try:
            with user_code():
                outputs = self.many(self.target.d1 if arm else self.target.d0, size, rng)
                got = len(outputs)
        except BaseException as error:
            if must_propagate(error):
                raise
            raise AuditFailed(f"{self.target.name}.many raised {type(error).__name__}: {error}") from error
        if got != size:
            raise AuditFailed(f"{self.target.name}.many returned {got:,} outputs for {size:,} runs")
        self._check_unchanged(arm)
        return outputs.copy() if isinstance(outputs, np.ndarray) else list(outputs)

    def _check_unchanged(self, arm: int) -> None:
        now = _digest(self.target.d1 if arm else self.target.d0)
        if now is not None and now != self._digests[arm]:
            raise AuditFailed(
                f"{self.target.name} changed the data set d{arm} or an object inside it; "
                "later runs would see other data. Let it work on a copy"
            )


def _interleaved(runs: list[NDArray[np.int64]], outputs: list[Any], size: int) -> Any:
    """Return the outputs of both data sets in the order of the runs; ``runs[arm]`` are the indices of an arm's outputs."""
    arrays = [array for array in outputs if len(array)]
    if not all(isinstance(array, np.ndarray) and array.dtype != object for array in arrays):
        whole: list[Any] = [None] * size
        for arm in (0, 1):
            for index, output in zip(runs[arm], outputs[arm], strict=True):
                whole[index] = output
        return whole
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        raise AuditFailed(f"many returns arrays of shape {outputs[0].shape} for d0 and {outputs[1].shape} for d1")
    together = np.empty((size, *shapes.pop()), dtype=np.result_type(*arrays))
    for arm in (0, 1):
        if len(outputs[arm]):
            together[runs[arm]] = outputs[arm]
    return together


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)
    except (ValueError, TypeError):
        return _digest(one) is not None and _digest(one) == _digest(other)


def _digest(value: Any) -> bytes | None:
    try:
        return hashlib.sha256(pickle.dumps(value)).digest()
    except Exception:  # noqa: BLE001  # what cannot be pickled cannot be compared either
        return None
