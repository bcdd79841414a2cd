"""Compiled softmax: the signals at the outputs of a batch, with exponentials by vector instructions."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np
from numba import types

from lidp._compiled.compiler import compiled
from lidp._compiled.vectors import LANES, Memory, Vector, built, loop, number, polynomial

_ZERO = np.float32(0.0)
_LOWEST = -104.0  # e to this is below the smallest positive number of single precision
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""Coefficients of (e^t - 1 - t) / t² for |t| up to ½ log 2 (Cephes library, S. Moshier)."""


def _power_of_two(exponent: Vector) -> Vector:
    """Return 2^exponent, for exponents of normal numbers."""
    return ((exponent + 127) << 23).as_singles()


def _exponential(x: Vector) -> Vector:
    """Return e^x for x up to 80, exact to single precision; also where that is subnormal, and NaN for NaN."""
    x = x.at_least(_LOWEST)
    whole = (x * _LOG2_E).rounded()
    t = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    value = polynomial(t, _EXP) * (t * t) + t + 1.0
    exponent = whole.to_words()
    half = exponent.shift_signed(1)  # in two steps: the power of two itself may be too small
    return value * _power_of_two(half) * _power_of_two(exponent - half)


@built
def _exponentials_of_vectors(_typing, values, _vectors):
    """Replace the first LANES times ``vectors`` numbers by their exponentials."""

    def generate(context, builder, _signature, arguments):
        memory = Memory(context, builder, values, arguments[0])

        def replace(vector, _state):
            start = builder.mul(vector, number(LANES))
            memory.store(start, _exponential(memory.load(start)))
            return ()

        loop(builder, arguments[1], (), replace)
        return context.get_dummy_value()

    return types.void(values, types.int64), generate


@compiled()
def exponentials(values):  # pragma: no cover  # compiled
    """Replace numbers up to 80 by their exponentials."""
    vectors = values.shape[0] // LANES
    _exponentials_of_vectors(values, vectors)
    rest = values[vectors * LANES :]
    if rest.shape[0]:
        last = np.zeros(LANES, np.float32)
        last[: rest.shape[0]] = rest
        _exponentials_of_vectors(last, 1)
        rest[:] = last[: rest.shape[0]]


@compiled()
def output_signals(scores, labels, signals):  # pragma: no cover  # compiled
    """Fill the rows of ``signals`` with softmax minus the label, the gradient of the cross-entropy by the scores of the classes."""
    rows, classes = scores.shape
    for i in range(rows):
        row, out = scores[i], signals[i]
        top = row[0]
        for j in range(1, classes):
            top = max(top, row[j])
        for j in range(classes):
            out[j] = row[j] - top
    exponentials(signals.reshape(rows * classes))
    for i in range(rows):
        out, label = signals[i], labels[i]
        own, rest = out[label], _ZERO
        for j in range(classes):
            if j != label:
                rest += out[j]
        share = np.float32(1.0) / (rest + own)
        for j in range(classes):
            out[j] *= share
        out[label] = -rest * share  # computed directly: 1 minus a number near 1 would lose digits
