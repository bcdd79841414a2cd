"""Clusters of binary records: they are found, large enough, and the same on every machine."""

import numpy as np
import pytest

from lidp.data.clusters import cluster
from lidp.errors import InvalidData


def separate_groups(sizes, features=60):
    """Return records of groups that buy different items, and the group of each record."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    typical = np.arange(features) // (features // len(sizes)) == groups[:, None]
    return (rng.random(typical.shape) < np.where(typical, 0.9, 0.02)).astype(np.uint8), groups


def test_cluster_finds_separate_groups_and_numbers_them_by_size():
    records, groups = separate_groups((20, 50, 30))
    labels = cluster(records, 3)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, np.array([2, 0, 1])[groups])


def test_cluster_agrees_with_distances_in_exact_fractions():
    """Each record is in the cluster whose mean is nearest, as Lloyd's algorithm ends."""
    from fractions import Fraction

    records, _ = separate_groups((12, 14, 16), features=12)
    labels = cluster(records, 5)
    sums = [records[labels == k].sum(axis=0).tolist() for k in range(5)]
    sizes = np.bincount(labels).tolist()
    for record, label in zip(records.tolist(), labels, strict=True):
        distances = [
            sum((x - Fraction(total, size)) ** 2 for x, total in zip(record, row, strict=True))
            for row, size in zip(sums, sizes, strict=True)
        ]
        assert distances[label] == min(distances)


def test_cluster_splits_a_large_cluster_where_one_would_be_too_small():
    records, _ = separate_groups((200, 200), features=120)
    records[:60] = 0
    records[0] = 1  # a record far from all others
    seeds = [seed for seed in range(30) if np.bincount(cluster(records, 4, seed=seed)).min() == 1]
    assert seeds
    assert all(np.bincount(cluster(records, 4, seed=seed, smallest=20)).min() >= 20 for seed in seeds)


def test_cluster_refuses_more_clusters_than_there_are_different_records():
    with pytest.raises(InvalidData, match="only 2 different values"):
        cluster(np.eye(2, dtype=np.uint8)[[0, 1, 1, 1]], 3)


def test_cluster_refuses_when_clusters_stay_too_small():
    with pytest.raises(InvalidData, match="no 3 clusters of at least 30"):
        cluster(separate_groups((40, 40))[0], 3, smallest=30)
