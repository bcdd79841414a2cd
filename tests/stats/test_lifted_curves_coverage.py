"""Coverage of lifted betting against privacy curves, at mechanisms that have the claimed curve exactly.

A test of a valid method fails with probability 1e-4 (``assert_covers``). A claim counts as refuted if it was at any trial: stopping
early makes no difference.
"""

import json

import numpy as np
import pytest

from lidp import LiftedBetting
from lidp.curves import GaussianCurve
from lidp.curves.events import scale_noise
from lidp.stats.curve_family import family_of
from lidp.testing.simulations import assert_breaks, assert_covers, false_alarms
from tests.stats.curve_nulls import (
    EventAlone,
    GaussianAlone,
    LaplaceAlone,
    OptimisticGaussian,
    SwappedEvent,
    arms_of,
    duplicate_arms,
    gaussian_scores,
    laplace_scores,
    mixture_scores,
    refutations,
    sampled_event,
    sampled_scores,
)

BETA = 0.05
NULLS = {
    "gaussian": (GaussianAlone(1.0), lambda n, k: arms_of(gaussian_scores(1.0), n, k)),
    "gaussian, little noise": (GaussianAlone(3.0), lambda n, k: arms_of(gaussian_scores(3.0), n, k)),
    "mixture over runs": (GaussianAlone(1.0), lambda n, k: arms_of(mixture_scores(1.0), n, k)),
    "duplicates": (GaussianAlone(1.0), lambda n, k: duplicate_arms(1.0, n, k)),
    "laplace": (LaplaceAlone(0.7), lambda n, k: arms_of(laplace_scores(0.7), n, k)),
    "dp-sgd": (EventAlone(sampled_event()), lambda n, k: arms_of(sampled_scores(), n, k)),
}


FEW_NULLS = {"gaussian", "mixture over runs", "dp-sgd"}


@pytest.mark.parametrize("null", [n if n in FEW_NULLS else pytest.param(n, marks=pytest.mark.slow) for n in NULLS])
def test_mechanisms_with_the_claimed_curve(null):
    curve, draw = NULLS[null]
    alarms = refutations(LiftedBetting(curve=curve), draw(60, 8), 100, seed=30)
    assert_covers(alarms, 100, BETA)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("null", ["gaussian", "dp-sgd"])
def test_single_directions(null, direction):
    curve, draw = NULLS[null]
    alarms = refutations(LiftedBetting(direction=direction, curve=curve), draw(60, 8), 100, seed=31)
    assert_covers(alarms, 100, BETA)


def test_bound_on_the_noise():
    """With the family: the noise that the mechanism has is not excluded, though it is not the claimed one."""
    family = family_of(GaussianCurve(0.5), 1e-5)
    true = 40  # a member with about half of the claimed noise
    draw = arms_of(gaussian_scores(family.curves[true].mu), 40, 8)

    def epsilon(scores):
        return LiftedBetting(curve=GaussianCurve(0.5)).bound(scores, delta=1e-5, failure_probability=BETA).epsilon

    assert_covers(false_alarms(epsilon, draw, family.epsilons[true], 60, seed=32), 60, BETA)


def test_optimistic_curve_breaks_coverage():
    draw = arms_of(gaussian_scores(1.0), 100, 16)
    assert_breaks(refutations(LiftedBetting(curve=OptimisticGaussian(1.0)), draw, 40, seed=33), 40, BETA)


@pytest.mark.parametrize("direction", ["forward", "both"])
def test_exchanged_directions_break_coverage(direction):
    """With sampling, h⁺ has a long tail and h⁻ has none: bets at h⁻ on what h⁺ allows win."""
    event = json.dumps(scale_noise(json.loads(sampled_event()), 0.5))
    draw = arms_of(sampled_scores(0.4), 100, 16)
    wrong = refutations(LiftedBetting(direction=direction, curve=SwappedEvent(event)), draw, 40, seed=34)
    right = refutations(LiftedBetting(direction=direction, curve=EventAlone(event)), draw, 40, seed=34)
    assert_breaks(wrong, 40, BETA)
    assert_covers(right, 40, BETA)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("null", "beta"), [*((null, 0.05) for null in NULLS), ("gaussian", 0.3), ("mixture over runs", 0.3), ("dp-sgd", 0.3)]
)
@pytest.mark.parametrize(("trials", "canaries"), [(300, 1), (60, 64)])
def test_mechanisms_with_the_claimed_curve_at_length(null, trials, canaries, beta):
    curve, draw = NULLS[null]
    alarms = refutations(LiftedBetting(curve=curve), draw(trials, canaries), 300, seed=35, beta=beta)
    assert_covers(alarms, 300, beta)


def test_laws_have_the_stated_curves():
    """The share of losses beyond a threshold, in 200,000 draws, agrees with the curve: the nulls are tight, not loose."""
    rng = np.random.default_rng(36)
    laws = {
        "gaussian": (gaussian_scores(1.0), GaussianAlone(1.0)),
        "mixture over runs": (mixture_scores(1.0), GaussianAlone(1.0)),
        "laplace": (laplace_scores(0.7), LaplaceAlone(0.7)),
        "dp-sgd": (sampled_scores(), EventAlone(sampled_event())),
    }
    for name, (law, curve) in laws.items():
        inserted = law(rng, np.ones((200_000, 1), dtype=int)).ravel()
        held_out = law(rng, np.zeros((200_000, 1), dtype=int)).ravel()
        thresholds = np.quantile(np.concatenate([inserted, held_out]), np.linspace(0.01, 0.99, 99))
        x, y = ((scores[:, None] >= thresholds).mean(axis=0) for scores in (inserted, held_out))
        for e in (0.0, 0.5):
            forward, backward = (float(values[0]) for values in curve.both(np.array([e])))
            assert (x - np.exp(e) * y).max() == pytest.approx(forward, abs=0.01), name
            assert ((1 - y) - np.exp(e) * (1 - x)).max() == pytest.approx(backward, abs=0.01), name
