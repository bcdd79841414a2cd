"""Calibrated noise is never too small, and hardly larger than necessary."""

import math

import pytest

from lidp import InvalidArgument, Neighbours
from lidp.curves.gaussian import gaussian_epsilon, sigma_for
from lidp.training import Accountant, calibrate, epsilon_of_noise

SCHEDULE = {"delta": 1e-5, "rate": 0.02, "steps": 500}


@pytest.mark.slow_after_first
@pytest.mark.parametrize("accountant", list(Accountant))
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_calibrated_noise_gives_the_requested_epsilon_and_hardly_less(accountant, epsilon):
    calibration = calibrate(epsilon, accountant=accountant, **SCHEDULE)
    assert 0.995 * epsilon <= calibration.epsilon <= epsilon
    assert epsilon_of_noise(calibration.sigma, accountant=accountant, **SCHEDULE) == calibration.epsilon
    assert epsilon_of_noise(0.98 * calibration.sigma, accountant=accountant, **SCHEDULE) > epsilon


def test_renyi_accounting_requires_more_noise():
    assert calibrate(2.0, accountant="rdp", **SCHEDULE).sigma > calibrate(2.0, **SCHEDULE).sigma


def test_one_full_batch_is_the_gaussian_mechanism():
    """At sampling rate 1, one step has the exact Gaussian curve."""
    assert epsilon_of_noise(2.0, delta=1e-5, rate=1.0, steps=1) == pytest.approx(gaussian_epsilon(0.5, 1e-5), rel=1e-3)
    assert calibrate(1.0, delta=1e-5, rate=1.0, steps=1).sigma == pytest.approx(sigma_for(1.0, 1e-5), rel=2e-3)


def test_calibration_under_replace_one_requires_more_noise():
    calibration = calibrate(2.0, neighbours=Neighbours.REPLACE_ONE, accountant="rdp", **SCHEDULE)
    assert calibration.sigma > calibrate(2.0, accountant="rdp", **SCHEDULE).sigma
    # (1, δ / (1 + e)) for add/remove suffices, by the group property.
    smaller = {**SCHEDULE, "delta": 1e-5 / (1 + 2.71829)}
    assert epsilon_of_noise(calibration.sigma, accountant="rdp", **smaller) == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("sigma", [0.9, 1.7])
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_epsilon_under_replace_one_follows_from_add_remove(sigma, delta):
    """(ε, δ) follows if (ε/2, δ / (1 + e^(ε/2))) holds under add/remove, exactly and not up to the tolerance of a search."""
    settings = {"rate": 0.02, "steps": 500, "accountant": "rdp"}
    half = epsilon_of_noise(sigma, delta=delta, neighbours=Neighbours.REPLACE_ONE, **settings) / 2
    assert epsilon_of_noise(sigma, delta=delta / (1 + math.exp(half)), **settings) <= half
    slightly_less = half * (1 - 1e-4)
    assert epsilon_of_noise(sigma, delta=delta / (1 + math.exp(slightly_less)), **settings) > slightly_less


def test_calibration_survives_first_guesses_of_infinite_epsilon():
    """The ε of the first guesses exceeds the range of floats."""
    calibration = calibrate(2.0, delta=1e-5, rate=1.0, steps=300, accountant="rdp", neighbours=Neighbours.REPLACE_ONE)
    assert 1.99 < calibration.epsilon <= 2.0
    settings = {"delta": 1e-5, "rate": 1.0, "steps": 300, "neighbours": Neighbours.REPLACE_ONE}
    assert epsilon_of_noise(0.1, accountant="rdp", **settings) == math.inf


def test_epsilon_grows_with_rate_steps_and_smaller_noise_or_delta():
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
        ({"accountant": "guess"}, "accountant must be one of pld, rdp, got 'guess'"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    with pytest.raises(InvalidArgument, match=message):
        calibrate(1.0, **{**SCHEDULE, **options})


def test_calibrating_an_epsilon_that_needs_no_noise_is_refused():
    with pytest.raises(InvalidArgument, match="next to no noise"):
        calibrate(1e12, delta=0.9, rate=1e-6, steps=1, accountant="rdp")


@pytest.mark.slow_after_first
@pytest.mark.parametrize("accountant", list(Accountant))
@pytest.mark.parametrize("epsilon", [1e-9, 1e-12])
def test_calibration_ends_where_epsilon_falls_by_a_step(accountant, epsilon):
    """By both accountants, ε falls from above these values to exactly 0."""
    settings = {"delta": 1e-5, "rate": 0.4, "steps": 3, "accountant": accountant}
    sigma = calibrate(epsilon, **settings).sigma
    assert epsilon_of_noise(sigma, **settings) == 0
    assert epsilon_of_noise(sigma * 0.9, **settings) > epsilon


def test_a_delta_that_the_accountant_cannot_resolve_is_refused():
    """The exact accountant counts the tails that it cuts off as infinite loss: more than such a δ."""
    settings = {"delta": 1e-300, "rate": 0.4, "steps": 3}
    with pytest.raises(InvalidArgument, match="pld cannot account for ε = 1 at δ = 1e-300.*choose the accountant rdp"):
        calibrate(1.0, **settings)
    assert 0.99 < calibrate(1.0, accountant="rdp", **settings).epsilon <= 1.0
