import numpy as np
import pytest

from lidp import Claim, CoinFlip, Direction, InvalidArgument, LeaveOneOut, Neighbours, ReplaceOne
from lidp.curves import GaussianCurve, LaplaceCurve, ZeroConcentratedCurve
from lidp.curves.gaussian import gaussian_epsilon


def test_claim_as_text():
    assert str(Claim(2, 1e-5)) == "(2, 1e-05)-DP under add-remove neighbours"


@pytest.mark.parametrize(
    ("epsilon", "delta", "names"),
    [(-1, 0, "epsilon"), (float("nan"), 0, "epsilon"), (float("inf"), 0, "epsilon"), (1, 1, "delta"), (1, -0.1, "delta")],
)
def test_claim_outside_its_range_is_refused(epsilon, delta, names):
    with pytest.raises(InvalidArgument, match=names):
        Claim(epsilon, delta)


def test_claim_that_is_not_a_number_is_refused():
    with pytest.raises(InvalidArgument, match="'two'"):
        Claim("two")  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda: Claim(1, 0, "bogus"), lambda: CoinFlip(3, "bogus")])
def test_unknown_neighbours_are_refused(make):
    with pytest.raises(InvalidArgument, match="'bogus'"):
        make()


def test_designs_have_models_per_trial_and_neighbours():
    assert (LeaveOneOut(8, 4).models_per_trial, LeaveOneOut(8, 4).neighbours) == (2, Neighbours.ADD_REMOVE)
    assert (ReplaceOne(8, 4).models_per_trial, ReplaceOne(8, 4).neighbours) == (1, Neighbours.REPLACE_ONE)
    assert (CoinFlip(8).models_per_trial, CoinFlip(8).neighbours) == (1, Neighbours.ADD_REMOVE)
    assert CoinFlip(8, "replace-one").neighbours is Neighbours.REPLACE_ONE


@pytest.mark.parametrize(
    "make",
    [lambda: LeaveOneOut(0, 1), lambda: LeaveOneOut(1, 0), lambda: CoinFlip(1.5), lambda: LeaveOneOut(float("inf"), 1)],
)
def test_design_with_an_invalid_count_is_refused(make):
    with pytest.raises(InvalidArgument, match="whole number"):
        make()


def test_direction_both_consists_of_forward_and_backward():
    assert Direction.BOTH.parts == (Direction.FORWARD, Direction.BACKWARD)
    assert Direction.FORWARD.parts == (Direction.FORWARD,)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Claim.gaussian(0), "mu must be above 0"),
        (lambda: Claim.gaussian(float("nan")), "mu must be a number, got nan"),
        (lambda: Claim.gaussian("1"), "mu must be a number, got '1'"),
        (lambda: Claim.gaussian(100), "mu must be at most 40"),
        (lambda: Claim.gaussian(1, delta=0), "no finite ε at delta=0; name a delta above 0"),
        (lambda: Claim.gaussian(1, delta=1), "delta must be at least 0 and below 1"),
        (lambda: Claim.gaussian(1, neighbours="both"), "neighbours must be one of"),
        (lambda: Claim.gaussian(35), "no finite ε at delta=1e-05; name a larger delta"),
        (lambda: Claim.laplace(-1), "scale must be above 0"),
        (lambda: Claim.zcdp(0), "rho must be above 0"),
        (lambda: Claim.zcdp(1, delta=0), "no finite ε"),
        (
            lambda: Claim.dpsgd(noise_multiplier=1, sampling_rate=1.2, steps=9),
            "sampling_rate must be above 0 and at most 1",
        ),
        (lambda: Claim.dpsgd(noise_multiplier=1, sampling_rate=0.2, steps=1.5), "steps must be a whole number"),
        (lambda: Claim.dpsgd(noise_multiplier=0, sampling_rate=0.2, steps=2), "noise_multiplier must be above 0"),
        (lambda: Claim.dpsgd(noise_multiplier=1, sampling_rate=0.2, steps=2, delta=0), "no finite ε at delta=0"),
        (lambda: Claim(1.0, 1e-5, curve="gaussian"), "curve must be a PrivacyCurve"),
        (lambda: Claim(1.0, 1e-5, curve={"kind": "gaussian"}), "kind gaussian has mu"),
        (lambda: Claim(1.0, 1e-5, curve=GaussianCurve(1.0)), "make the claim with Claim.of_curve"),
    ],
)
def test_malformed_claim_of_a_curve_is_refused_in_one_line(make, match):
    with pytest.raises(InvalidArgument, match=match) as refused:
        make()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
@pytest.mark.parametrize("mu", [0.05, 0.5, 4.0])
def test_epsilon_of_a_claimed_curve_is_rounded_up(mu, delta):
    claim = Claim.gaussian(mu, delta=delta)
    assert claim.curve.forward(np.array([claim.epsilon]))[0] <= delta
    assert claim.epsilon >= gaussian_epsilon(mu, delta)
    assert claim.epsilon == pytest.approx(gaussian_epsilon(mu, delta), rel=1e-6)


def test_claims_of_curves_state_their_epsilon():
    assert Claim.laplace(0.5).epsilon == 2.0
    assert Claim.laplace(0.5).curve == LaplaceCurve(0.5)
    assert Claim.zcdp(0.5).curve == ZeroConcentratedCurve(0.5)
    assert Claim.zcdp(0.5).epsilon > Claim.gaussian(1.0).epsilon
    every_step = Claim.dpsgd(noise_multiplier=2.0, sampling_rate=1, steps=4)
    assert every_step.epsilon == pytest.approx(Claim.gaussian(1.0).epsilon, rel=1e-3)
    assert str(every_step.curve) == "4 steps of Gaussian noise with multiplier 2"


def test_claim_of_a_curve_in_words():
    text = str(Claim.gaussian(0.5, neighbours="replace-one"))
    assert text == "the privacy curve of 0.5-GDP, which is (1.994, 1e-05)-DP under replace-one neighbours"


def test_point_of_a_claimed_curve_is_what_the_curve_promises():
    claim = Claim.gaussian(0.5)
    assert claim.point == Claim(claim.epsilon, 1e-5)
    assert Claim(2.0, 1e-5).point == Claim(2.0, 1e-5)
    assert Claim(2.0, 1e-5).whole_curve.forward(np.array([2.0])) == pytest.approx(1e-5)
