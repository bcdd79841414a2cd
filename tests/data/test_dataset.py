"""Data sets check their arrays."""

import numpy as np
import pytest

from lidp.data import Dataset, synthetic_purchases
from lidp.errors import InvalidData


def test_first_refuses_more_examples_than_there_are():
    with pytest.raises(InvalidData, match="has 30 training examples, 31 were requested"):
        synthetic_purchases(30, 10, classes=3).first(31)


def test_different_numbers_of_features_are_refused():
    x, y = np.zeros((4, 3), np.float32), np.zeros(4, np.int64)
    with pytest.raises(InvalidData, match="but test examples 2"):
        Dataset("d", x, y, x[:, :2], y, 2)
