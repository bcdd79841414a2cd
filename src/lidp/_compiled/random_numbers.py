"""Compiled random numbers for simulations that need billions: xoshiro256++ bits, ziggurat normals, chi-squares.

A generator is an array of four 64-bit words, the state of xoshiro256++ (Blackman and Vigna 2021), filled by
:func:`lidp.streams.trial_words`. Normals come from a ziggurat of 128 layers (Marsaglia and Tsang 2000, with different bits for
the layer and the position in it) with 24 bits of precision, several times faster than those of numpy; chi-squares from the
method of Marsaglia and Tsang for gamma variates.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

import numpy as np

from lidp._compiled.compiler import compiled

_LAYERS = 128
_EDGE = 3.442619855899  # start of the tail
_AREA = 9.91256303526217e-3  # of each layer
_STEPS = 2.0**24


def _ziggurat() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, per layer, the first step that may be outside, the width of a step, and the density at the edge."""
    edges = np.empty(_LAYERS)
    edges[-1] = _EDGE
    for layer in range(_LAYERS - 2, 0, -1):
        above = edges[layer + 1]
        edges[layer] = math.sqrt(-2 * math.log(_AREA / above + math.exp(-(above**2) / 2)))
    edges[0] = 0.0
    density = np.exp(-(edges**2) / 2)
    bottom = _AREA / density[-1]  # the width of the base layer, tail included
    widths = np.concatenate([[bottom], edges[1:]])
    inside = np.concatenate([[_EDGE], edges[:-1]]) / widths
    return (inside * _STEPS).astype(np.uint32), (widths / _STEPS).astype(np.float32), density


_INSIDE, _WIDTH, _DENSITY = _ziggurat()
_TO_UNIT = 2.0**-53
_MIDDLE = np.float32(0.5)  # of a step, so that no normal is 0


@compiled(inline="always")
def next_word(state):  # pragma: no cover  # compiled
    """Return 64 random bits."""
    a, b, c, d = state[0], state[1], state[2], state[3]
    total = a + d
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
    shifted = b << np.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << np.uint64(45)) | (d >> np.uint64(19))
    state[0], state[1], state[2], state[3] = a, b, c, d
    return word


@compiled()
def uniform(state):  # pragma: no cover  # compiled
    """Return a uniform number in (0, 1]."""
    return (np.float64(next_word(state) >> np.uint64(11)) + 1.0) * _TO_UNIT


@compiled()
def _resolve_edge(state, layer, x):  # pragma: no cover  # compiled
    """Return the normal of a position that may be outside its layer, or -1 to draw again."""
    if layer == 0:
        while True:
            beyond = -math.log(uniform(state)) / _EDGE
            if -2.0 * math.log(uniform(state)) > beyond * beyond:
                return np.float32(_EDGE + beyond)
    height = _DENSITY[layer] + uniform(state) * (_DENSITY[layer - 1] - _DENSITY[layer])
    return x if height < math.exp(-0.5 * x * x) else np.float32(-1.0)


@compiled()
def fill_normal(state, out):  # pragma: no cover  # compiled
    """Fill ``out`` with standard normals, two from each word."""
    size = out.shape[0]
    i = 0
    a, b, c, d = state[0], state[1], state[2], state[3]
    while i < size:
        # next_word in local variables, which stay in registers
        total = a + d
        word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
        shifted = b << np.uint64(17)
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = (d << np.uint64(45)) | (d >> np.uint64(19))
        for half in range(2):
            bits = np.uint32(word >> np.uint64(32 * half))
            layer = bits & np.uint32(127)
            step = bits >> np.uint32(8)
            x = (np.float32(step) + _MIDDLE) * _WIDTH[layer]
            if step >= _INSIDE[layer]:
                state[0], state[1], state[2], state[3] = a, b, c, d
                x = _resolve_edge(state, layer, x)
                a, b, c, d = state[0], state[1], state[2], state[3]
                if x < 0.0:
                    continue
            if i < size:
                out[i] = -x if bits & np.uint32(128) else x
                i += 1
    state[0], state[1], state[2], state[3] = a, b, c, d


@compiled()
def normal(state):  # pragma: no cover  # compiled
    """Return one standard normal."""
    while True:
        bits = np.uint32(next_word(state) >> np.uint64(32))
        layer = bits & np.uint32(127)
        step = bits >> np.uint32(8)
        x = (np.float32(step) + _MIDDLE) * _WIDTH[layer]
        if step >= _INSIDE[layer]:
            x = _resolve_edge(state, layer, x)
            if x < 0.0:
                continue
        return np.float64(-x if bits & np.uint32(128) else x)


@compiled()
def chi_square(state, degrees):  # pragma: no cover  # compiled
    """Return a chi-square with these degrees of freedom; 0 if there are none."""
    if degrees == 0:
        return 0.0
    if degrees == 1:
        x = normal(state)
        return x * x
    shape = degrees / 2.0 - 1.0 / 3.0
    spread = 1.0 / math.sqrt(9.0 * shape)
    while True:
        x = normal(state)
        v = 1.0 + spread * x
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(uniform(state)) < 0.5 * x * x + shape * (1.0 - v + math.log(v)):
            return 2.0 * shape * v
