"""The values of ``--threshold``."""

import pytest

from lidp import CentralGrid, FixedThreshold, InvalidArgument, RankGuesses, SplitThreshold, UnionThreshold
from lidp.cli.threshold_option import parse_threshold


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("fixed:-1.5", FixedThreshold(-1.5)),
        ("split:0.25", SplitThreshold(0.25)),
        ("split:0.5,paper", SplitThreshold(0.5, CentralGrid())),
        ("union:12", UnionThreshold(12)),
        ("rank:0.1", RankGuesses(0.1)),
    ],
)
def test_a_threshold_is_parsed(text, strategy):
    assert parse_threshold(text) == strategy


@pytest.mark.parametrize(
    "text", ["", "fixed", "fixed:", "fixed:inf", "union:1.5", "union:inf", "fixed:1,paper", "split:.5,", "best:3"]
)
def test_an_invalid_threshold_is_refused(text):
    with pytest.raises(InvalidArgument):
        parse_threshold(text)
