import json
from dataclasses import dataclass

import numpy as np
import pytest

from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve, PointCurve, ZeroConcentratedCurve
from lidp.errors import InvalidArgument
from lidp.stats.curve_family import CLAIMED, NOISE_RATIOS, family_of

SAMPLED = {
    "event": "SelfComposedDpEvent",
    "count": 30,
    "of": {
        "event": "PoissonSampledDpEvent",
        "sampling_probability": 0.1,
        "of": {"event": "GaussianDpEvent", "noise_multiplier": 0.8},
    },
}
RESPONSE = {"event": "RandomizedResponseDpEvent", "noise_parameter": 0.5, "num_buckets": 2}
CURVES = {
    "gaussian": (GaussianCurve(0.5), 1e-5),
    "gaussian, little noise": (GaussianCurve(12.0), 1e-5),
    "gaussian, much noise": (GaussianCurve(1e-10), 1e-12),
    "laplace": (LaplaceCurve(0.5), 0.0),
    "laplace, delta": (LaplaceCurve(0.5), 1e-3),
    "zcdp": (ZeroConcentratedCurve(0.5), 1e-5),
    "point": (PointCurve(2.0, 1e-5), 1e-5),
    "event": (EventCurve(json.dumps(SAMPLED)), 1e-5),
}


@pytest.mark.slow
@pytest.mark.parametrize(("curve", "delta"), CURVES.values(), ids=CURVES)
def test_members_run_from_the_most_to_the_least_private_one(curve, delta):
    """The fixed sequence of tests relies on it: what is below a curve with more noise is below one with less."""
    family = family_of(curve, delta)
    assert (np.diff(family.noise) < 0).all()
    assert (np.diff(family.epsilons) >= -1e-9).all()
    for member, other in zip(family.curves, family.curves[1:], strict=False):
        at = np.concatenate([family.rungs[0], family.rungs[-1]])
        for more_noise, less_noise in zip(member.both(at), other.both(at), strict=True):
            assert (more_noise <= less_noise * (1 + 1e-6) + 1e-9).all()


@pytest.mark.parametrize(("curve", "delta"), CURVES.values(), ids=CURVES)
def test_the_claim_itself_is_a_member(curve, delta):
    family = family_of(curve, delta)
    assert family.noise[family.claimed] == CLAIMED
    assert family.curves[family.claimed] == curve
    assert family.epsilons[family.claimed] == curve.epsilon(delta)
    assert len(family) == len(family.curves) == len(family.rungs) == len(family.forward)


@pytest.mark.parametrize(("curve", "delta"), CURVES.values(), ids=CURVES)
def test_values_are_those_of_each_member_at_its_rungs(curve, delta):
    family = family_of(curve, delta)
    for row in (0, family.claimed, len(family) - 1):
        forward, backward = family.curves[row].both(family.rungs[row])
        assert (family.forward[row] == forward).all()
        assert (family.backward[row] == backward).all()


def test_noise_is_bounded_to_two_percent_near_the_claim():
    ratios = np.array(NOISE_RATIOS)
    near = ratios[(ratios > 0.82) & (ratios < 1.22)]
    assert near[:-1] / near[1:] == pytest.approx(np.exp(0.02))


def test_curve_without_noise_to_scale_is_a_family_of_its_own():
    curve = EventCurve(json.dumps(RESPONSE), "replace-one")
    assert family_of(curve, 1e-5).curves == (curve,)


def test_members_that_promise_nothing_are_left_out():
    assert family_of(GaussianCurve(27.0), 1e-5).epsilons.max() < 1000
    assert family_of(GaussianCurve(0.5), 1e-5).epsilons.max() <= 4 * 1.993 + 20


@pytest.mark.parametrize(("curve", "delta"), [(GaussianCurve(0.5), 0.0), (PointCurve(1.0, 1e-3), 1e-5)])
def test_delta_without_a_finite_epsilon_is_refused(curve, delta):
    with pytest.raises(InvalidArgument, match="no finite ε"):
        family_of(curve, delta)


@dataclass(frozen=True)
class Careless(GaussianCurve):
    """A curve of somebody else, whose values were not rounded up to 0."""

    at_largest: float = 0.0

    def backward(self, epsilons):
        return np.where(epsilons > 1, self.at_largest, self.forward(epsilons))


@pytest.mark.parametrize("value", [-2e-12, -1.0, float("nan")])
def test_values_that_are_no_probabilities_are_refused(value):
    """A negative value, as Fourier transforms leave them, would make bets free of charge."""
    with pytest.raises(InvalidArgument, match="between 0 and 1"):
        family_of(Careless(0.5, value), 1e-5)
