"""Names that somebody may have meant."""

from lidp._runtime.suggestions import did_you_mean


def test_the_most_similar_name_is_suggested():
    assert did_you_mean("targt", ["target", "noisy_sum", "numpy"]) == "; did you mean target?"


def test_nothing_similar_is_no_suggestion():
    assert did_you_mean("xyz", ["target", "noisy_sum"]) == ""
    assert did_you_mean("xyz", []) == ""
