"""Validators of enumerations and words."""

import pytest

from lidp import InvalidArgument, Neighbours, checks


@pytest.mark.parametrize("value", ["replace-one", Neighbours.REPLACE_ONE])
def test_member_returns_the_member_of_a_value(value):
    assert checks.member(Neighbours, neighbours=value) is Neighbours.REPLACE_ONE


@pytest.mark.parametrize("value", ["other", "", None, 3, ["add-remove"]])
def test_member_refuses_other_values_by_name(value):
    with pytest.raises(InvalidArgument, match="neighbours must be one of add-remove, replace-one, got"):
        checks.member(Neighbours, neighbours=value)


def test_one_of_refuses_other_words():
    assert checks.one_of(("a", "b"), word="b") == "b"
    with pytest.raises(InvalidArgument, match="word must be one of a, b, got 'c'"):
        checks.one_of(("a", "b"), word="c")
