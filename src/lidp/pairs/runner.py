"""``PairRunner``: runs a mechanism on one of two data sets, as coins say, in blocks."""

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
from lidp._runtime.user_code import must_propagate, user_code
from lidp.claim import Claim
from lidp.errors import AuditFailed, InvalidArgument
from lidp.pair_target import PairTarget
from lidp.pairs.outputs import OutputTable, short, take_apart
from lidp.streams import Purpose, stream

Bools = NDArray[np.bool_]

_TRIED = 16
"""Runs on each data set before the audit, to see that the mechanism can be audited at all; more, if all are alike."""
_MUTABLE = (np.ndarray, list, dict, set, bytearray)
_LARGE = 5.0
"""A mechanism of larger ε may well give one and the same output for thousands of runs."""


@dataclass(frozen=True)
class Block:
    """The runs of a block: which of them failed, why the first of these failed, and the outputs of the others in order."""

    failed: Bools
    outputs: OutputTable
    first_failure: str = ""


class PairRunner:
    """Runs blocks. The runs of a block depend on the seed, the block's number and its coins only."""

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
            AuditFailed: if the mechanism raises every time, changes its data, or never varies on either data set.
        """
        target = self.target
        for name, dataset in (("d0", target.d0), ("d1", target.d1)):
            if isinstance(dataset, Iterator):
                raise InvalidArgument(f"{name} can be read only once ({short(dataset)}); make it a list")
        if _equal(target.d0, target.d1):
            given = "d0 and d1 are not given" if target.d0 is None else f"d0 and d1 are equal ({short(target.d0)})"
            raise InvalidArgument(f"{given}; a leak shows only between data sets that differ")
        # A true claim makes the output of either data set possible for the other, at least e^-ε as often.
        patience = min(max(64, 20 * math.exp(min(claim.epsilon, _LARGE))), 4096)
        seen: list[set[float]] = [set(), set()]
        tried, size = 0, _TRIED
        while tried < patience:
            outputs: list[Any] = []
            for arm in (0, 1):
                rng = stream(self.seed, trial=tried, arm=arm, purpose=Purpose.PREPARATION)
                found, failures = self._outputs(arm, size, rng)
                if len(failures) == size:
                    raise AuditFailed(f"{target.name} raises on d{arm}: {next(iter(failures.values()))}")
                seen[arm] |= set(take_apart(list(found)).identities.tolist())
                outputs += list(found)
            take_apart(outputs, target.features, bits=self.bits)  # raises if they are of different kinds
            if max(map(len, seen)) > 1:
                return
            tried += size
            size = tried
        # The same on both may vary rarely: that is for the audit to see.
        if seen[0] != seen[1] and claim.epsilon <= _LARGE:
            raise never_varies(target.name, tried)

    def run(self, number: int, coins: Bools) -> Block:
        """Run a block: on d1 where the coin is 1, on d0 elsewhere."""
        size = len(coins)
        rngs = [stream(self.seed, trial=number, arm=arm, purpose=Purpose.NOISE) for arm in (0, 1)]
        failures: dict[int, str] = {}
        if self.many is None:
            # In the order of the coins: a mechanism that remembers its last run must not find all of one kind together.
            outputs: Any = []
            seed_global_generators(stream(self.seed, trial=number, purpose=Purpose.GLOBAL))
            for place, coin in enumerate(coins):
                self._try(int(coin), rngs[int(coin)], place, outputs, failures)
            for arm in (0, 1):
                self._check_unchanged(arm)
        else:
            places = [np.flatnonzero(coins == arm) for arm in (0, 1)]
            # Neither which data set comes first, nor the order in which many returns its runs, may tell the coins.
            order = stream(self.seed, trial=number, purpose=Purpose.AUXILIARY)
            arms = order.permutation(2).tolist()
            found = {arm: self._many(arm, len(places[arm]), rngs[arm]) for arm in arms}
            outputs = _interleaved([order.permutation(places[arm]) for arm in (0, 1)], [found[0], found[1]], size)
        failed = np.zeros(size, dtype=bool)
        failed[list(failures)] = True
        table = take_apart(outputs, self.target.features, bits=self.bits)
        return Block(failed, table, next(iter(failures.values()), ""))

    def _outputs(self, arm: int, size: int, rng: np.random.Generator) -> tuple[Any, dict[int, str]]:
        """Outputs of so many runs on one data set, and why which runs failed."""
        if self.many is not None:
            return self._many(arm, size, rng), {}
        outputs: list[Any] = []
        failures: dict[int, str] = {}
        seed_global_generators(rng)
        for place in range(size):
            self._try(arm, rng, place, outputs, failures)
        self._check_unchanged(arm)
        return outputs, failures

    def _try(self, arm: int, rng: np.random.Generator, place: int, outputs: list[Any], failures: dict[int, str]) -> None:
        # A generator of its own for each run: one that seeds something else from it, without drawing, would repeat its noise.
        (own,) = rng.spawn(1)
        try:
            with user_code():
                output = self.target.mechanism(self.target.d1 if arm else self.target.d0, own)
        except BaseException as error:  # whatever it raises: a run that nobody bets on
            if must_propagate(error):
                raise
            failures[place] = f"{type(error).__name__}: {error}"
        else:
            # A mechanism may write its next output into the same array.
            outputs.append(copy.deepcopy(output) if isinstance(output, _MUTABLE) else output)

    def _many(self, arm: int, size: int, rng: np.random.Generator) -> Any:
        assert self.many is not None  # noqa: S101  # for the type checker
        if not size:
            return []
        seed_global_generators(rng)
        try:
            with user_code():
                found = self.many(self.target.d1 if arm else self.target.d0, size, rng)
                got = len(found)
        except BaseException as error:
            if must_propagate(error):
                raise
            raise AuditFailed(f"{self.target.name}.many raised {type(error).__name__}: {error}") from error
        if got != size:
            raise AuditFailed(f"{self.target.name}.many returned {got:,} outputs, {size:,} runs were asked for")
        self._check_unchanged(arm)
        return found.copy() if isinstance(found, np.ndarray) else list(found)

    def _check_unchanged(self, arm: int) -> None:
        now = _digest(self.target.d1 if arm else self.target.d0)
        if now is not None and now != self._digests[arm]:
            raise AuditFailed(
                f"{self.target.name} changed the data set d{arm} that it was given, or what that keeps inside; "
                "later runs would see other data. Let it work on a copy"
            )


def never_varies(name: str, runs: int) -> AuditFailed:
    """Return the error for a mechanism without randomness."""
    return AuditFailed(
        f"{name} returned the same output in {runs:,} runs on each data set, although each run had random numbers "
        "of its own: it does not use the rng it is given, or adds no noise"
    )


def _interleaved(places: list[NDArray[np.int64]], found: list[Any], size: int) -> Any:
    """Outputs of both data sets at their places."""
    arrays = [outputs for outputs in found if len(outputs)]
    if not all(isinstance(outputs, np.ndarray) and outputs.dtype != object for outputs in arrays):
        whole: list[Any] = [None] * size
        for arm in (0, 1):
            for place, output in zip(places[arm], found[arm], strict=True):
                whole[place] = output
        return whole
    shapes = {outputs.shape[1:] for outputs in arrays}
    if len(shapes) > 1:
        raise AuditFailed(f"many returns arrays of shape {found[0].shape} for d0 and {found[1].shape} for d1")
    together = np.empty((size, *shapes.pop()), dtype=np.result_type(*arrays))
    for arm in (0, 1):
        if len(found[arm]):
            together[places[arm]] = found[arm]
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
