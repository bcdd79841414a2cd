"""The compiled inner loop of the Gaussian simulation."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, fastmath=True, nogil=True)
def meet(coordinates, last, noise, weights, signal, noisy):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Inner products of packed triangular rows, scaled to length 1, with their weighted sum and with the noise.

    Row i holds min(i, rank) coordinates, followed, while i < rank, by ``last[i]``. Fills ``signal`` and ``noisy`` for the first
    rows; returns |sum|, |sum without the last row|, the noise along the sum, and the noise's squared length.
    """
    rank = last.shape[0]
    rows = weights.shape[0]
    scale = np.empty(rows, np.float32)
    total = np.zeros(rank, np.float32)
    place = 0
    for i in range(rows):
        width = min(i, rank)
        square = np.float32(0.0)
        for j in range(width):
            square += coordinates[place + j] * coordinates[place + j]
        if i < rank:
            square += last[i] * last[i]
        scale[i] = np.float32(1.0) / np.sqrt(square)
        if i == rows - 1:
            before = 0.0
            for j in range(rank):
                before += total[j] * total[j]
        share = scale[i] * weights[i]
        for j in range(width):
            total[j] += share * coordinates[place + j]
        if i < rank:
            total[i] += share * last[i]
        place += width
    place = 0
    for i in range(signal.shape[0]):
        width = min(i, rank)
        a = np.float32(0.0)
        b = np.float32(0.0)
        for j in range(width):
            a += coordinates[place + j] * total[j]
            b += coordinates[place + j] * noise[j]
        if i < rank:
            a += last[i] * total[i]
            b += last[i] * noise[i]
        signal[i] = a * scale[i]
        noisy[i] = b * scale[i]
        place += width
    length = 0.0
    along = 0.0
    within = 0.0
    for j in range(rank):
        length += total[j] * total[j]
        along += total[j] * noise[j]
        within += noise[j] * noise[j]
    length = math.sqrt(length)
    if length > 0.0:
        along /= length
    return length, math.sqrt(before), along, within
