"""Numbers of guesses that are planned from the claim."""

import numpy as np
import pytest

from lidp import Direction, InvalidArgument, MethodNotApplicable, OneRun, OneRunFDP, RankGuesses
from lidp.curves import GaussianCurve, PointCurve
from lidp.stats.curve_wager_with_guesses import CurveWagerWithGuesses
from lidp.stats.planned_guesses import PlannedGuesses
from lidp.stats.storable import from_plain, to_plain
from lidp.testing.simulations import assert_covers
from tests.stats.curve_nulls import GaussianAlone, coins_of, gaussian_scores, mixture_scores, refutations

CURVE = GaussianCurve(0.5)
OPTIONS = {"delta": 1e-5, "failure_probability": 0.05}


def draw(mu, canaries=4096):
    return coins_of(gaussian_scores(mu), 1, canaries)


def test_fraction_depends_on_the_claim_and_the_number_of_coins_only():
    bound = OneRunFDP(PlannedGuesses(), curve=CURVE)
    a, b = (bound.bound(draw(mu)(np.random.default_rng(1)), **OPTIONS).rates["guesses"] for mu in (0.0, 3.0))
    assert a == b == round(4096 * PlannedGuesses().fraction(CURVE, 4096, Direction.BOTH))


def test_one_direction_is_guessed_on_at_most_half_of_the_coins():
    for direction in (Direction.FORWARD, Direction.BACKWARD):
        assert 0 < PlannedGuesses().fraction(CURVE, 1000, direction) <= 0.5
    assert 0 < PlannedGuesses().fraction(CURVE, 1, Direction.BOTH) <= 1
    assert 0 < PlannedGuesses().fraction(PointCurve(1.0, 1e-5), 1000, Direction.BOTH) <= 1


def test_planned_fraction_is_stronger_than_a_union_and_than_others():
    """Two thirds of the claimed noise, one run of 4,096 canaries."""

    def refuted(threshold):
        return refutations(OneRunFDP(threshold, curve=CURVE), draw(0.75), 24, seed=60)

    planned = refuted(PlannedGuesses())
    assert planned >= 9
    assert planned > refuted(OneRunFDP().threshold) + 4
    assert planned > refuted(RankGuesses(0.5)) + 4


def test_half_the_noise_is_noticed_in_one_run():
    for method in (OneRunFDP(PlannedGuesses(), curve=CURVE), CurveWagerWithGuesses(CURVE)):
        assert refutations(method, draw(1.0), 5, seed=61) == 5


@pytest.mark.parametrize("law", [gaussian_scores(0.5), mixture_scores(0.5)], ids=["independent", "mixture over runs"])
def test_coverage(law):
    method = OneRunFDP(PlannedGuesses(), curve=GaussianAlone(0.5))
    assert_covers(refutations(method, coins_of(law, 2, 300), 200, seed=62), 200, 0.05)


def test_plan_without_a_claim_is_refused():
    scores = draw(1.0, 100)(np.random.default_rng(0))
    with pytest.raises(MethodNotApplicable, match="only for a claimed curve"):
        OneRunFDP(PlannedGuesses()).bound(scores, **OPTIONS)
    with pytest.raises(MethodNotApplicable, match="cannot guess by"):
        OneRun(PlannedGuesses()).bound(scores, **OPTIONS)


def test_methods_with_planned_guesses_are_stored():
    for method in (OneRunFDP(PlannedGuesses(1.25), curve=CURVE), CurveWagerWithGuesses(CURVE, log_odds=True)):
        assert from_plain(to_plain(method)) == method


@pytest.mark.parametrize("ratio", [0, 1, 0.9, float("nan"), "2x"])
def test_ratios_that_suspect_nothing_are_refused(ratio):
    with pytest.raises(InvalidArgument, match="noise_ratio"):
        PlannedGuesses(ratio)
