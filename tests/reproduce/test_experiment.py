"""Findings hold within their limits; seeds depend on settings only."""

from lidp.reproduce.experiment import Finding, key_of, seed_of


def test_cells_with_equal_settings_have_the_same_key_and_seed():
    a, b = {"x": 1, "y": 2}, {"y": 2, "x": 1}
    assert (key_of(a), seed_of(a)) == (key_of(b), seed_of(b))
    assert seed_of(a) != seed_of({"x": 1, "y": 3})
    assert key_of(a) != key_of({"x": 1, "y": 3})


def test_finding_holds_within_its_limits():
    assert Finding("", 0.68, 0.67, tolerance=0.03).holds is True
    assert Finding("", 0.71, 0.67, tolerance=0.03).holds is False
    assert Finding("", 0.71, 0.67).holds is None
    assert Finding("", 5, at_least=4, at_most=6).holds is True
    assert Finding("", 5, at_least=6).holds is False
    assert Finding("", None).holds is None
    assert Finding("", None, wanted=True).holds is False
