"""Running a mechanism on one of two data sets, by coin, in blocks: and what must be refused."""

from __future__ import annotations

import hashlib
import math
import pickle
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.claim import Claim
from lidp.errors import AuditFailed, InvalidArgument
from lidp.pair_target import PairTarget
from lidp.pairs.features import Columns, columns_of
from lidp.streams import Purpose, stream

Bools = NDArray[np.bool_]

FIRST_BLOCK, LARGEST_BLOCK = 32, 65_536
_TRIED = 16
"""Runs on each data set before the audit, to see that the mechanism can be audited at all; more, if all are alike."""
_LARGE = 5.0
"""A mechanism of larger ε may well give one and the same output for thousands of runs."""


@dataclass(frozen=True)
class Block:
    """Some runs in their order: coins (1 means d1), which of them failed, and the outputs of the others taken apart."""

    coins: Bools
    failed: Bools
    outputs: Columns
    first_failure: str = ""


def block_sizes(runs: int) -> Iterator[int]:
    """How many runs at a time: few at first, when every run teaches much, then ever more."""
    done = 0
    while done < runs:
        size = min(max(FIRST_BLOCK, done), LARGEST_BLOCK, runs - done)
        yield size
        done += size


class PairRunner:
    """Blocks of runs. A block depends on (seed, number of the block) and its size only."""

    def __init__(self, target: PairTarget, seed: int, *, bits: bool = False) -> None:
        self.target = target
        self.seed = seed
        self.bits = bits
        self.many = getattr(target.mechanism, "many", None)
        self._digests = [_digest(target.d0), _digest(target.d1)]

    def check(self, claim: Claim) -> None:
        """Try the mechanism on both data sets.

        Raises:
            InvalidArgument: if the data sets are equal.
            AuditFailed: if the mechanism raises every time, changes its data, or never varies.
        """
        target = self.target
        if _equal(target.d0, target.d1):
            same = _short(target.d0)
            raise InvalidArgument(f"d0 and d1 are equal ({same}); a leak shows only between data sets that differ")
        # A true claim makes the output of either data set possible for the other, at least e^-ε as often.
        patience = min(max(64, 20 * math.exp(min(claim.epsilon, _LARGE))), 4096)
        seen: list[set[str]] = [set(), set()]
        tried, size = 0, _TRIED
        while tried < patience:
            outputs: list[Any] = []
            for arm in (0, 1):
                rng = stream(self.seed, trial=tried, arm=arm, purpose=Purpose.PREPARATION)
                found, failures = self._outputs(arm, size, rng)
                if len(failures) == size:
                    raise AuditFailed(f"{target.name} raises on d{arm}: {next(iter(failures.values()))}")
                seen[arm] |= {_fingerprint(output) for output in found}
                outputs += list(found)
            columns_of(outputs, target.features, bits=self.bits)  # raises if they are of different kinds
            if max(map(len, seen)) > 1:
                return
            tried += size
            size = tried
        if seen[0] == seen[1] or claim.epsilon <= _LARGE:
            raise AuditFailed(
                f"{target.name} returned the same output in {tried:,} runs on each data set, although each run had random numbers "
                "of its own: it does not use the rng it is given, or adds no noise"
            )

    def run(self, number: int, size: int) -> Block:
        """A block of runs."""
        coins = stream(self.seed, trial=number, purpose=Purpose.COINS).integers(0, 2, size).astype(bool)
        rngs = [stream(self.seed, trial=number, arm=arm, purpose=Purpose.NOISE) for arm in (0, 1)]
        failures: dict[int, str] = {}
        if self.many is None:
            # In the order of the coins: a mechanism that remembers its last run must not find all of one kind together.
            outputs: Any = []
            self._seed_global_generators(rngs[0])
            for place, coin in enumerate(coins):
                self._try(int(coin), rngs[int(coin)], place, outputs, failures)
            for arm in (0, 1):
                self._check_unchanged(arm)
        else:
            places = [np.flatnonzero(coins == arm) for arm in (0, 1)]
            found = [self._many(arm, len(places[arm]), rngs[arm]) for arm in (0, 1)]
            outputs = _interleaved(places, found, size)
        failed = np.zeros(size, dtype=bool)
        failed[list(failures)] = True
        columns = columns_of(outputs, self.target.features, bits=self.bits)
        return Block(coins, failed, columns, next(iter(failures.values()), ""))

    def _outputs(self, arm: int, size: int, rng: np.random.Generator) -> tuple[Any, dict[int, str]]:
        """Outputs of so many runs on one data set, and why which runs failed."""
        if self.many is not None:
            return self._many(arm, size, rng), {}
        outputs: list[Any] = []
        failures: dict[int, str] = {}
        self._seed_global_generators(rng)
        for place in range(size):
            self._try(arm, rng, place, outputs, failures)
        self._check_unchanged(arm)
        return outputs, failures

    def _try(self, arm: int, rng: np.random.Generator, place: int, outputs: list[Any], failures: dict[int, str]) -> None:
        try:
            outputs.append(self.target.mechanism(self.target.d1 if arm else self.target.d0, rng))
        except Exception as error:  # noqa: BLE001  # whatever it raises: a run that nobody bets on
            failures[place] = f"{type(error).__name__}: {error}"

    def _many(self, arm: int, size: int, rng: np.random.Generator) -> Any:
        assert self.many is not None  # noqa: S101  # for the type checker
        self._seed_global_generators(rng)
        try:
            found = self.many(self.target.d1 if arm else self.target.d0, size, rng)
        except Exception as error:
            raise AuditFailed(f"{self.target.name}.many raised {type(error).__name__}: {error}") from error
        if len(found) != size:
            raise AuditFailed(f"{self.target.name}.many returned {len(found):,} outputs, {size:,} runs were asked for")
        self._check_unchanged(arm)
        return found

    def _seed_global_generators(self, rng: np.random.Generator) -> None:
        """For mechanisms that draw from the global generators, against the rules."""
        seed = int(rng.integers(2**32))
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  # the global generator is what is meant

    def _check_unchanged(self, arm: int) -> None:
        now = _digest(self.target.d1 if arm else self.target.d0)
        if now is not None and now != self._digests[arm]:
            raise AuditFailed(
                f"{self.target.name} changed the data set d{arm} that it was given; later runs would see other data. "
                "Let it work on a copy"
            )


def _interleaved(places: list[NDArray[np.int64]], found: list[Any], size: int) -> Any:
    """Outputs of both data sets in the order of the coins."""
    if not all(isinstance(outputs, np.ndarray) and outputs.dtype != object for outputs in found):
        whole: list[Any] = [None] * size
        for arm in (0, 1):
            for place, output in zip(places[arm], found[arm], strict=True):
                whole[place] = output
        return whole
    shapes = {outputs.shape[1:] for outputs in found if len(outputs)}
    if len(shapes) > 1:
        raise AuditFailed(f"many returns arrays of shape {found[0].shape} for d0 and {found[1].shape} for d1")
    together = np.empty((size, *shapes.pop()), dtype=np.result_type(*found))
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


def _fingerprint(output: Any) -> str:
    return output.tobytes().hex() if isinstance(output, np.ndarray) else repr(output)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
