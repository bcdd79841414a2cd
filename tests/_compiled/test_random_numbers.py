"""Compiled random numbers have the laws that scipy computes."""

import numpy as np
import pytest
from numba import njit
from scipy import stats

from lidp._compiled.random_numbers import chi_square, fill_normal, next_word, normal, uniform
from lidp.streams import Purpose, trial_words

SIZE = 1_000_000


def state(trial=0):
    return trial_words(3, range(trial, trial + 1), purpose=Purpose.NOISE)[0].copy()


def normals(size=SIZE, trial=0):
    out = np.empty(size, np.float32)
    fill_normal(state(trial), out)
    return out.astype(float)


@njit
def repeat_uniform(state, out):
    for i in range(len(out)):
        out[i] = uniform(state)


@njit
def repeat_normal(state, out):
    for i in range(len(out)):
        out[i] = normal(state)


@njit
def repeat_chi_square(state, degrees, out):
    for i in range(len(out)):
        out[i] = chi_square(state, degrees)


def repeat(function, *arguments, size=200_000):
    out = np.empty(size)
    function(state(), *arguments, out)
    return out


def test_words_are_those_of_the_published_algorithm():
    """The reference computes xoshiro256++ from the state (1, 2, 3, 4) with Python integers."""
    words = np.array([1, 2, 3, 4], np.uint64)
    mask, s = 2**64 - 1, [1, 2, 3, 4]

    def rotated(x, k):
        return (x << k | x >> (64 - k)) & mask

    for _ in range(1000):
        expected = (rotated((s[0] + s[3]) & mask, 23) + s[0]) & mask
        shifted = s[1] << 17 & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotated(s[3], 45)
        assert int(next_word(words)) == expected


def test_normals_have_the_normal_law():
    values = normals()
    assert stats.kstest(values, "norm").pvalue > 1e-4
    assert stats.kstest(np.abs(values), "halfnorm").pvalue > 1e-4
    assert values.mean() == pytest.approx(0, abs=4 / SIZE**0.5)
    assert values.var() == pytest.approx(1, abs=4 * (2 / SIZE) ** 0.5)
    assert (values**4).mean() == pytest.approx(3, abs=4 * (96 / SIZE) ** 0.5)


def test_the_tail_of_normals_has_the_normal_law():
    """Beyond the edge of the last layer, another method draws them."""
    values = np.abs(normals(10 * SIZE))
    beyond = values[values > 3.442619855899]
    expected = 2 * stats.norm.sf(3.442619855899)
    assert stats.binomtest(len(beyond), 10 * SIZE, expected).pvalue > 1e-4
    tail = stats.norm.sf(beyond) / stats.norm.sf(3.442619855899)
    assert stats.kstest(tail, "uniform").pvalue > 1e-4
    assert values.max() > 4.5


def test_normals_are_independent_of_one_another_and_of_other_trials():
    values = normals()
    for lag in (1, 2, 3, 64):
        for power in (1, 2):
            a, b = values[:-lag] ** power, values[lag:] ** power
            assert abs(np.corrcoef(a, b)[0, 1]) < 5 / SIZE**0.5
    assert abs(np.corrcoef(values, normals(trial=1))[0, 1]) < 5 / SIZE**0.5
    # The sign is independent of the size, and the size of the layer that its low bits choose.
    assert abs(np.corrcoef(np.sign(values), np.abs(values))[0, 1]) < 5 / SIZE**0.5


def test_first_normals_of_all_trials_have_the_normal_law():
    firsts = np.array([normals(2, trial) for trial in range(20_000)])
    assert stats.kstest(firsts[:, 0], "norm").pvalue > 1e-4
    assert abs(np.corrcoef(firsts[:-1, 0], firsts[1:, 0])[0, 1]) < 5 / 20_000**0.5


def test_single_draws_have_their_laws():
    assert stats.kstest(repeat(repeat_normal), "norm").pvalue > 1e-4
    uniforms = repeat(repeat_uniform)
    assert stats.kstest(uniforms, "uniform").pvalue > 1e-4
    assert uniforms.min() > 0


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 99, 9_999, 10**6])
def test_chi_squares_have_their_law(degrees):
    values = repeat(repeat_chi_square, degrees)
    assert stats.kstest(values, stats.chi2(degrees).cdf).pvalue > 1e-4


def test_zero_degrees_of_freedom_give_zero():
    assert chi_square(state(), 0) == 0


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_filling_does_not_write_beyond_the_array(size):
    out = np.full(size + 1, np.float32(7.0))
    fill_normal(state(), out[:size])
    assert out[size] == 7.0
    assert (out[:size] != 7.0).all()
