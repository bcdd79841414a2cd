"""Random streams: one per (audit seed, trial, arm, purpose), whatever runs where and in which order.

Coins, canaries and the mechanism's noise never share a stream. Two generators with one seed are the *same* generator:
a mechanism that draws from the stream that flipped its coins could be refuted whatever its privacy.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from lidp.errors import InvalidArgument


class Purpose(IntEnum):
    """What a stream is for."""

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
    """The generator for one purpose in one arm of one trial."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(trial, arm, purpose))))


def draw_coins(seed: int, *, trial: int, size: int) -> NDArray[np.int64]:
    """Return the fair coins of one trial: 1 where the canary goes in."""
    return stream(seed, trial=trial, purpose=Purpose.COINS).integers(0, 2, size)


_TOGETHER = 256  # trials whose words are derived at once
_BULK = 1  # sets these apart from the streams of stream()


def trial_words(seed: int, trials: range, *, arm: int = 0, purpose: Purpose) -> NDArray[np.uint64]:
    """Four random words for each of many trials: the states of compiled generators.

    As with :func:`stream`, a trial's words depend on (seed, trial, arm, purpose) only. They are unrelated to that stream.
    """
    blocks = range(trials.start // _TOGETHER, -(-trials.stop // _TOGETHER))
    words = [
        np.random.Philox(np.random.SeedSequence(seed, spawn_key=(block, arm, purpose, _BULK))).random_raw(4 * _TOGETHER)
        for block in blocks
    ]
    first = trials.start - blocks.start * _TOGETHER
    return np.concatenate(words).reshape(-1, 4)[first : first + len(trials)]


def check_seed(seed: object) -> int:
    """A seed is a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidArgument(f"seed must be a whole number of at least 0, got {seed!r}")
    return int(seed)
