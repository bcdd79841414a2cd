"""The curve wager together with a count of guesses. Coverage is in ``test_one_run_curves_coverage``."""

import numpy as np
import pytest

from lidp import InvalidArgument, MethodNotApplicable, OneRunFDP, RankGuesses, Scores
from lidp.curves import GaussianCurve
from lidp.epsilon_bound import EpsilonBound, Guarantee, Hypothesis
from lidp.stats.curve_wager import CurveWager
from lidp.stats.curve_wager_with_guesses import CurveWagerWithGuesses
from tests.stats.curve_nulls import arms_of, coins_of, gaussian_scores

CURVE = GaussianCurve(0.5)
OPTIONS = {"delta": 1e-5, "failure_probability": 0.05}


def draw(mu, trials=2, canaries=1500, seed=0):
    return coins_of(gaussian_scores(mu), trials, canaries)(np.random.default_rng(seed))


@pytest.mark.parametrize("mu", [0.0, 0.5, 0.9, 1.5])
def test_bound_is_the_better_one_of_two_at_half_the_failure_probability(mu):
    guesses = RankGuesses(0.1)
    half = {"delta": 1e-5, "failure_probability": 0.025}
    for seed in range(3):
        scores = draw(mu, seed=seed)
        bound = CurveWagerWithGuesses(CURVE, guesses).bound(scores, **OPTIONS)
        parts = [CurveWager(CURVE).bound(scores, **half), OneRunFDP(guesses, curve=CURVE).bound(scores, **half)]
        assert bound.epsilon == max(part.epsilon for part in parts)
        assert (bound.fell_at is None) == all(part.fell_at is None for part in parts)
        noise = [part.effective_noise for part in parts if part.effective_noise is not None]
        assert bound.effective_noise == min(noise, default=None)


def test_bound_says_what_was_tested():
    bound = CurveWagerWithGuesses(CURVE).bound(draw(1.5), **OPTIONS)
    assert bound.fell_at == bound.trials == 2
    assert bound.effective_noise < 1
    assert (bound.hypothesis, bound.curve, bound.guarantee) == (Hypothesis.CURVE, CURVE, Guarantee.FINITE_SAMPLE)
    assert bound.failure_probability == 0.05
    assert bound.path == ()
    assert set(CurveWagerWithGuesses(CURVE).describe_rates(bound)) == set(bound.rates)
    assert EpsilonBound.from_json(bound.to_json()) == bound


def test_true_claim_stands():
    bound = CurveWagerWithGuesses(CURVE).bound(draw(0.5), **OPTIONS)
    assert bound.fell_at is None


def test_trials_that_were_stopped_early_are_refused():
    method = CurveWagerWithGuesses(CURVE)
    assert not method.anytime
    with pytest.raises(MethodNotApplicable, match="not anytime-valid"):
        method.bound(draw(1.5).stopped(), **OPTIONS)


def test_arms_are_refused():
    scores = arms_of(gaussian_scores(1.0), 5, 5)(np.random.default_rng(0))
    with pytest.raises(MethodNotApplicable, match="no coins"):
        CurveWagerWithGuesses(CURVE).bound(scores, **OPTIONS)


def test_sequential_scores_are_refused():
    values, coins = draw(1.0, canaries=50).flips()
    with pytest.raises(MethodNotApplicable, match="sequential"):
        CurveWagerWithGuesses(CURVE).bound(Scores(scores=values, coins=coins, sequential=True), **OPTIONS)


@pytest.mark.parametrize("options", [{"curve": None}, {"curve": CURVE, "log_odds": 1}, {"curve": CURVE, "direction": "up"}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(InvalidArgument, match="curve|log_odds|direction"):
        CurveWagerWithGuesses(**options)
