"""Gradient canaries along single coordinates."""

import numpy as np
import pytest

from lidp import InvalidArgument
from lidp.canaries.coordinates import SpreadCoordinates


@pytest.mark.parametrize(
    ("sizes", "count", "expected"),
    [
        ((100, 10), 64, [54, 10]),
        ((50, 50, 50), 10, [3, 3, 4]),
        ((2, 1, 3), 6, [2, 1, 3]),
        ((7,), 3, [3]),
        ((5, 5), 1, [0, 1]),
    ],
)
def test_spread_canaries_divide_evenly_over_groups(sizes, count, expected):
    canaries = SpreadCoordinates(sizes, radius=2.0).draw(np.random.default_rng(0), count)
    groups = np.searchsorted(np.cumsum(sizes), canaries[:, 0], side="right")
    assert sorted(np.bincount(groups, minlength=len(sizes))) == sorted(expected)
    assert len(set(canaries[:, 0])) == count
    assert set(np.abs(canaries[:, 1])) == {2.0}


def test_spread_canaries_come_in_random_order():
    canaries = SpreadCoordinates((1000, 1000)).draw(np.random.default_rng(0), 400)
    first = canaries[:200, 0] < 1000
    assert 70 < first.sum() < 130


def test_more_canaries_than_coordinates_are_refused():
    with pytest.raises(InvalidArgument, match="7 canaries need as many coordinates, and there are 6"):
        SpreadCoordinates((4, 2)).draw(np.random.default_rng(0), 7)
