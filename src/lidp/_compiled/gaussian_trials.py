"""The compiled trials of the Gaussian simulation."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

import numpy as np

from lidp._compiled.compiler import compiled
from lidp._compiled.random_numbers import chi_square, fill_normal, next_word, normal


@compiled()
def room(count, dimension):  # pragma: no cover  # compiled
    """Where the vectors of a trial go: packed coordinates, last coordinates, the noise in their span."""
    rank = min(count, dimension)
    packed = rank * (rank - 1) // 2 + (count - rank) * rank
    return np.empty(packed, np.float32), np.empty(rank, np.float32), np.empty(rank, np.float32)


@compiled()
def draw_vectors(canaries, noises, dimension, coordinates, last, noise):  # pragma: no cover  # compiled
    """Independent uniform unit vectors of R^dimension, up to their lengths, in a space that holds them all; and noise there.

    Vector i has min(i, dimension) normal coordinates; while there is a dimension left, one more, whose square has the law of
    the squared length of all that is left: chi-square with dimension - i degrees of freedom.
    """
    fill_normal(canaries, coordinates)
    for i in range(last.shape[0]):
        last[i] = math.sqrt(chi_square(canaries, dimension - i))
    fill_normal(noises, noise)


@compiled(fastmath=True)
def meet(coordinates, last, noise, weights, signal, noisy):  # pragma: no cover  # compiled
    """Inner products of the vectors, scaled to length 1, with their weighted sum and with the noise.

    Fills ``signal`` and ``noisy`` for the first vectors; returns |sum|, |sum without the last vector|, the noise along the sum,
    and the noise's squared length.
    """
    rank = last.shape[0]
    rows = weights.shape[0]
    scale = np.empty(rows, np.float32)
    total = np.zeros(rank, np.float32)
    before = 0.0
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


@compiled(nogil=True)
def coin_flips(flips, canaries, noises, paired, dimension, signal, noisy, coins):  # pragma: no cover  # compiled
    """Trials of the coin-flip design, one for each row of states; if paired, a coin says which of two vectors is in."""
    trials, count = signal.shape
    coordinates, last, noise = room(2 * count if paired else count, dimension)
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
        meet(coordinates, last, noise, weights, signal[t], noisy[t])


@compiled(nogil=True)
def two_arms(
    canaries, noises, others, fresh, one_output, dimension, signal, noisy, lengths, cosine
):  # pragma: no cover  # compiled
    """Trials of the designs with two arms; ``lengths`` is what held-out canaries meet (see HeldOutDraws)."""
    trials, count = signal.shape
    coordinates, last, noise = room(count, dimension)
    weights = np.ones(count, np.float32)
    for t in range(trials):
        draw_vectors(canaries[t], noises[t], dimension, coordinates, last, noise)
        total, partial, along, within = meet(coordinates, last, noise, weights, signal[t], noisy[t])
        if one_output:
            # Its noise along the canaries' sum, in the rest of their span, and outside that.
            outside = chi_square(others[t], dimension - last.shape[0])
            lengths[t] = total, along, math.sqrt(max(within - along * along, 0.0) + outside)
        else:
            # The other arm has its own noise, and leaves the last canary out.
            lengths[t] = partial, normal(others[t]), math.sqrt(chi_square(others[t], dimension - 1))
        for k in range(cosine.shape[1]):
            first = normal(fresh[t])
            cosine[t, k] = first / math.sqrt(first * first + chi_square(fresh[t], dimension - 1))
