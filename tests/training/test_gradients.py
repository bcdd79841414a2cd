"""Gradient canaries with random signs: their numbers, and scores that never store them."""

import numpy as np
import pytest
from scipy import stats

from lidp.training.gradients import RandomSigns, signed_gradient, signed_products
from lidp.training.scores import GradientScore, SignScore

DIMENSION = 1_234


def some(count=9, radius=2.0, seed=0):
    canaries = RandomSigns(DIMENSION, radius).draw(np.random.default_rng(seed), count)
    return canaries, np.array([signed_gradient(canary, DIMENSION) for canary in canaries])


def test_random_signs_have_the_stated_length_and_fair_signs():
    canaries, dense = some(200)
    np.testing.assert_allclose(np.linalg.norm(dense.astype(float), axis=1), 2.0, rtol=1e-6)
    assert stats.binomtest(int((dense > 0).sum()), dense.size).pvalue > 1e-4
    assert len(np.unique(canaries, axis=0)) == len(np.unique(dense, axis=0)) == 200


def test_overlaps_of_random_signs_have_the_variance_of_random_directions():
    _, dense = some(100, radius=1.0)
    overlaps = (dense.astype(float) @ dense.T)[np.triu_indices(100, 1)]
    assert abs(overlaps.mean()) < 5 / (DIMENSION * len(overlaps)) ** 0.5
    assert overlaps.var() * DIMENSION == pytest.approx(1.0, abs=5 * (2 / len(overlaps)) ** 0.5)


def test_draws_depend_on_the_stream_only():
    np.testing.assert_array_equal(some(seed=5)[1], some(seed=5)[1])
    assert (some(seed=5)[1] != some(seed=6)[1]).any(axis=1).all()


def test_products_match_those_of_the_numbers_of_canaries():
    canaries, dense = some()
    vector = np.random.default_rng(1).standard_normal(DIMENSION)
    np.testing.assert_allclose(signed_products(canaries, vector), dense @ vector, atol=1e-5)


def test_sign_scores_equal_gradient_scores_of_the_same_numbers():
    canaries, dense = some()
    rng = np.random.default_rng(2)
    theta, prepared = rng.standard_normal(DIMENSION).astype(np.float32), {"centre": rng.standard_normal(DIMENSION)}
    for centred in (True, False):
        signs, gradients = SignScore(DIMENSION, centred), GradientScore(centred)
        expected = gradients.many(theta, dense, prepared)
        np.testing.assert_allclose(signs.many(theta, canaries, prepared), expected, atol=1e-4)
        # one by one gives the same bits, so that scores do not show how many there are
        assert [signs(theta, canary, prepared) for canary in canaries] == list(signs.many(theta, canaries, prepared))
    np.testing.assert_allclose(
        signs.overlaps(canaries[0], canaries[1:]), gradients.overlaps(dense[0], dense[1:]), atol=1e-5
    )
