"""Compiled softmax: the signals at the outputs of a batch, with exponentials by vector instructions."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from lidp._compiled.compiler import compiled
from lidp._compiled.vectors import (
    LANES,
    Memory,
    Vector,
    built,
    from_lanes,
    loop,
    number,
    polynomial,
    shape_of,
    transpose,
    zeros,
)

_LOWEST = -104.0  # e to this is below the smallest positive number of single precision
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""Coefficients of (e^t - 1 - t) / t² for |t| up to ½ log 2 (Cephes library, S. Moshier)."""


def _power_of_two(exponent: Vector) -> Vector:
    """Return 2^exponent, for exponents of normal numbers."""
    return ((exponent + 127) << 23).as_singles()


def exponential(x: Vector) -> Vector:
    """Return e^x for x up to 80, exact to single precision; also where that is subnormal, and NaN for NaN."""
    x = x.at_least(_LOWEST)
    whole = (x * _LOG2_E).rounded()
    t = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    value = polynomial(t, _EXP) * (t * t) + t + 1.0
    exponent = whole.to_words()
    half = exponent.shift_signed(1)  # in two steps: the power of two itself may be too small
    return value * _power_of_two(half) * _power_of_two(exponent - half)


def _replace_scores(by_class: Memory, classes: ir.Value, own_class: Vector) -> Vector:
    """Replace the scores of LANES examples, one row per class, by their signals; return the squares of the norms of these."""
    builder = own_class.builder
    zero = zeros(builder, 1)[0]

    def raise_top(j, state):
        top, check = state
        score = by_class.load(_line(builder, j))
        return score.where_above(top, score, top), check + score * 0.0

    # If a score is not finite, check is NaN, and so are all signals.
    top, check = loop(builder, classes, (by_class.load(number(0)), zero), raise_top)

    def exponentiate(j, state):
        own, rest = state
        value = exponential(by_class.load(_line(builder, j)) - top)
        by_class.store(_line(builder, j), value)
        return own_class.where_equal(j, value, own), rest + own_class.where_equal(j, zero, value)

    own, rest = loop(builder, classes, (zero, zero), exponentiate)
    rest = rest + check
    share = (rest + own).reciprocal()
    own_signal = rest * share * -1.0  # computed directly: 1 minus a number near 1 would lose digits

    def normalise(j, state):
        signal = own_class.where_equal(j, own_signal, by_class.load(_line(builder, j)) * share)
        by_class.store(_line(builder, j), signal)
        return (state[0] + signal * signal,)

    (squares,) = loop(builder, classes, (zero,), normalise)
    return squares


def _line(builder: ir.IRBuilder, index: ir.Value) -> ir.Value:
    """Return where line ``index`` of LANES numbers begins."""
    return builder.mul(index, number(LANES))


@built
def _signal_examples(_typing, scores, labels, signals, squares, buffer, _first):
    """Compute the signals of the LANES examples from ``first`` on. If there are fewer, the last one is computed several times.

    ``buffer`` has room for LANES numbers per class, and for as many more classes as make a multiple of LANES.
    """

    def generate(context, builder, _signature, arguments):
        below, label_numbers, above, sums, by_class = (
            Memory(context, builder, kind, array)
            for kind, array in zip((scores, labels, signals, squares, buffer), arguments[:5], strict=True)
        )
        rows, classes = shape_of(context, builder, scores, arguments[0])
        first, last = arguments[5], builder.sub(rows, number(1))
        examples = [builder.add(first, number(i)) for i in range(LANES)]
        examples = [builder.select(builder.icmp_signed("<", i, last), i, last) for i in examples]
        starts = [builder.mul(i, classes) for i in examples]
        # Examples are transposed, LANES classes at a time, so that a vector holds one class of all of them.
        parts = builder.sdiv(builder.add(classes, number(LANES - 1)), number(LANES))

        def lines_of(part):
            return [_line(builder, builder.add(_line(builder, part), number(k))) for k in range(LANES)]

        def take_part(part, _state):
            column = _line(builder, part)
            rest = builder.sub(classes, column)
            examples_part = [below.load_first(builder.add(start, column), rest) for start in starts]
            for line, values in zip(lines_of(part), transpose(examples_part), strict=True):
                by_class.store(line, values)
            return ()

        def give_part(part, _state):
            column = _line(builder, part)
            rest = builder.sub(classes, column)
            classes_part = [by_class.load(line) for line in lines_of(part)]
            for start, values in zip(starts, transpose(classes_part), strict=True):
                above.store_first(builder.add(start, column), rest, values)
            return ()

        loop(builder, parts, (), take_part)
        own_class = from_lanes(builder, [label_numbers.whole_number(i) for i in examples])
        sums.store_first(first, builder.sub(rows, first), _replace_scores(by_class, classes, own_class))
        loop(builder, parts, (), give_part)
        return context.get_dummy_value()

    return types.void(scores, labels, signals, squares, buffer, types.int64), generate


@compiled()
def output_signals(scores, labels, signals, squares):  # pragma: no cover  # compiled
    """Fill the rows of ``signals`` with softmax minus the label, the gradient of the cross-entropy by the scores of the classes.

    Fills ``squares`` with the squares of the norms of these rows, summed in single precision. If a score is infinite or NaN, all
    signals of its row are NaN; other rows are not affected.
    """
    rows, classes = scores.shape
    buffer = np.empty(LANES * (classes + LANES), np.float32)
    for first in range(0, rows, LANES):
        _signal_examples(scores, labels, signals, squares, buffer, first)
