"""Choose how many canaries a trained model gets, if nobody says so: as many as the model can tell apart.

A model costs the same with any number of canaries, and the evidence of an audit grows with their total, so expensive trainings
should carry many. What limits them is known before the first coin is drawn: how many directions the model has, how much canaries
interfere, and how much they would change the training. The numbers are powers of two, so that small changes of a setting
change nothing.
"""

from __future__ import annotations

import math

from lidp.target import CanaryCount

MOST_CANARIES = 512
"""More hardly help: the bound then grows with the number of models only, and scoring takes longer."""
MOST_OVERLAPPING = 256
"""Fewer, because drawing a direction takes as long as a step of a small model."""
UNKNOWN_MODEL = 64


def count_separate(parameters: int) -> CanaryCount:
    """Return the number of canaries along different coordinates, whose scores use every step."""
    number = _power_of_two(min(MOST_CANARIES, parameters))
    return CanaryCount(number, f"each along a parameter of its own, of {parameters:,}, so that they do not interfere")


def count_overlapping(parameters: int, records: int, shift: float = 1.0) -> CanaryCount:
    """Return the number of gradient canaries in random directions, whose scores use the final model.

    ``shift`` is how far one canary moves its score, in standard deviations of the noise: about q√T/σ for DP-SGD with rate q, T
    steps and noise multiplier σ. The others add (K/2)·shift²/d to the variance of a score. K is limited so that this is at most
    the variance of the noise, and so that no more than half as many are inserted as there are records.
    """
    by_overlap = 2 * parameters / max(shift, 1e-3) ** 2
    number = _power_of_two(min(MOST_OVERLAPPING, by_overlap, records))
    limit = "records" if records < by_overlap else "parameters"
    sizes = f"{parameters:,} parameters and {records:,} records"
    return CanaryCount(
        number, f"random directions; for {sizes}" + (f", {limit} limit them" if number < MOST_OVERLAPPING else "")
    )


def count_pooled(pool: int, records: int) -> CanaryCount:
    """Return the number of canaries that are records of a pool.

    A trial should rarely have the same record twice, so the pool has twice as many; and a fifth of the training data, at most,
    are canaries on average.
    """
    number = _power_of_two(min(MOST_CANARIES, pool / 2, records / 2))
    return CanaryCount(number, f"drawn from a pool of {pool:,}, for {records:,} records")


def count_unknown() -> CanaryCount:
    """Return the number of canaries of a model whose parameters could not be counted."""
    return CanaryCount(UNKNOWN_MODEL, "the number of parameters is not known before the first run")


def _power_of_two(most: float) -> int:
    """Return the largest power of two that is not above ``most``, at least 1."""
    return 1 << int(math.log2(max(most, 1)))
