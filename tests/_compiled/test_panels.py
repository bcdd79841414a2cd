"""Products that skip zeros against double precision, and what they may not do: let one row of a batch depend on another."""

import numpy as np
import pytest

from lidp._compiled import dp_sgd, panels
from lidp._compiled.panels import _fold_blocks, _transpose_bits, inner_products, new_workspace, outer_products

SHAPES = [
    (1, 5, 64),
    (3, 70, 64),
    (4, 16, 128),
    (5, 3, 64),
    (7, 100, 192),
    (66, 63, 64),
    (130, 65, 64),
    (9, 600, 64),
    (100, 784, 256),
]
"""Rows, inputs and outputs: with and without remainders of vectors, words and blocks."""
SHARES = {"all zeros": 0.0, "few": 0.05, "half": 0.5, "no zeros": 1.0}
NONE_UPCOMING = np.empty(0, np.int64)


def sparse(rows, columns, share, seed=0):
    rng = np.random.default_rng([seed, rows, columns])
    return (rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < share)).astype(np.float32)


def forward(below, weights, upcoming=NONE_UPCOMING):
    """Return the outputs, the bits of the rows and the workspace; check that nothing else is written."""
    (rows, inputs), outputs = below.shape, len(weights)
    workspace = new_workspace((inputs, outputs), rows, 64)
    row_bits = np.zeros((rows, -(-inputs // 64)), np.uint64)
    out = np.full((rows + 1, outputs), np.float32(7.0))
    inner_products(below, weights, row_bits, out[:rows], workspace, below, upcoming)
    assert (out[rows] == 7.0).all()
    return out[:rows], row_bits, workspace


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)
def test_products_match_double_precision(rows, inputs, outputs, share):
    below, weights, signal = sparse(rows, inputs, share), sparse(outputs, inputs, 1.0, 1), sparse(rows, outputs, 1.0, 2)
    products, row_bits, workspace = forward(below, weights, np.array([0, 99, rows - 1]))
    np.testing.assert_allclose(products, below.astype(float) @ weights.T, rtol=1e-5, atol=1e-5 * inputs**0.5)
    gradient = np.full((outputs + 1, inputs), np.float32(7.0))
    outer_products(signal, below, row_bits, gradient[:outputs], workspace)
    np.testing.assert_allclose(gradient[:outputs], signal.T.astype(float) @ below, rtol=1e-5, atol=1e-5 * rows**0.5)
    assert (gradient[outputs] == 7.0).all()


@pytest.mark.parametrize("special", [None, np.inf, np.nan], ids=["finite", "infinite", "nan"])
@pytest.mark.parametrize("place", [(3, 2), (70, 99)], ids=["in whole vectors", "in the remainder"])
def test_a_row_does_not_depend_on_the_other_rows(special, place):
    """Otherwise a record could change the clipped gradients of others, whatever its own is clipped to."""
    below, weights = sparse(9, 100, 0.3), sparse(128, 100, 1.0, 1)
    if special is not None:
        weights[place] = special
    products, *_ = forward(below, weights)
    for i in range(9):
        alone, *_ = forward(below[i : i + 1], weights)
        np.testing.assert_array_equal(products[i], alone[0])
    if special is not None:
        assert np.isnan(products[below[:, place[1]] == 0, place[0]]).all()  # as 0 times infinity is


def test_infinities_and_nan_stay_in_their_rows():
    below, weights = sparse(6, 80, 0.4), sparse(64, 80, 1.0, 1)
    below[1, 3], below[2, 79] = np.inf, np.nan
    products, *_ = forward(below, weights)
    assert np.isinf(products[1]).all()
    assert np.isnan(products[2]).all()
    assert np.isfinite(products[[0, 3, 4, 5]]).all()


def as_bits(words, columns):
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, :columns].astype(bool)


@pytest.mark.parametrize(("rows", "inputs"), [(1, 1), (3, 64), (64, 65), (65, 130), (131, 784)])
def test_bits_of_rows_are_folded_and_transposed(rows, inputs):
    below = sparse(rows, inputs, 0.1)
    _, row_bits, _ = forward(below, sparse(64, inputs, 1.0, 1))
    np.testing.assert_array_equal(as_bits(row_bits, inputs), below != 0)
    blocks = -(-inputs // 4)
    folded = np.empty((rows, -(-blocks // 64)), np.uint64)
    _fold_blocks(row_bits, folded)
    padded = np.pad(below != 0, ((0, 0), (0, 4 * blocks - inputs)))
    expected = padded.reshape(rows, blocks, 4).any(axis=2)
    np.testing.assert_array_equal(as_bits(folded, blocks), expected)
    transposed = np.empty((64 * folded.shape[1], -(-rows // 64)), np.uint64)
    _transpose_bits(folded, transposed)
    np.testing.assert_array_equal(as_bits(transposed, rows)[:blocks], expected.T)


def test_one_workspace_serves_batches_of_any_size_in_any_order():
    below, weights, signal = sparse(40, 70, 0.5), sparse(64, 70, 1.0, 1), sparse(40, 64, 1.0, 2)
    workspace = new_workspace((70, 64), 40, 64)
    for rows in (40, 1, 17, 40, 3):
        row_bits, out, gradient = np.zeros((rows, 2), np.uint64), np.empty((rows, 64), np.float32), np.empty_like(weights)
        inner_products(below[:rows], weights, row_bits, out, workspace, below, NONE_UPCOMING)
        outer_products(signal[:rows], below[:rows], row_bits, gradient, workspace)
        np.testing.assert_allclose(out, below[:rows] @ weights.T, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(gradient, signal[:rows].T @ below[:rows], rtol=1e-4, atol=1e-4)


def test_batches_are_sorted_by_label_with_canaries_last():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 30)
    for count in (0, 1, 20, 40):
        batch = np.sort(rng.permutation(40)[:count])
        expected = sorted(batch, key=lambda record: (y[record] if record < 30 else 5, record))
        dp_sgd.sort_by_label(batch, y, np.empty(6, np.int64), np.empty(40, np.int64))
        assert batch.tolist() == expected


@pytest.mark.parametrize(
    ("inputs", "outputs", "usual_rows", "expected"),
    [(784, 256, 100, True), (784, 256, 63, False), (784, 100, 100, False), (784, 10, 100, False), (5000, 256, 100, False)],
)
def test_panels_serve_wide_layers_and_large_batches_on_processors_with_wide_registers(
    inputs, outputs, usual_rows, expected
):
    workspace = new_workspace((inputs, outputs), 120, usual_rows)
    assert (workspace is not None) == panels.uses_panels(workspace, inputs, outputs) == (expected and panels.WIDE_REGISTERS)
