"""Pools of examples from which canaries are drawn."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from lidp.canaries.examples import tail_singular_vectors
from lidp.data import synthetic_purchases


def test_tail_singular_vectors_have_the_smallest_singular_values():
    x = np.random.default_rng(0).standard_normal((5_000, 12)) * np.arange(1, 13)
    vectors = tail_singular_vectors(x, 4, 3.0)
    np.testing.assert_allclose(vectors @ vectors.T, 9 * np.eye(4), atol=1e-9)
    _, _, right = np.linalg.svd(x)
    np.testing.assert_allclose(np.abs(vectors @ right[::-1][:4].T), 3 * np.eye(4), atol=1e-6)


def test_tail_singular_vectors_do_not_depend_on_the_number_of_threads():
    x = synthetic_purchases(400, 10, classes=10).x  # fewer records than features: a third of the values are equal, namely 0
    vectors = []
    for threads in (1, 4):
        with threadpool_limits(threads):
            vectors.append(tail_singular_vectors(x, 300, 10.0))
    np.testing.assert_array_equal(*vectors)


@pytest.mark.parametrize("count", [0, 13])
def test_more_vectors_than_features_are_refused(count):
    with pytest.raises(ValueError, match=f"1 to 12, the number of features, got {count}"):
        tail_singular_vectors(np.eye(12), count, 1.0)
