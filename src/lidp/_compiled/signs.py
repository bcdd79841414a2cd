"""Compiled products with vectors of random signs, which are drawn where they are needed and never stored.

A vector is given by the (4, LANES) words of its generators (xoshiro128++, as in :mod:`lidp._compiled.noise`). Each draw of LANES
words gives the signs of 512 coordinates: bit b of the word in lane l is the sign of coordinate 16 b + l among them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from lidp._compiled.compiler import compiled
from lidp._compiled.noise import advance, next_words
from lidp._compiled.vectors import LANES, SINGLES, Memory, Vector, built, in_all_lanes, loop, number

_BLOCK = 32 * LANES  # coordinates whose signs one draw gives
_BLOCKS_PER_SUM = 16  # added in single precision
_SIGN = 0x80000000


def _sign(words: Vector, bit: int) -> Vector:
    """Return the bit of each word in the place of the sign."""
    return (words << (31 - bit)) & _SIGN


@built
def _add_blocks(_typing, state, total, _blocks, _value):
    """Add ``value`` with random signs to the coordinates of whole blocks."""

    def generate(context, builder, signature, arguments):
        generators, sums = (
            Memory(context, builder, kind, array) for kind, array in zip(signature.args, arguments[:2], strict=False)
        )
        size = in_all_lanes(builder, arguments[3]).as_words()

        def add(block, words_before):
            words, after = next_words(words_before)
            for bit in range(32):
                start = builder.add(builder.mul(block, number(_BLOCK)), number(LANES * bit))
                sums.store(start, sums.load(start) + (_sign(words, bit) ^ size).as_singles())
            return after

        advance(builder, generators, arguments[2], add)
        return context.get_dummy_value()

    return types.void(state, total, types.int64, types.float32), generate


@built
def _sum_blocks(_typing, state, values, _blocks):
    """Return the sum of the values of whole blocks, each with its sign."""

    def generate(context, builder, signature, arguments):
        generators, numbers = (
            Memory(context, builder, kind, array) for kind, array in zip(signature.args, arguments[:2], strict=False)
        )
        nothing = Vector(builder, ir.Constant(SINGLES, [0.0] * LANES))

        def add(block, before):
            words, after = next_words(before[:4])
            sums = list(before[4:])
            for bit in range(32):
                start = builder.add(builder.mul(block, number(_BLOCK)), number(LANES * bit))
                signed = (_sign(words, bit) ^ numbers.load(start).as_words()).as_singles()
                sums[bit % len(sums)] = sums[bit % len(sums)] + signed
            return (*after, *sums)

        state = tuple(generators.load(number(k * LANES)) for k in range(4))
        *last, a, b, c, d = loop(builder, arguments[2], (*state, *[nothing] * 4), add)
        for k, part in enumerate(last):
            generators.store(number(k * LANES), part)
        return ((a + b) + (c + d)).sum_lanes()

    return types.float32(state, values, types.int64), generate


@compiled(nogil=True)
def add_signs(words, total, value):  # pragma: no cover  # compiled
    """Add ``value`` times the vector of signs that ``words`` give to ``total``."""
    state = words.copy()
    blocks = total.shape[0] // _BLOCK
    _add_blocks(state, total, blocks, value)
    rest = total[blocks * _BLOCK :]
    if rest.shape[0]:
        last = np.zeros(_BLOCK, np.float32)
        _add_blocks(state, last, 1, value)
        for j in range(rest.shape[0]):
            rest[j] += last[j]


@compiled(nogil=True)
def signed_sum(words, values):  # pragma: no cover  # compiled
    """Return the inner product of ``values`` with the vector of signs that ``words`` give."""
    state = words.copy()
    total = 0.0
    whole = values.shape[0] - values.shape[0] % _BLOCK
    for start in range(0, whole, _BLOCK * _BLOCKS_PER_SUM):
        part = values[start : min(start + _BLOCK * _BLOCKS_PER_SUM, whole)]
        total += _sum_blocks(state, part, part.shape[0] // _BLOCK)
    if whole < values.shape[0]:
        last = np.zeros(_BLOCK, np.float32)
        last[: values.shape[0] - whole] = values[whole:]
        total += _sum_blocks(state, last, 1)
    return total


@compiled(nogil=True)
def project_signs(residual, words, sizes, projections, lengths):  # pragma: no cover  # compiled
    """Compute the inner product of ``residual`` with each vector of signs times its size, and the square of its length."""
    for k in range(sizes.shape[0]):
        size = np.float64(sizes[k])
        projections[k] = size * signed_sum(words[k], residual)
        lengths[k] = size * size * residual.shape[0]
