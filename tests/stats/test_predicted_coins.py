import numpy as np
import pytest
from scipy import stats

from lidp import InvalidScores, Scores
from lidp.stats.coin_predictor import CALIBRATION_SCORES
from lidp.stats.predicted_coins import PredictedCoins


def given_order(scores):
    """Return which canary comes at each position of the betting order, and the coins in that order.

    The first trials are not bet on, so a block of trials for calibration, all scores 0, comes before.
    """
    canaries = scores.canaries
    coins = np.random.default_rng(7).integers(0, 2, (CALIBRATION_SCORES, canaries))
    collected = PredictedCoins(log_odds=False)
    collected.add(Scores(scores=np.zeros(coins.shape), coins=coins))
    return collected._in_betting_order(scores)


def test_each_trial_is_bet_on_in_its_own_random_order():
    values = np.arange(20 * 50, dtype=float).reshape(20, 50)
    coins = np.random.default_rng(0).integers(0, 2, (20, 50))
    scores = Scores(scores=values, coins=coins)
    shuffled, answers = PredictedCoins(log_odds=False)._in_betting_order(scores)
    assert (np.sort(shuffled, axis=1) == values).all()
    positions = shuffled.astype(int) - 50 * np.arange(20)[:, None]
    assert len({tuple(row) for row in positions}) == 20
    assert (answers == np.take_along_axis(coins, positions, axis=1)).all()
    later, _ = given_order(scores)
    assert (later != shuffled).any()  # the order is a function of the trial's number, not of its row in the block


def test_scores_that_use_coins_and_given_log_odds_keep_their_order():
    values = np.arange(20 * 50, dtype=float).reshape(20, 50)
    coins = np.random.default_rng(0).integers(0, 2, (20, 50))
    sequential = Scores(scores=values, coins=coins, sequential=True)
    assert (PredictedCoins(log_odds=False)._in_betting_order(sequential)[0] == values).all()
    scores = Scores(scores=values, coins=coins)
    assert (PredictedCoins(log_odds=True)._in_betting_order(scores)[0] == values).all()


def test_every_betting_order_is_equally_likely():
    """4 canaries, 24 orders, 4,800 trials: a chi-square that is this large in one of 10,000 simulations."""
    coins = np.random.default_rng(0).integers(0, 2, (4800, 4))
    scores = Scores(scores=np.tile(np.arange(4.0), (4800, 1)), coins=coins)
    shuffled, _ = PredictedCoins(log_odds=False)._in_betting_order(scores)
    _, counts = np.unique(shuffled, axis=0, return_counts=True)
    assert len(counts) == 24
    assert ((counts - 200) ** 2 / 200).sum() < stats.chi2.isf(1e-4, 23)


def noisy(trials, canaries, seed=0, **options):
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, (trials, canaries))
    return Scores(scores=coins + rng.standard_normal(coins.shape), coins=coins, **options)


@pytest.mark.parametrize(("trials", "canaries", "unused"), [(70, 1, 63), (10, 8, 7), (3, 64, 0), (3, 500, 0)])
def test_trials_before_the_calibration_is_complete_are_not_returned(trials, canaries, unused):
    logits, coins = PredictedCoins(log_odds=False).add(noisy(trials, canaries))
    assert logits.shape == coins.shape == (trials - unused, canaries)


def test_sequential_scores_are_calibrated_on_trials_that_are_not_bet_on():
    """Their scores show coins of their own trial, so that the trial which completes the calibration may not be bet on."""
    logits, _ = PredictedCoins(log_odds=False).add(noisy(10, 8, sequential=True))
    assert len(logits) == 2


@pytest.mark.parametrize(("trials", "canaries"), [(10, 8), (100, 1), (2, 100)])
def test_one_by_one_returns_every_coin_as_a_trial(trials, canaries):
    coins = PredictedCoins(log_odds=False, one_by_one=True)
    logits, answers = coins.add(noisy(trials, canaries))
    assert logits.shape == answers.shape == (trials * canaries - 63, 1)
    assert coins.received == trials


def test_one_by_one_prediction_uses_no_score_of_a_later_coin():
    """Needed for independent canaries: the score of a later canary must not enter the prediction of an earlier one."""
    scores = noisy(10, 16)
    values, answers = (array.copy() for array in scores.flips())
    values[6:] *= 3.0
    answers[6:] = ~answers[6:]
    changed = Scores(scores=values, coins=answers)
    predicted = [PredictedCoins(log_odds=False, one_by_one=True).add(each)[0].ravel() for each in (scores, changed)]
    before = 6 * 16 - 63
    assert (predicted[0][:before] == predicted[1][:before]).all()
    assert (predicted[0][before:] != predicted[1][before:]).any()


def test_nothing_is_predicted_for_a_failed_run():
    failed = np.zeros(40, dtype=bool)
    failed[[0, 20, 39]] = True
    for log_odds in (False, True):
        collected = PredictedCoins(log_odds=log_odds)
        logits, _ = collected.add(noisy(40, 8, failed=failed))
        first = 40 - len(logits)
        assert (logits[20 - first] == 0).all()
        assert (logits[39 - first] == 0).all()
        assert np.isfinite(logits).all()


def test_trials_of_another_design_are_refused():
    collected = PredictedCoins(log_odds=False)
    collected.add(noisy(5, 6))
    with pytest.raises(InvalidScores, match="the run began with"):
        collected.add(noisy(5, 7))


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(("lost", "canaries"), [(1, 100), (3, 100), (12, 8)])
def test_runs_that_fail_before_any_score_leave_the_predictor_to_later_ones(lost, canaries, sequential):
    """They are returned by their numbers, as runs on which nothing is bet, and the predictor is calibrated on later scores."""
    failed = np.arange(40) < lost
    scores = noisy(40, canaries, failed=failed, sequential=sequential)
    logits, coins = PredictedCoins(log_odds=False).add(scores)
    assert len(logits) == len(PredictedCoins(log_odds=False).add(noisy(40, canaries, sequential=sequential))[0])
    scored = 40 - lost - sequential
    assert (logits[:-scored] == 0).all()
    assert np.corrcoef(logits[-scored:].ravel(), coins[-scored:].ravel())[0, 1] > 0.2
    one_by_one = PredictedCoins(log_odds=False)
    parts = [one_by_one.add(scores[row : row + 1])[0] for row in range(40)]
    assert (np.concatenate(parts) == logits).all()
