"""Calibration: never too little noise, hardly too much."""

import math

import pytest

from lidp import InvalidArgument, Neighbours
from lidp.stats.gaussian_curve import gaussian_epsilon, sigma_for
from lidp.training import Accountant, calibrate, epsilon_of_noise

SCHEDULE = {"delta": 1e-5, "rate": 0.02, "steps": 500}


@pytest.mark.parametrize("accountant", list(Accountant))
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_noise_buys_what_is_asked_and_hardly_more(accountant, epsilon):
    found = calibrate(epsilon, accountant=accountant, **SCHEDULE)
    assert 0.995 * epsilon <= found.epsilon <= epsilon
    assert epsilon_of_noise(found.sigma, accountant=accountant, **SCHEDULE) == found.epsilon
    assert epsilon_of_noise(0.98 * found.sigma, accountant=accountant, **SCHEDULE) > epsilon


def test_renyi_accounting_asks_for_more_noise():
    assert calibrate(2.0, accountant="rdp", **SCHEDULE).sigma > calibrate(2.0, **SCHEDULE).sigma


def test_one_full_batch_is_the_gaussian_mechanism():
    """Sampling rate 1 and one step: the exact curve."""
    assert epsilon_of_noise(2.0, delta=1e-5, rate=1.0, steps=1) == pytest.approx(gaussian_epsilon(0.5, 1e-5), rel=1e-3)
    assert calibrate(1.0, delta=1e-5, rate=1.0, steps=1).sigma == pytest.approx(sigma_for(1.0, 1e-5), rel=2e-3)


def test_replacing_is_removing_and_adding():
    found = calibrate(2.0, neighbours=Neighbours.REPLACE_ONE, accountant="rdp", **SCHEDULE)
    assert found.sigma > calibrate(2.0, accountant="rdp", **SCHEDULE).sigma
    # (1, δ / (1 + e)) for add/remove suffices, by the group property.
    smaller = {**SCHEDULE, "delta": 1e-5 / (1 + 2.71829)}
    assert epsilon_of_noise(found.sigma, accountant="rdp", **smaller) == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("sigma", [0.9, 1.7])
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_the_epsilon_of_replacing_follows_from_that_of_adding_and_removing(sigma, delta):
    """(ε, δ) follows if (ε/2, δ / (1 + e^(ε/2))) holds for add/remove: exactly, and not up to the tolerance of a search."""
    settings = {"rate": 0.02, "steps": 500, "accountant": "rdp"}
    half = epsilon_of_noise(sigma, delta=delta, neighbours=Neighbours.REPLACE_ONE, **settings) / 2
    assert epsilon_of_noise(sigma, delta=delta / (1 + math.exp(half)), **settings) <= half
    slightly_less = half * (1 - 1e-4)
    assert epsilon_of_noise(sigma, delta=delta / (1 + math.exp(slightly_less)), **settings) > slightly_less


def test_replacing_where_the_search_begins_with_hardly_any_noise():
    """The ε of the first guesses is beyond what numbers hold."""
    found = calibrate(2.0, delta=1e-5, rate=1.0, steps=300, accountant="rdp", neighbours=Neighbours.REPLACE_ONE)
    assert 1.99 < found.epsilon <= 2.0
    settings = {"delta": 1e-5, "rate": 1.0, "steps": 300, "neighbours": Neighbours.REPLACE_ONE}
    assert epsilon_of_noise(0.1, accountant="rdp", **settings) == math.inf


def test_more_of_anything_costs_privacy():
    base = epsilon_of_noise(1.0, accountant="rdp", **SCHEDULE)
    for more in ({"rate": 0.04}, {"steps": 1000}, {"delta": 1e-6}):
        assert epsilon_of_noise(1.0, accountant="rdp", **{**SCHEDULE, **more}) > base
    assert epsilon_of_noise(1.1, accountant="rdp", **SCHEDULE) < base


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "rate must be above 0 and at most 1"),
        ({"rate": 1.5}, "rate must be"),
        ({"steps": 0}, "steps must be"),
        ({"delta": 0.0}, "delta must lie strictly between"),
        ({"accountant": "guess"}, "accountant must be pld or rdp, got 'guess'"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(InvalidArgument, match=message):
        calibrate(1.0, **{**SCHEDULE, **options})


def test_epsilons_that_need_no_noise():
    with pytest.raises(InvalidArgument, match="next to no noise"):
        calibrate(1e12, delta=0.9, rate=1e-6, steps=1, accountant="rdp")
