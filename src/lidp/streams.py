"""Random streams: one per (audit seed, trial, arm, purpose), independent of workers and of the order of trials.

Coins, canaries and the noise of the mechanism never share a stream. Two generators with the same seed draw the *same* numbers:
a mechanism that draws from the stream of its coins could be refuted although it is private.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lidp.errors import InvalidArgument


class Purpose(IntEnum):
    """The purpose of a stream."""

    COINS = 0
    CANARIES = 1
    HELD_OUT = 2
    NOISE = 3
    AUXILIARY = 4
    PREPARATION = 5
    LEFT_OUT = 6
    GLOBAL = 7
    ARM_ORDER = 8
    BETTING_ORDER = 16
    TIES = 17


def stream(seed: int, *, trial: int, arm: int = 0, purpose: Purpose) -> np.random.Generator:
    """Return the generator for one purpose in one arm of one trial."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(trial, arm, purpose))))


def draw_coins(seed: int, *, trial: int, size: int) -> NDArray[np.int64]:
    """Return the fair coins of one trial: 1 where the canary is inserted."""
    return stream(seed, trial=trial, purpose=Purpose.COINS).integers(0, 2, size)


_TRIALS_PER_BLOCK = 256  # trials whose words are derived together
_BULK = 1  # distinguishes these streams from those of stream()


def trial_words(seed: int, trials: range, *, arm: int = 0, purpose: Purpose) -> NDArray[np.uint64]:
    """Return four random words per trial, the initial states of compiled generators.

    The words of a trial depend on (seed, trial, arm, purpose) only, as with :func:`stream`, and are independent of that stream.
    """
    blocks = range(trials.start // _TRIALS_PER_BLOCK, -(-trials.stop // _TRIALS_PER_BLOCK))
    words = [_block_words(seed, block, arm, purpose) for block in blocks]
    first = trials.start - blocks.start * _TRIALS_PER_BLOCK
    return np.concatenate(words).reshape(-1, 4)[first : first + len(trials)]


@lru_cache(maxsize=64)  # audits take few trials at a time, and simulated audits share their order of bets
def _block_words(seed: int, block: int, arm: int, purpose: Purpose) -> NDArray[np.uint64]:
    """Return the words of a block of trials, an array that must not be changed."""
    key = np.random.SeedSequence(seed, spawn_key=(block, arm, purpose, _BULK))
    words = np.random.Philox(key).random_raw(4 * _TRIALS_PER_BLOCK)
    words.flags.writeable = False
    return words


def check_seed(seed: object) -> int:
    """Return a seed, which must be a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidArgument(f"seed must be a whole number of at least 0, got {seed!r}")
    return int(seed)
