"""Vectors of random signs: drawn by the published generator, fair, and the same in sums and in products."""

import numpy as np
import pytest
from scipy import stats

from lidp._compiled.noise import LANES
from lidp._compiled.signs import add_signs, project_signs, signed_sum
from tests._compiled.test_noise import lanes, rotated

SIZES = [1, 15, 511, 512, 513, 7850, 20_000]


def reference(state, size):
    """Return the signs of ``size`` coordinates, by xoshiro128++ with whole numbers."""
    signs = []
    for _ in range(-(-size // (32 * LANES))):
        a, b, c, d = state
        words = rotated(a + d, 7) + a
        c, d = c ^ a, d ^ b
        state = np.array([a ^ d, b ^ c, c ^ (b << np.uint32(9)), rotated(d, 11)])
        signs += [1.0 - 2.0 * ((words >> np.uint32(bit)) & np.uint32(1)) for bit in range(32)]
    return np.concatenate(signs)[:size]


@pytest.mark.parametrize("size", SIZES)
def test_added_signs_are_bits_of_the_published_generator(size):
    start = np.random.default_rng(size).standard_normal(size + 1).astype(np.float32)
    total, words = start.copy(), lanes(size)
    add_signs(words, total[:size], np.float32(0.25))
    np.testing.assert_allclose(total[:size], start[:size] + 0.25 * reference(lanes(size), size), rtol=1e-6, atol=1e-7)
    assert total[size] == start[size]
    np.testing.assert_array_equal(words, lanes(size))


@pytest.mark.parametrize("size", SIZES)
def test_products_are_those_of_the_added_signs(size):
    values = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    expected = reference(lanes(3), size) @ values
    assert signed_sum(lanes(3), values) == pytest.approx(expected, abs=1e-6 * size**0.5 + 1e-6)
    products, squares = np.empty(2), np.empty(2)
    words = np.stack([lanes(3), lanes(4)])
    project_signs(values, words, np.array([0.5, 2.0], np.float32), products, squares)
    other = 2 * (reference(lanes(4), size) @ values)
    np.testing.assert_allclose(products, [0.5 * expected, other], atol=4e-6 * size**0.5)
    np.testing.assert_allclose(squares, [0.25 * size, 4.0 * size])


def test_signs_are_fair_and_uncorrelated():
    size = 4_000_000
    signs = np.zeros(size, np.float32)
    add_signs(lanes(), signs, np.float32(1.0))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert stats.binomtest(int((signs > 0).sum()), size).pvalue > 1e-4
    for lag in (1, 2, LANES, 31 * LANES, 512, 1024):
        assert abs(float(np.mean(signs[:-lag] * signs[lag:], dtype=np.float64))) < 5 / size**0.5
