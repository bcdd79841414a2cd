"""Fill arrays with normal numbers for the noise of training, several times faster than one number at a time.

Sixteen xoshiro128++ generators (Blackman and Vigna 2021) run side by side in the lanes of vector registers. The Box-Muller method
turns pairs of their words into pairs of normals, with polynomials for logarithm, sine and cosine that are exact to single
precision: a normal differs from the exact function of its two words by at most 3e-7 of its size.

The radius is √(-2 log u), with u a multiple of 2^-31 minus 2^-32 in (0, 1], so the largest possible normal is 6.7. A normal
exceeds this size with probability 3e-11; noise is never cut anywhere else.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from lidp._compiled.compiler import compiled
from lidp._compiled.vectors import LANES, Memory, State, Vector, built, in_all_lanes, loop, number, polynomial

__all__ = ["LANES", "advance", "fill_noise", "next_words"]
_PAIRS = 512  # per block: the first numbers of its pairs come first in the output, then the second ones
_ROWS = _PAIRS // LANES
_LN2 = 0.69314718
_STEP = 0.78539816339 / 2**23  # an eighth of a circle in 2^23 steps
_SQRT_HALF_BITS = 0x3F3504F4  # √½ as a number of single precision
_SIGN = 0x80000000
_LOG = (7.0376836e-2, -1.1514610e-1, 1.1676999e-1, -1.2420141e-1, 1.4249323e-1, -1.6668058e-1, 2.0000715e-1, -2.4999994e-1,
        3.3333331e-1)  # fmt: skip
_COSINE = (2.443315712e-5, -1.388731625e-3, 4.166664568e-2)
_SINE = (-1.951529589e-4, 8.332160874e-3, -1.666665461e-1)


def next_words(state: State) -> tuple[Vector, State]:
    """Draw one word from each lane; return them and the new state."""
    a, b, c, d = state
    words = (a + d).rotate(7) + a
    shifted = b << 9
    c = c ^ a
    d = d ^ b
    return words, (a ^ d, b ^ c, c ^ shifted, d.rotate(11))


def _radius(words: Vector) -> Vector:
    """Return √(-2 log u) with u = (w + ½) / 2^31 for the upper 31 bits w of each word."""
    bits = ((words >> 1).to_singles() + 0.5).as_words()
    exponent = (bits - _SQRT_HALF_BITS).shift_signed(23)  # of the number, divided by a mantissa between √½ and √2
    x = (bits - (exponent << 23)).as_singles() - 1.0
    logarithm = (polynomial(x, _LOG) * x - 0.5) * (x * x) + x + (exponent - 31).to_singles() * _LN2
    return (logarithm * -2.0).at_least_zero().square_root()


def _normal_pairs(words: Vector, other_words: Vector, scale: Vector) -> tuple[Vector, Vector]:
    """Return two normals per lane. The second word gives the angle: a part of an eighth of a circle, and three bits."""
    radius = _radius(words) * scale
    angle = other_words.shift_signed(8).to_singles() * _STEP
    square = angle * angle
    along = radius * ((square * square) * polynomial(square, _COSINE) + (square * -0.5 + 1.0))
    across = radius * ((angle * square) * polynomial(square, _SINE) + angle)
    flips = other_words ^ -1
    one = other_words.where_odd(along, across).as_words() ^ ((flips << 30) & _SIGN)
    other = other_words.where_odd(across, along).as_words() ^ ((flips << 29) & _SIGN)
    return one.as_singles(), other.as_singles()


def advance(builder: Any, words: Memory, count: Any, body: Callable[[Any, State], State]) -> None:
    """Run a loop on the state of the generators, and write their last state."""
    state = tuple(words.load(number(k * LANES)) for k in range(4))
    for k, part in enumerate(loop(builder, count, state, body)):
        words.store(number(k * LANES), part)


@built
def _draw_rows(_typing, state, left, right, _rows, _scale):
    """Fill rows of LANES numbers of ``left`` and ``right`` with normals of standard deviation ``scale``."""

    def generate(context, builder, signature, arguments):
        words, one, other = (
            Memory(context, builder, kind, array) for kind, array in zip(signature.args, arguments[:3], strict=False)
        )
        deviation = in_all_lanes(builder, arguments[4])

        def draw(row, generators):
            first, generators = next_words(generators)
            second, generators = next_words(generators)
            for memory, normals in zip((one, other), _normal_pairs(first, second, deviation), strict=True):
                memory.store(builder.mul(row, number(LANES)), normals)
            return generators

        advance(builder, words, arguments[3], draw)
        return context.get_dummy_value()

    return types.void(state, left, right, types.int64, types.float32), generate


@built
def _skip_rows(_typing, state, _rows):
    """Advance the generators as drawing these rows would."""

    def generate(context, builder, signature, arguments):
        words = Memory(context, builder, signature.args[0], arguments[0])

        def skip(_row, generators):
            return next_words(next_words(generators)[1])[1]

        advance(builder, words, arguments[1], skip)
        return context.get_dummy_value()

    return types.void(state, types.int64), generate


@compiled(nogil=True)
def fill_noise(state, out, scale):  # pragma: no cover  # compiled
    """Fill ``out`` with normals of standard deviation ``scale``; ``state``, (4, LANES) words of 32 bits, is updated.

    Guarantee: independent of one another as far as xoshiro128++ is; at most 6.7 standard deviations from 0.
    """
    start = 0
    while start < out.shape[0]:
        pairs = min(_PAIRS, (out.shape[0] - start + 1) // 2)
        left = out[start : start + pairs]
        right = out[start + pairs : min(start + 2 * pairs, out.shape[0])]  # one shorter, if the length of out is odd
        rows = right.shape[0] // LANES
        _draw_rows(state, left, right, rows, scale)
        done = rows * LANES
        if done < pairs:
            last_left, last_right = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
            _draw_rows(state, last_left, last_right, 1, scale)
            left[done:] = last_left[: pairs - done]
            right[done:] = last_right[: right.shape[0] - done]
            rows += 1
        _skip_rows(state, _ROWS - rows)  # so that a block always takes the same number of words
        start += 2 * pairs
