"""Numbers as text are never better than the numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lidp import rounding

SIZES = st.floats(min_value=1e-12, max_value=1e12)


@given(SIZES, st.integers(1, 8))
def test_lower_bounds_are_rounded_down_and_upper_ones_up(value, places):
    below, above = float(rounding.at_least(value, places)), float(rounding.at_most(value, places))
    assert below <= value <= above
    assert above - below <= 1.001 * 10.0 ** (math.floor(math.log10(value)) + 1 - places)


@given(st.floats(0, 1e6), st.integers(0, 6))
def test_fixed_places_are_rounded_down(value, places):
    text = rounding.fixed(value, places)
    assert float(text) <= value <= float(text) + 1.001 * 10.0**-places
    assert len(text.partition(".")[2]) == places


@given(SIZES, SIZES)
def test_a_bound_above_a_claim_is_seen_above_it(value, claim):
    shown = float(rounding.at_least(value, above=claim))
    assert shown <= value
    assert (shown > claim) == (value > claim)


@given(st.floats(allow_nan=False))
def test_a_claim_is_told_as_it_was_given(value):
    assert float(rounding.exact(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.01, "2.01"), (1.8, "1.8"), (0.0, "0"), (1.02996, "1.029"), (0.29, "0.29"), (1234.56, "1234"), (1e-7, "1e-07")],
)
def test_what_is_short_stays_short(value, text):
    assert rounding.at_least(value) == text


def test_every_bound_on_the_grid_is_told_as_it_is():
    for step in range(1, 2000):
        value = float(np.round(step * 0.01, 12))
        assert float(rounding.at_least(value)) == value
        assert rounding.fixed(value, 2) == f"{value:.2f}"


def test_what_is_not_a_finite_number():
    assert rounding.at_least(math.inf) == "inf"
    assert rounding.fixed(math.inf, 2) == "inf"
    assert rounding.exact(2.0) == "2"
    assert rounding.exact(1e-5) == "1e-05"
    assert rounding.exact(1.02996123) == "1.02996123"


def test_claimed_is_short_and_never_below_the_claim():
    assert rounding.claimed(4.22594402474479) == "4.23"
    assert rounding.claimed(0.1234567) == "0.124"
    assert rounding.claimed(2.125) == "2.125"
    assert rounding.claimed(8) == "8"
    for value in (4.22594402474479, 1 / 3, 1234.56789, 1e-7 / 3):
        assert float(rounding.claimed(value)) >= value


def test_claimed_shows_all_digits_where_a_bound_lies_between():
    assert rounding.claimed(4.22594402474479, 4.227) == "4.22594402474479"
    assert rounding.claimed(4.22594402474479, 4.3) == "4.23"
    assert rounding.claimed(4.22594402474479, 4.1) == "4.23"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"),
        (0.0153, "0.015 s"),
        (59.4, "59 s"),
        (60, "1 min 0 s"),
        (3599.7, "1 h 0 min"),
        (7260, "2 h 1 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_durations_have_two_units_at_most(seconds, words):
    assert rounding.duration(seconds) == words
