"""Fill arrays with normal numbers for the noise of training, several times faster than one number at a time.

Sixteen xoshiro128++ generators (Blackman and Vigna 2021) run side by side, so that the compiler can use vector instructions. The
Box-Muller method turns pairs of their words into pairs of normals, with polynomials for logarithm, sine and cosine that are exact
to single precision. The largest possible normal is 6.7.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from lidp._compiled.compiler import compiled

LANES = 16
_BLOCK = 512  # pairs per block; their buffers fit into the first-level cache
_LN2 = np.float32(0.69314718)
_STEP = np.float32(0.78539816339 / 2**23)  # an eighth of a circle in 2^23 steps
_ONE, _HALF = np.float32(1.0), np.float32(0.5)


@compiled(inline="always")
def _next_words(a, b, c, d, out):  # pragma: no cover  # compiled
    """Draw one word from each lane."""
    for i in range(LANES):
        total = a[i] + d[i]
        out[i] = ((total << np.uint32(7)) | (total >> np.uint32(25))) + a[i]
        shifted = b[i] << np.uint32(9)
        c[i] ^= a[i]
        d[i] ^= b[i]
        b[i] ^= c[i]
        a[i] ^= d[i]
        c[i] ^= shifted
        d[i] = (d[i] << np.uint32(11)) | (d[i] >> np.uint32(21))


@compiled(fastmath=True, inline="always")
def _cosine(t):  # pragma: no cover  # compiled
    """Return the cosine of t for |t| up to an eighth of a circle."""
    q = t * t
    tail = np.float32(4.166664568e-2) + q * (np.float32(-1.388731625e-3) + q * np.float32(2.443315712e-5))
    return _ONE - _HALF * q + q * q * tail


@compiled(fastmath=True, inline="always")
def _sine(t):  # pragma: no cover  # compiled
    """Return the sine of t for |t| up to an eighth of a circle."""
    q = t * t
    tail = np.float32(-1.666665461e-1) + q * (np.float32(8.332160874e-3) + q * np.float32(-1.951529589e-4))
    return t + t * q * tail


@compiled(fastmath=True, inline="always")
def _log_of_mantissa(x):  # pragma: no cover  # compiled
    """Return log(1 + x) for 1 + x between √½ and √2."""
    y = np.float32(7.0376836e-2)
    y = y * x - np.float32(1.1514610e-1)
    y = y * x + np.float32(1.1676999e-1)
    y = y * x - np.float32(1.2420141e-1)
    y = y * x + np.float32(1.4249323e-1)
    y = y * x - np.float32(1.6668058e-1)
    y = y * x + np.float32(2.0000715e-1)
    y = y * x - np.float32(2.4999994e-1)
    y = y * x + np.float32(3.3333331e-1)
    return x + (y * x - _HALF) * x * x


@compiled(fastmath=True, inline="always")
def _normal_pair(radius, word):  # pragma: no cover  # compiled
    """Return two normals from a radius and a random word, which gives the angle."""
    angle = np.float32(np.int32(word) >> np.int32(8)) * _STEP
    along, across = radius * _cosine(angle), radius * _sine(angle)
    one = along if word & np.uint32(1) else across
    other = across if word & np.uint32(1) else along
    return (one if word & np.uint32(2) else -one), (other if word & np.uint32(4) else -other)


@compiled(fastmath=True, nogil=True)
def fill_noise(state, out, scale):  # pragma: no cover  # compiled
    """Fill ``out`` with normals of standard deviation ``scale``; ``state``, (4, LANES) words of 32 bits, is updated."""
    first, second = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK, np.uint32)
    number, exponent, radius = np.empty(_BLOCK, np.float32), np.empty(_BLOCK, np.float32), np.empty(_BLOCK, np.float32)
    mantissa = np.empty(_BLOCK, np.int32)
    number_bits, mantissa_value = number.view(np.int32), mantissa.view(np.float32)
    a, b, c, d = state[0], state[1], state[2], state[3]
    start = 0
    while start < out.shape[0]:
        for row in range(0, _BLOCK, LANES):
            _next_words(a, b, c, d, first[row : row + LANES])
            _next_words(a, b, c, d, second[row : row + LANES])
        # radius = scale √(-2 log u) with u = number / 2^31 in (0, 1]
        for i in range(_BLOCK):
            number[i] = np.float32(np.int32(first[i] >> np.uint32(1))) + _HALF
        for i in range(_BLOCK):
            bits = number_bits[i]
            fraction = bits & np.int32(0x7FFFFF)
            large = fraction > np.int32(0x3504F3)  # above √2: halve it, so that its logarithm is near 0
            exponent[i] = np.float32((bits >> np.int32(23)) - np.int32(158) + (np.int32(1) if large else np.int32(0)))
            mantissa[i] = fraction | (np.int32(0x3F000000) if large else np.int32(0x3F800000))
        for i in range(_BLOCK):
            logarithm = _log_of_mantissa(mantissa_value[i] - _ONE) + exponent[i] * _LN2
            radius[i] = scale * np.sqrt(max(np.float32(-2.0) * logarithm, np.float32(0.0)))
        # The angle is uniform within an eighth of a circle to either side of 0; three further bits select the octant.
        pairs = min(_BLOCK, (out.shape[0] - start + 1) // 2)
        left = out[start : start + pairs]
        right = out[start + pairs : min(start + 2 * pairs, out.shape[0])]
        for i in range(right.shape[0]):
            left[i], right[i] = _normal_pair(radius[i], second[i])
        if right.shape[0] < pairs:  # out has an odd length
            left[pairs - 1], _ = _normal_pair(radius[pairs - 1], second[pairs - 1])
        start += 2 * pairs
