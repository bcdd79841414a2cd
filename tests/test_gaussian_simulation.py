"""The dimension-free sampler against drawing d-dimensional vectors."""

import numpy as np
import pytest
from scipy import stats

from lidp import CoinFlip, InvalidArgument, LeaveOneOut, ReplaceOne
from lidp.mechanisms.gaussian import simulate_gaussian
from lidp.streams import Purpose, stream


def sphere(rng, *shape):
    vectors = rng.standard_normal(shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def naive_leave_one_out(rng, trials, canaries, held_out, sigma, dimension):
    inserted, others = np.empty((trials, canaries)), np.empty((trials, held_out))
    for t in range(trials):
        c = sphere(rng, canaries, dimension)
        inserted[t] = c @ (c.sum(axis=0) + sigma * rng.standard_normal(dimension))
        output = c[:-1].sum(axis=0) + sigma * rng.standard_normal(dimension)
        others[t] = sphere(rng, held_out, dimension) @ output
    return inserted, others


def naive_coin_flip(rng, trials, canaries, sigma, dimension):
    scores, coins = np.empty((trials, canaries)), rng.integers(0, 2, (trials, canaries))
    for t in range(trials):
        c = sphere(rng, canaries, dimension)
        scores[t] = c @ (coins[t] @ c + sigma * rng.standard_normal(dimension))
    return scores, coins


def assert_same_law(a, b):
    for view in (lambda s: s[:, 0], lambda s: s.mean(axis=1), lambda s: s[:, 0] * s[:, -1], lambda s: s.max(axis=1)):
        assert stats.ks_2samp(view(a), view(b)).pvalue > 1e-4


@pytest.mark.parametrize(("canaries", "dimension"), [(1, 1), (1, 5), (4, 3), (6, 6), (8, 3), (5, 40)])
def test_leave_one_out(canaries, dimension):
    """Small dimensions, where canaries interfere strongly, and more canaries than dimensions."""
    ours = simulate_gaussian(LeaveOneOut(canaries, 3), trials=3000, sigma=0.7, dimension=dimension, seed=1)
    naive = naive_leave_one_out(np.random.default_rng(2), 3000, canaries, 3, 0.7, dimension)
    for a, b in zip(ours.arms(), naive, strict=True):
        assert_same_law(a, b)


@pytest.mark.parametrize(("canaries", "dimension"), [(1, 2), (4, 3), (6, 6), (8, 3), (5, 40)])
def test_coin_flip(canaries, dimension):
    scores, coins = simulate_gaussian(CoinFlip(canaries), trials=3000, sigma=0.7, dimension=dimension, seed=1).flips()
    naive_scores, naive_coins = naive_coin_flip(np.random.default_rng(2), 3000, canaries, 0.7, dimension)
    assert_same_law(scores, naive_scores)
    assert_same_law(scores * (2 * coins - 1), naive_scores * (2 * naive_coins - 1))
    assert coins.mean() == pytest.approx(0.5, abs=0.03)


def test_a_trial_depends_on_seed_and_index_only():
    few = simulate_gaussian(CoinFlip(8), trials=5, sigma=1.0, seed=3).flips()
    many = simulate_gaussian(CoinFlip(8), trials=9, sigma=1.0, seed=3).flips()
    assert (few[0] == many[0][:5]).all()
    assert (few[1] == many[1][:5]).all()
    other = simulate_gaussian(CoinFlip(8), trials=5, sigma=1.0, seed=4).flips()
    assert (few[0] != other[0]).all()


def test_streams_differ_by_purpose_arm_and_trial():
    draws = {
        stream(7, trial=trial, arm=arm, purpose=purpose).random()
        for trial in range(5)
        for arm in (0, 1)
        for purpose in Purpose
    }
    assert len(draws) == 5 * 2 * len(Purpose)


def test_the_same_noise_serves_every_sigma():
    a, b, c = (simulate_gaussian(CoinFlip(4), trials=3, sigma=s, seed=5).flips()[0] for s in (1.0, 2.0, 3.0))
    assert c - b == pytest.approx(b - a)


def test_replace_one_is_not_simulated():
    with pytest.raises(InvalidArgument, match="covers LeaveOneOut and CoinFlip"):
        simulate_gaussian(ReplaceOne(2, 2), trials=1, sigma=1.0)
