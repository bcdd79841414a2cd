"""Compiled exponentials and softmax against double precision."""

import numpy as np
import pytest

from lidp._compiled.softmax import exponentials, output_signals


def test_exponentials_are_exact_to_single_precision():
    x = np.concatenate([np.linspace(-87, 80, 100_003), [0.0, -0.0, 1e-8, -1e-30]]).astype(np.float32)
    values = x.copy()
    exponentials(values)
    np.testing.assert_allclose(values, np.exp(x.astype(float)), rtol=2.5e-7)


def test_exponentials_underflow_gradually():
    x = np.linspace(-110, -87, 1001).astype(np.float32)
    values = x.copy()
    exponentials(values)
    np.testing.assert_allclose(values, np.exp(x.astype(float)), rtol=3e-7, atol=3e-45)
    assert ((values > 0) == (x > -103.97)).mean() > 0.99


@pytest.mark.parametrize("length", [1, 15, 16, 17, 35])
def test_exponentials_of_any_length_keep_nan_and_end_at_zero(length):
    values = np.full(length + 1, np.float32(1.0))
    values[0], values[length - 1] = np.nan, -np.inf
    exponentials(values[:length])
    assert np.isnan(values[0]) or length == 1
    assert values[length - 1] == 0.0
    np.testing.assert_allclose(values[1 : length - 1], np.e, rtol=1e-6)
    assert values[length] == 1.0


@pytest.mark.parametrize("classes", [2, 3, 10, 30])
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_output_signals_are_softmax_minus_the_label(classes, size):
    rng = np.random.default_rng(classes)
    scores, labels = (size * rng.standard_normal((21, classes))).astype(np.float32), rng.integers(0, classes, 21)
    signals = np.empty_like(scores)
    output_signals(scores, labels, signals)
    chances = np.exp(scores.astype(float) - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    others = np.where(np.arange(classes) == labels[:, None], 0.0, chances)
    expected = others - np.eye(classes)[labels] * others.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(signals, expected, rtol=3e-7 * (1 + size), atol=1e-44)
