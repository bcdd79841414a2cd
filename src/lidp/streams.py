"""Random streams: one per (audit seed, trial, arm, purpose), whatever runs where and in which order.

Coins, canaries and the mechanism's noise never share a stream. Two generators with one seed are the *same* generator:
a mechanism that draws from the stream that flipped its coins could be refuted whatever its privacy.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np

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


def stream(seed: int, *, trial: int, arm: int = 0, purpose: Purpose) -> np.random.Generator:
    """The generator for one purpose in one arm of one trial."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(trial, arm, purpose))))


_TOGETHER = 64  # trials whose states are derived at once
_BULK = 1  # sets these streams apart from those of stream()


def trial_streams(seed: int, trials: range, *, arm: int = 0, purpose: Purpose) -> Iterator[np.random.Generator]:
    """A generator for each of many trials, for simulations in which making one anew would take longer than its numbers.

    As with :func:`stream`, a trial's numbers depend on (seed, trial, arm, purpose) only; they are others than those of
    :func:`stream`. It is one generator, set to the next trial's state: take what you need before you go on.
    """
    bits = np.random.PCG64(0)
    state = bits.state
    generator = np.random.Generator(bits)
    words: list[list[int]] = []
    block = -1
    for trial in trials:
        if trial // _TOGETHER != block:
            block = trial // _TOGETHER
            source = np.random.SeedSequence(seed, spawn_key=(block, arm, purpose, _BULK))
            words = source.generate_state(4 * _TOGETHER, np.uint64).reshape(_TOGETHER, 4).tolist()
        a, b, c, d = words[trial % _TOGETHER]
        # PCG64 has 128 bits of state and an odd increment of as many.
        state["state"] = {"state": a << 64 | b, "inc": c << 64 | d | 1}
        bits.state = state
        yield generator


def check_seed(seed: object) -> int:
    """A seed is a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidArgument(f"seed must be a whole number of at least 0, got {seed!r}")
    return int(seed)
