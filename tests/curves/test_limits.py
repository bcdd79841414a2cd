"""Events that the accountant gets wrong, or that take too long, are refused; odd claims do not spoil a store."""

import json

import dp_accounting
import numpy as np
import pytest

import lidp
from lidp import Claim, EventCurve, InvalidArgument, MethodNotApplicable, Scores

RESPONSE = dp_accounting.RandomizedResponseDpEvent(0.5, 2)


@pytest.mark.parametrize(
    "event",
    [
        dp_accounting.SelfComposedDpEvent(RESPONSE, 10),
        dp_accounting.SelfComposedDpEvent(dp_accounting.ComposedDpEvent([RESPONSE, RESPONSE]), 2),
    ],
)
def test_repeated_randomised_response_is_refused(event):
    """Regression: dp-accounting counts it once, so that a true claim was refuted every time."""
    with pytest.raises(InvalidArgument, match="only once; repeat it in a ComposedDpEvent"):
        Claim.from_event(event, neighbours="replace-one")


def test_listed_randomised_responses_add_up():
    once = Claim.from_event(RESPONSE, neighbours="replace-one", delta=1e-9).epsilon
    thrice = Claim.from_event(dp_accounting.ComposedDpEvent([RESPONSE] * 3), neighbours="replace-one", delta=1e-9)
    assert thrice.epsilon == pytest.approx(3 * once, rel=1e-2)


@pytest.mark.parametrize("canaries", [1, 16])
def test_curve_without_a_family_is_refuted_by_a_mechanism_that_reveals_all(canaries):
    claim = Claim.from_event(RESPONSE, neighbours="replace-one")
    coins = np.random.default_rng(0).integers(0, 2, (1600 // canaries, canaries))
    scores = Scores(scores=10.0 * coins, coins=coins, neighbours="replace-one")
    assert lidp.bound(scores, claim=claim).verdicts(claim)["curve"]


@pytest.mark.parametrize(
    "plain",
    [
        {
            "event": "ComposedDpEvent",
            "events": [{"event": "GaussianDpEvent", "noise_multiplier": 9 + k} for k in range(500)],
        },
        {"event": "SelfComposedDpEvent", "count": 10**7, "of": {"event": "GaussianDpEvent", "noise_multiplier": 40}},
        {
            "event": "MixtureOfGaussiansDpEvent",
            "standard_deviation": 0.05,
            "sensitivities": list(range(100)),
            "sampling_probs": [0.01] * 100,
        },
        {
            "event": "MixtureOfGaussiansDpEvent",
            "standard_deviation": 1e-308,
            "sensitivities": [1e308],
            "sampling_probs": [1.0],
        },
    ],
    ids=["many parts", "many steps", "many sensitivities", "no noise"],
)
def test_events_that_would_take_minutes_are_refused_at_once(plain):
    with pytest.raises(InvalidArgument):
        EventCurve(json.dumps(plain))


def test_steps_of_many_different_noises_are_tested_without_a_family():
    steps = [dp_accounting.GaussianDpEvent(20.0 + k) for k in range(9)]
    assert not Claim.from_event(dp_accounting.ComposedDpEvent(steps)).curve.has_family
    assert Claim.from_event(dp_accounting.ComposedDpEvent(steps[:8])).curve.has_family


def test_a_curve_for_other_neighbours_is_refused_by_every_method():
    curve = Claim.dpsgd(noise_multiplier=2, sampling_rate=1, steps=1).curve
    rng = np.random.default_rng(0)
    arms = Scores(inserted=rng.random((20, 4)), held_out=rng.random((20, 4)), neighbours="replace-one")
    flips = rng.integers(0, 2, (20, 4))
    coins = Scores(scores=rng.random((20, 4)), coins=flips, neighbours="replace-one")
    for scores, method in (
        (arms, lidp.LiftedBetting(curve=curve)),
        (coins, lidp.OneRunFDP(curve=curve)),
        (coins, lidp.CurveWager(curve)),
    ):
        with pytest.raises(MethodNotApplicable, match="the curve is for add-remove neighbours"):
            lidp.bound(scores, method, delta=1e-5)


def test_claims_of_a_very_large_epsilon_are_bounded():
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (20, 8))
    claim = Claim.laplace(scale=0.0019)
    bound = lidp.bound(Scores(scores=coins + rng.standard_normal(coins.shape), coins=coins), claim=claim)
    assert bound.verdicts(claim) == {"curve": False, "point": False}
    assert Claim.gaussian(mu=30.0).epsilon == pytest.approx(575, rel=0.01)


def test_a_method_by_name_tests_the_claimed_curve():
    rng = np.random.default_rng(0)
    scores = Scores(inserted=2 + rng.standard_normal((60, 8)), held_out=rng.standard_normal((60, 8)))
    assert lidp.bound(scores, "lifted-betting", claim=Claim.gaussian(mu=0.5)).hypothesis is lidp.Hypothesis.CURVE
