"""Compiled matrix products against double precision, for shapes with and without remainders of every tile."""

import numpy as np
import pytest

from lidp._compiled.products import back_products, inner_products, outer_products

SHAPES = [
    (1, 1, 1),
    (3, 5, 2),
    (4, 16, 5),
    (5, 17, 6),
    (9, 64, 10),
    (8, 83, 11),
    (13, 130, 10),
    (2, 200, 32),
    (6, 40, 33),
    (7, 100, 64),
    (3, 1025, 40),
]
"""Rows, inputs and outputs."""
UPCOMING = np.array([2, 0, 99, 1])  # 99 is no row


def matrix(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def stored(kind, rows, inputs):
    """Return a matrix with more rows than asked for, as bytes or in single precision, and which rows to use."""
    rng = np.random.default_rng([2, rows, inputs])
    below = rng.integers(0, 256, (rows + 3, inputs), dtype=np.uint8) if kind == "bytes" else matrix(rows + 3, inputs)
    return below, rng.permutation(rows + 3)[:rows]


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("kind", ["bytes", "singles"])
@pytest.mark.parametrize("upcoming", [UPCOMING, UPCOMING[:0]], ids=["some upcoming", "none upcoming"])
def test_inner_products_match_double_precision(rows, inputs, outputs, kind, upcoming):
    (below, chosen), weights = stored(kind, rows, inputs), matrix(outputs, inputs, seed=1)
    out = np.full((rows + 1, outputs), np.float32(7.0))
    inner_products(below, chosen, weights, out[:rows], matrix(3, inputs), upcoming)
    largest = np.abs(below).max()
    expected = below[chosen].astype(float) @ weights.T
    np.testing.assert_allclose(out[:rows], expected, rtol=1e-5, atol=1e-5 * largest * inputs**0.5)
    assert (out[rows] == 7.0).all()


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("kind", ["bytes", "singles"])
def test_outer_products_match_double_precision(rows, inputs, outputs, kind):
    signal, (below, chosen) = matrix(rows, outputs), stored(kind, rows, inputs)
    out = np.full((outputs + 1, inputs), np.float32(7.0))
    outer_products(signal, below, chosen, np.float32(0.25), out[:outputs])
    largest = np.abs(below).max()
    expected = 0.25 * signal.T.astype(float) @ below[chosen]
    np.testing.assert_allclose(out[:outputs], expected, rtol=1e-5, atol=1e-5 * largest * rows**0.5)
    assert (out[outputs] == 7.0).all()


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_back_products_match_double_precision(rows, inputs, outputs):
    signal, weights = matrix(rows, outputs), matrix(outputs, inputs, seed=1)
    out = np.full((rows + 1, inputs), np.float32(7.0))
    back_products(signal, weights, out[:rows])
    np.testing.assert_allclose(out[:rows], signal.astype(float) @ weights, rtol=1e-5, atol=1e-5 * outputs**0.5)
    assert (out[rows] == 7.0).all()


@pytest.mark.parametrize("kind", ["bytes", "singles"])
def test_the_products_of_a_row_do_not_depend_on_other_rows(kind):
    (below, chosen), weights = stored(kind, 13, 130), matrix(11, 130, seed=1)
    expected = np.empty((13, 11), np.float32)
    inner_products(below, chosen, weights, expected, below, UPCOMING[:0])
    for first in range(13):
        for end in range(first + 1, 14):
            out = np.empty((end - first, 11), np.float32)
            inner_products(below, chosen[first:end], weights, out, below, UPCOMING[:0])
            np.testing.assert_array_equal(out, expected[first:end])


def test_products_keep_infinities_and_nan_in_their_rows():
    below, weights = matrix(4, 32), matrix(5, 32, seed=1)
    below[1, 3], below[2, 20] = np.inf, np.nan
    out = np.empty((4, 5), np.float32)
    inner_products(below, np.arange(4), weights, out, below, UPCOMING[:0])
    assert np.isinf(out[1]).all()
    assert np.isnan(out[2]).all()
    assert np.isfinite(out[[0, 3]]).all()
