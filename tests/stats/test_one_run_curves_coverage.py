"""Coverage of methods that count guesses against privacy curves, at mechanisms that have the claimed curve exactly.

A test of a valid method fails with probability 1e-4 (``assert_covers``). The bounds allow for any dependence, so independent
canaries are far from the worst case; that one is in ``test_one_run_extremal``.
"""

import json

import pytest

from lidp import OneRunFDP, RankGuesses, SplitThreshold, UnionThreshold
from lidp.curves import GaussianCurve
from lidp.curves.events import scale_noise
from lidp.stats.curve_family import family_of
from lidp.stats.curve_wager_with_guesses import CurveWagerWithGuesses
from lidp.testing.simulations import assert_breaks, assert_covers, false_alarms
from tests.stats.curve_nulls import (
    EventAlone,
    GaussianAlone,
    LaplaceAlone,
    SwappedEvent,
    coins_of,
    duplicate_scores,
    gaussian_scores,
    laplace_scores,
    mixture_scores,
    refutations,
    sampled_event,
    sampled_scores,
)

BETA = 0.05
NULLS = {
    "gaussian": (GaussianAlone(1.0), gaussian_scores(1.0)),
    "gaussian, little noise": (GaussianAlone(3.0), gaussian_scores(3.0)),
    "mixture over runs": (GaussianAlone(1.0), mixture_scores(1.0)),
    "duplicates": (GaussianAlone(1.0), duplicate_scores(1.0)),
    "laplace": (LaplaceAlone(0.7), laplace_scores(0.7)),
    "dp-sgd": (EventAlone(sampled_event()), sampled_scores()),
}
STRATEGIES = [RankGuesses(0.05), RankGuesses(1.0), UnionThreshold(8), SplitThreshold(0.5)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("null", NULLS)
def test_one_run_on_mechanisms_with_the_claimed_curve(null, strategy):
    curve, law = NULLS[null]
    alarms = refutations(OneRunFDP(strategy, curve=curve), coins_of(law, 2, 200), 200, seed=40)
    assert_covers(alarms, 200, BETA)


@pytest.mark.parametrize("null", NULLS)
def test_one_run_with_one_canary_per_run(null):
    """Runs that are independent of one another come closest to what the bound allows."""
    curve, law = NULLS[null]
    alarms = refutations(OneRunFDP(RankGuesses(0.2), curve=curve), coins_of(law, 300, 1), 200, seed=41)
    assert_covers(alarms, 200, BETA)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("null", ["gaussian", "dp-sgd", "mixture over runs"])
def test_one_run_in_single_directions(null, direction):
    curve, law = NULLS[null]
    method = OneRunFDP(RankGuesses(0.1), direction=direction, curve=curve)
    assert_covers(refutations(method, coins_of(law, 2, 200), 200, seed=42), 200, BETA)


def test_one_run_bounds_the_noise():
    """With the family: the noise that the mechanism has is not excluded, though it is not the claimed one."""
    family = family_of(GaussianCurve(0.5), 1e-5)
    true = 40  # a member with about half of the claimed noise
    method = OneRunFDP(RankGuesses(0.1), curve=GaussianCurve(0.5))
    draw = coins_of(gaussian_scores(family.curves[true].mu), 2, 500)

    def epsilon(scores):
        return method.bound(scores, delta=1e-5, failure_probability=BETA).epsilon

    assert_covers(false_alarms(epsilon, draw, family.epsilons[true], 100, seed=43), 100, BETA)


def test_exchanged_directions_break_one_run():
    event = json.dumps(scale_noise(json.loads(sampled_event()), 0.5))
    draw = coins_of(sampled_scores(0.4), 1, 4000)
    for curve, judge in ((SwappedEvent(event), assert_breaks), (EventAlone(event), assert_covers)):
        method = OneRunFDP(RankGuesses(0.02), direction="forward", curve=curve)
        judge(refutations(method, draw, 100, seed=45), 100, BETA)


@pytest.mark.parametrize("null", NULLS)
def test_wager_with_guesses_on_mechanisms_with_the_claimed_curve(null):
    curve, law = NULLS[null]
    alarms = refutations(CurveWagerWithGuesses(curve, RankGuesses(0.1)), coins_of(law, 2, 200), 200, seed=46)
    assert_covers(alarms, 200, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.05, 0.3])
@pytest.mark.parametrize("method", [OneRunFDP, CurveWagerWithGuesses], ids=lambda kind: kind.name)
@pytest.mark.parametrize(("trials", "canaries"), [(1, 1000), (2, 300), (500, 1)])
@pytest.mark.parametrize("null", NULLS)
def test_counts_at_length(null, trials, canaries, method, beta):
    curve, law = NULLS[null]
    tested = method(curve=curve, threshold=RankGuesses(0.1))
    assert_covers(refutations(tested, coins_of(law, trials, canaries), 400, seed=48, beta=beta), 400, beta)
