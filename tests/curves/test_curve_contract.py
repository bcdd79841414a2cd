"""What every privacy curve must do, whatever its kind."""

import json
import math

import numpy as np
import pytest

from lidp import Claim
from lidp.curves import (
    EventCurve,
    GaussianCurve,
    LaplaceCurve,
    PointCurve,
    ZeroConcentratedCurve,
    curve_from_json,
)

SAMPLED = {
    "event": "SelfComposedDpEvent",
    "count": 30,
    "of": {
        "event": "PoissonSampledDpEvent",
        "sampling_probability": 0.1,
        "of": {"event": "GaussianDpEvent", "noise_multiplier": 0.8},
    },
}
CURVES = {
    "gaussian": GaussianCurve(0.5),
    "gaussian, tiny": GaussianCurve(1e-9),
    "gaussian, large": GaussianCurve(12.0),
    "laplace": LaplaceCurve(0.7),
    "laplace, much noise": LaplaceCurve(1e6),
    "zcdp": ZeroConcentratedCurve(0.3),
    "zcdp, tiny": ZeroConcentratedCurve(1e-8),
    "zcdp, large": ZeroConcentratedCurve(30.0),
    "point": PointCurve(1.0, 1e-5),
    "point, pure": PointCurve(0.2, 0.0),
    "point, large delta": PointCurve(1.0, 0.2),
    "event": EventCurve(json.dumps(SAMPLED)),
    "event, replace one": EventCurve(json.dumps(SAMPLED), "replace-one"),
}
EPSILONS = np.concatenate([[0.0], np.geomspace(1e-12, 1000.0, 200)])

every_curve = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


@every_curve
def test_values_are_probabilities_that_do_not_rise(curve):
    for values in curve.both(EPSILONS):
        assert ((values >= 0) & (values <= 1)).all()
        assert (np.diff(values) <= 1e-7 * values[:-1]).all()  # but for what is added against rounding errors


@every_curve
def test_values_fall_as_the_noise_grows(curve):
    for ratio in (0.8, 1.05, 2.0):
        less, more = sorted((1.0, ratio))
        for above, below in zip(curve.with_noise(less).both(EPSILONS), curve.with_noise(more).both(EPSILONS), strict=True):
            assert (below <= above * (1 + 1e-6) + 1e-9).all()


@every_curve
def test_slope_in_the_odds_is_at_least_minus_one(curve):
    """As a function of e^e, the supremum of P(R) - e^e·Q(R) falls by Q(R) ≤ 1 per unit."""
    for values in curve.both(EPSILONS):
        odds = np.exp(np.minimum(EPSILONS, 600.0))
        inner = EPSILONS < 600
        slopes = np.diff(values[inner]) / np.diff(odds[inner])
        assert (slopes >= -1 - 1e-6).all()


@every_curve
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01, 0.3])
def test_epsilon_is_rounded_up(curve, delta):
    epsilon = curve.epsilon(delta)
    if math.isinf(epsilon):
        assert curve.forward(np.array([500.0])) > delta
        return
    rounded_up = 1e-11 if isinstance(curve, PointCurve) else 0.0  # a point states its ε exactly as it was claimed
    assert np.maximum(*curve.both(np.array([epsilon])))[0] <= delta * (1 + rounded_up)
    if epsilon > 1e-6:
        assert np.maximum(*curve.both(np.array([epsilon * (1 - 1e-6)])))[0] > delta * (1 - 1e-6)


@every_curve
def test_scale_and_rungs_are_finite_and_in_order(curve):
    rungs = curve.rungs()
    assert 0 < curve.scale <= 40
    assert np.isfinite(rungs).all()
    assert (np.diff(rungs) > 0).all()


@every_curve
def test_json_makes_an_equal_curve(curve):
    again = curve_from_json(json.loads(json.dumps(curve.to_json())))
    assert again == curve
    assert hash(again) == hash(curve)
    assert again.forward(EPSILONS[:50]).tolist() == curve.forward(EPSILONS[:50]).tolist()
    assert curve.with_noise(2.0) != curve
    assert curve.kind == curve.to_json()["kind"]


@every_curve
def test_words_are_one_line(curve):
    name, noise = curve.describe_noise()
    assert str(curve) == curve.describe()
    assert "\n" not in name + curve.describe()
    assert noise > 0


@every_curve
def test_a_claim_of_the_curve_round_trips(curve):
    claim = Claim.of_curve(curve, delta=0.25, neighbours=getattr(curve, "neighbours", "add-remove"))
    assert Claim(**json.loads(json.dumps(claim.to_dict()))) == claim
    assert claim.point.curve is None
    assert claim.whole_curve == curve
    assert "\n" not in str(claim)


def test_events_that_say_the_same_are_equal():
    one = EventCurve('{"event": "GaussianDpEvent", "noise_multiplier": 1}')
    two = EventCurve('{"noise_multiplier": 1.0, "event": "GaussianDpEvent"}')
    assert one == two
    assert len({one, two}) == 1
