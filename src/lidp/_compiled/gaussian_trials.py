"""Compiled trials of the Gaussian simulation; :mod:`lidp.mechanisms.gaussian` explains the method.

``flips``, ``canaries``, ``noises``, ``others`` and ``fresh`` are states of random number generators, one row per trial. The
order in which numbers are drawn from a state determines what a seed gives.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

import numpy as np

from lidp._compiled.compiler import compiled
from lidp._compiled.random_numbers import chi_square, fill_normal, next_word, normal


@compiled()
def allocate(count, dimension):  # pragma: no cover  # compiled
    """Return arrays for the vectors of a trial: packed coordinates, last coordinates, and the noise in their span."""
    rank = min(count, dimension)
    packed = rank * (rank - 1) // 2 + (count - rank) * rank
    return np.empty(packed, np.float32), np.empty(rank, np.float32), np.empty(rank, np.float32)


@compiled()
def draw_vectors(canaries, noises, dimension, coordinates, last, noise):  # pragma: no cover  # compiled
    """Draw independent uniform directions of R^dimension, in coordinates of their span, and the noise in that span.

    The vectors are not scaled to length 1. Vector i has min(i, dimension) normal coordinates. If i < dimension, it has a last
    coordinate whose square has the law of the squared length of the remaining ones, chi-square with dimension - i degrees of
    freedom.
    """
    fill_normal(canaries, coordinates)
    for i in range(last.shape[0]):
        last[i] = math.sqrt(chi_square(canaries, dimension - i))
    fill_normal(noises, noise)


@compiled(fastmath=True)
def inner_products(coordinates, last, noise, weights, signal, noisy):  # pragma: no cover  # compiled
    """Compute the inner products of the vectors, scaled to length 1, with their weighted sum and with the noise.

    Fills ``signal`` (products with the sum) and ``noisy`` (with the noise) for the first ``len(signal)`` vectors. Returns |sum|,
    |sum without the last vector|, the noise along the sum, and the squared length of the noise in the span of the vectors.
    """
    rank = last.shape[0]
    rows = weights.shape[0]
    scale = np.empty(rows, np.float32)
    total = np.zeros(rank, np.float32)
    before = 0.0
    start = 0
    for i in range(rows):
        width = min(i, rank)
        square = np.float32(0.0)
        for j in range(width):
            square += coordinates[start + j] * coordinates[start + j]
        if i < rank:
            square += last[i] * last[i]
        scale[i] = np.float32(1.0) / np.sqrt(square)
        if i == rows - 1:
            for j in range(rank):
                before += total[j] * total[j]
        share = scale[i] * weights[i]
        for j in range(width):
            total[j] += share * coordinates[start + j]
        if i < rank:
            total[i] += share * last[i]
        start += width
    start = 0
    for i in range(signal.shape[0]):
        width = min(i, rank)
        a = np.float32(0.0)
        b = np.float32(0.0)
        for j in range(width):
            a += coordinates[start + j] * total[j]
            b += coordinates[start + j] * noise[j]
        if i < rank:
            a += last[i] * total[i]
            b += last[i] * noise[i]
        signal[i] = a * scale[i]
        noisy[i] = b * scale[i]
        start += width
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


@compiled(nogil=True)
def coin_flips(flips, canaries, noises, paired, dimension, signal, noisy, coins):  # pragma: no cover  # compiled
    """Simulate trials of the coin-flip design: fill ``signal``, ``noisy`` and ``coins``.

    If ``paired``, a coin selects which of two vectors is inserted; the score is that of the first.
    """
    trials, count = signal.shape
    coordinates, last, noise = allocate(2 * count if paired else count, dimension)
    weights = np.empty(2 * count if paired else count, np.float32)
    for t in range(trials):
        word = np.uint64(0)
        for k in range(count):
            if k % 64 == 0:
                word = next_word(flips[t])
            coin = (word >> np.uint64(k % 64)) & np.uint64(1) == np.uint64(1)
            coins[t, k] = coin
            weights[k] = 1.0 if coin else 0.0
            if paired:
                weights[count + k] = 0.0 if coin else 1.0
        draw_vectors(canaries[t], noises[t], dimension, coordinates, last, noise)
        inner_products(coordinates, last, noise, weights, signal[t], noisy[t])


@compiled(nogil=True)
def two_arms(
    canaries, noises, others, fresh, one_output, dimension, signal, noisy, lengths, cosine
):  # pragma: no cover  # compiled
    """Simulate trials of designs with two arms: fill ``signal`` and ``noisy``, and ``lengths`` and ``cosine`` of HeldOutDraws.

    If ``one_output``, both arms are scored on the same output.
    """
    trials, count = signal.shape
    coordinates, last, noise = allocate(count, dimension)
    weights = np.ones(count, np.float32)
    for t in range(trials):
        draw_vectors(canaries[t], noises[t], dimension, coordinates, last, noise)
        total, partial, along, within = inner_products(coordinates, last, noise, weights, signal[t], noisy[t])
        if one_output:
            # The noise along the sum of canaries, in the rest of their span, and outside of it.
            outside = chi_square(others[t], dimension - last.shape[0])
            lengths[t] = total, along, math.sqrt(max(within - along * along, 0.0) + outside)
        else:
            # The other arm has independent noise, and leaves out the last canary.
            lengths[t] = partial, normal(others[t]), math.sqrt(chi_square(others[t], dimension - 1))
        for k in range(cosine.shape[1]):
            first = normal(fresh[t])
            cosine[t, k] = first / math.sqrt(first * first + chi_square(fresh[t], dimension - 1))
