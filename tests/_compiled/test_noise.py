"""Normal numbers drawn in vectors: the published generator, exact functions of its words, and the normal law."""

import numpy as np
import pytest
from scipy import stats

from lidp._compiled.noise import LANES, fill_noise


def lanes(seed=1):
    return np.random.SeedSequence(seed).generate_state(4 * LANES, np.uint32).reshape(4, LANES).copy()


def rotated(words, bits):
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def reference_block(state):
    """Return 512 pairs of normals in double precision, by xoshiro128++ and Box-Muller; ``state`` is updated."""
    words = []
    for _ in range(2 * 512 // LANES):
        a, b, c, d = state
        words.append(rotated(a + d, 7) + a)
        c, d = c ^ a, d ^ b
        state[:] = a ^ d, b ^ c, c ^ (b << np.uint32(9)), rotated(d, 11)
    first, second = np.concatenate(words[0::2]), np.concatenate(words[1::2])
    # single precision, in which upper halves of the words are rounded to 24 bits
    uniform = ((first >> np.uint32(1)).astype(np.float32) + np.float32(0.5)).astype(float) / 2**31
    radius = np.sqrt(-2 * np.log(uniform))
    angle = (second.astype(np.int32) >> 8) * (np.pi / 4 / 2**23)
    along, across, odd = radius * np.cos(angle), radius * np.sin(angle), second & 1 == 1
    one, other = np.where(odd, along, across), np.where(odd, across, along)
    return np.where(second & 2, one, -one), np.where(second & 4, other, -other)


@pytest.mark.parametrize("scale", [1.0, 0.125, 3e-30, 2e29])
def test_normals_are_functions_of_words_exact_to_single_precision(scale):
    state = lanes()
    expected = np.concatenate([part for _ in range(200) for part in reference_block(state)])
    drawn_state, out = lanes(), np.empty(len(expected), np.float32)
    fill_noise(drawn_state, out, np.float32(scale))
    np.testing.assert_allclose(out / float(np.float32(scale)), expected, rtol=3e-7, atol=1e-9)
    np.testing.assert_array_equal(drawn_state, state)


def test_words_of_zeros_and_ones_give_the_largest_and_the_smallest_radius():
    """From the state 0, all words are 0: u is 2^-32. With a + d = -1 and a = 0, the first word is -1: u rounds to 1."""
    out = np.empty(2 * LANES, np.float32)
    fill_noise(np.zeros((4, LANES), np.uint32), out, np.float32(1.0))
    np.testing.assert_allclose(np.hypot(out[:LANES], out[LANES:]), np.sqrt(2 * np.log(2**32)), rtol=1e-6)
    ones = np.zeros((4, LANES), np.uint32)
    ones[3] = 2**32 - 1
    fill_noise(ones, out, np.float32(1.0))
    np.testing.assert_array_equal(np.abs(out), 0.0)


def test_tails_have_the_normal_law():
    """100 million normals, of which 57 are expected beyond 5."""
    state, out, beyond = lanes(2), np.empty(1_000_000, np.float32), {3.5: 0, 4.5: 0, 5.0: 0}
    for _ in range(100):
        fill_noise(state, out, np.float32(1.0))
        for limit in beyond:
            beyond[limit] += int(np.count_nonzero(out > limit) + np.count_nonzero(out < -limit))
    for limit, count in beyond.items():
        assert stats.binomtest(count, 100 * len(out), 2 * stats.norm.sf(limit)).pvalue > 1e-4


def test_noise_is_standard_normal_and_uncorrelated():
    out = np.empty(1_000_001, np.float32)
    fill_noise(lanes(), out, np.float32(1.0))
    numbers = out.astype(float)
    assert stats.kstest(numbers, "norm").pvalue > 1e-4
    assert (numbers**4).mean() == pytest.approx(3, abs=5 * (96 / len(numbers)) ** 0.5)
    for beyond in (3.0, 4.0):
        assert stats.binomtest(int((np.abs(numbers) > beyond).sum()), len(numbers), 2 * stats.norm.sf(beyond)).pvalue > 1e-4
    for lag in (1, 2, LANES, 512, 1024):
        assert abs(np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]) < 5 / len(numbers) ** 0.5
        assert abs(np.corrcoef(numbers[:-lag] ** 2, numbers[lag:] ** 2)[0, 1]) < 5 / len(numbers) ** 0.5


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1023, 1024, 1025])
def test_noise_fills_exactly_the_given_array(size):
    out = np.full(size + 1, np.float32(7.0))
    fill_noise(lanes(), out[:size], np.float32(1.0))
    assert out[size] == 7.0
    assert (out[:size] != 7.0).all()
