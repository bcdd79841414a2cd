"""Compiled exponentials and softmax against double precision."""

import numba
import numpy as np
import pytest
from numba import types

from lidp._compiled.softmax import exponential, output_signals
from lidp._compiled.vectors import LANES, Memory, built, loop, number


@built
def replace_vectors(_typing, values, _vectors):
    """Replace the first LANES times ``vectors`` numbers by their exponentials."""

    def generate(context, builder, _signature, arguments):
        memory = Memory(context, builder, values, arguments[0])

        def replace(vector, _state):
            start = builder.mul(vector, number(LANES))
            memory.store(start, exponential(memory.load(start)))
            return ()

        loop(builder, arguments[1], (), replace)
        return context.get_dummy_value()

    return types.void(values, types.int64), generate


@numba.njit
def replace_by_exponentials(values):
    replace_vectors(values, values.shape[0] // LANES)


def exponentials(numbers):
    values = np.zeros(-(-len(numbers) // LANES) * LANES, np.float32)
    values[: len(numbers)] = numbers
    replace_by_exponentials(values)
    return values[: len(numbers)]


def test_exponentials_are_exact_to_single_precision():
    x = np.concatenate([np.linspace(-87, 80, 100_003), [0.0, -0.0, 1e-8, -1e-30]]).astype(np.float32)
    np.testing.assert_allclose(exponentials(x), np.exp(x.astype(float)), rtol=2.5e-7)


def test_exponentials_underflow_gradually():
    x = np.linspace(-110, -87, 1001).astype(np.float32)
    values = exponentials(x)
    np.testing.assert_allclose(values, np.exp(x.astype(float)), rtol=3e-7, atol=3e-45)
    assert ((values > 0) == (x > -103.97)).mean() > 0.99


def test_exponentials_keep_nan_and_end_at_zero():
    values = exponentials([np.nan, 1.0, -np.inf, -1e30, 1.0])
    assert np.isnan(values[0])
    np.testing.assert_allclose(values[1:], [np.e, 0.0, 0.0, np.e], rtol=1e-6)


def signals_of(scores, labels):
    """Return the signals of a batch and their squares; check that nothing else is written."""
    rows, classes = scores.shape
    signals, squares = np.full((rows + 1) * classes + LANES, np.float32(7.0)), np.full(rows + LANES, np.float32(7.0))
    output_signals(scores, labels, signals[: rows * classes].reshape(rows, classes), squares[:rows])
    assert (signals[rows * classes :] == 7.0).all()
    assert (squares[rows:] == 7.0).all()
    return signals[: rows * classes].reshape(rows, classes), squares[:rows]


def some(rows, classes, size=1.0):
    rng = np.random.default_rng([rows, classes])
    return (size * rng.standard_normal((rows, classes))).astype(np.float32), rng.integers(0, classes, rows)


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("classes", [1, 2, 3, 10, 15, 16, 17, 30, 100])
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_output_signals_are_softmax_minus_the_label(rows, classes, size):
    scores, labels = some(rows, classes, size)
    signals, squares = signals_of(scores, labels)
    chances = np.exp(scores.astype(float) - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    others = np.where(np.arange(classes) == labels[:, None], 0.0, chances)
    expected = others - np.eye(classes)[labels] * others.sum(axis=1, keepdims=True)
    error = 3e-7 * (1 + size) + 6e-8 * classes  # of the exponentials, and of their sum
    np.testing.assert_allclose(signals, expected, rtol=error, atol=1e-44)
    np.testing.assert_allclose(squares, np.square(expected).sum(axis=1), rtol=2 * error, atol=1e-37)


@pytest.mark.parametrize("classes", [3, 10, 17])
def test_the_signals_of_a_row_do_not_depend_on_other_rows(classes):
    scores, labels = some(21, classes)
    signals, squares = signals_of(scores, labels)
    for first in range(0, 21, 4):
        for end in range(first + 1, 22):
            part, part_squares = signals_of(scores[first:end].copy(), labels[first:end])
            np.testing.assert_array_equal(part, signals[first:end])
            np.testing.assert_array_equal(part_squares, squares[first:end])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 2, 9])
def test_signals_of_scores_that_are_not_finite_are_nan_in_their_row_only(value, column):
    scores, labels = some(20, 10)
    expected, expected_squares = signals_of(scores, labels)
    scores[[3, 18], column] = value
    signals, squares = signals_of(scores, labels)
    others = np.delete(np.arange(20), [3, 18])
    assert np.isnan(signals[[3, 18]]).all()
    assert np.isnan(squares[[3, 18]]).all()
    np.testing.assert_array_equal(signals[others], expected[others])
    np.testing.assert_array_equal(squares[others], expected_squares[others])
