"""Wagers whose first runs fail, more often if a canary is in: nulls that are exactly tight."""

import numpy as np
import pytest

from lidp import CoinWager, Scores
from lidp.stats.curve_wager import CurveWager
from lidp.testing.simulations import assert_covers, false_alarms
from tests.stats.curve_nulls import GaussianAlone, refutations

LOST, TRIALS, CANARIES = 3, 8, 64


def fails(answers):
    """Return which runs fail: among the first ones, those whose answer about the first canary is "in"."""
    return (np.arange(TRIALS) < LOST) & (answers[:, 0] > 0)


def test_coin_wager_covers_responses_that_fail_instead_of_answering():
    def draw(rng):
        coins = rng.integers(0, 2, (TRIALS, CANARIES))
        answers = np.where(rng.random(coins.shape) < 1 / (1 + np.e), 1 - coins, coins) - 0.5
        return Scores(scores=answers, coins=coins, failed=fails(answers))

    def bound(scores):
        return CoinWager().bound(scores, delta=0.0, failure_probability=0.05).epsilon

    assert_covers(false_alarms(bound, draw, 1.0, 300, seed=80), 300, 0.05)


@pytest.mark.parametrize("by_canary", [False, True])
def test_curve_wager_covers_gaussian_runs_that_fail_instead_of_answering(by_canary):
    def draw(rng):
        coins = rng.integers(0, 2, (TRIALS, CANARIES))
        values = coins - 0.5 + rng.standard_normal(coins.shape)
        return Scores(scores=values, coins=coins, failed=fails(values))

    method = CurveWager(GaussianAlone(1.0), canary_by_canary=by_canary)
    assert_covers(refutations(method, draw, 200, seed=81), 200, 0.05)
