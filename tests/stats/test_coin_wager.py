import math

import numpy as np
import pytest

from lidp import CoinWager, InvalidArgument, InvalidScores, Scores
from lidp._compiled.coin_wager import wager
from lidp.stats.coin_predictor import CoinPredictor


def flips(trials=60, canaries=20, shift=1.2, seed=0):
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, (trials, canaries))
    return Scores(scores=shift * coins + rng.standard_normal(coins.shape), coins=coins)


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize(("trials", "canaries"), [(60, 20), (200, 1), (3, 500)])
def test_run_gives_the_same_bits_in_one_update_or_many(direction, trials, canaries):
    scores = flips(trials, canaries)
    method = CoinWager(direction=direction)
    whole = method.bound(scores, delta=1e-5, failure_probability=0.05)
    for cuts in ([*range(1, trials)], [1], [trials - 1]):
        run = method.begin(delta=1e-5, failure_probability=0.05)
        live = []
        for start, stop in zip([0, *cuts], [*cuts, trials], strict=True):
            live.append((stop, run.update(scores[start:stop])))
        assert run.bound() == whole
        assert all(whole.epsilon_after(seen) == epsilon for seen, epsilon in live)


def test_path_never_falls_and_ends_at_the_bound():
    result = CoinWager().bound(flips(), delta=1e-5, failure_probability=0.05)
    epsilons = [epsilon for _, epsilon in result.path]
    assert epsilons == sorted(set(epsilons))
    assert result.path[-1][1] == result.epsilon


def test_prediction_does_not_depend_on_its_coin_or_later_ones():
    scores = flips()
    values, coins = scores.flips()
    place = (30, 7)
    changed = coins.copy()
    changed[30, 7:] ^= True
    changed[31:] ^= True
    a, b = (CoinPredictor(values[:4]).predict(values, c) for c in (coins, changed))
    flat = place[0] * values.shape[1] + place[1] + 1
    assert (a.ravel()[:flat] == b.ravel()[:flat]).all()
    assert (a.ravel()[flat:] != b.ravel()[flat:]).any()


def test_later_trials_do_not_change_the_earlier_path():
    scores = flips()
    values, coins = scores.flips()
    changed = coins.copy()
    changed[40:] ^= True
    a = CoinWager().bound(scores, delta=1e-5, failure_probability=0.05)
    b = CoinWager().bound(Scores(scores=values, coins=changed), delta=1e-5, failure_probability=0.05)
    assert [a.epsilon_after(t) for t in range(41)] == [b.epsilon_after(t) for t in range(41)]


def naive_wager(logits, coins, epsilon, cap, delta, kinds):
    """The wealth at one ε after all trials, written as the docstring says it. No early stop."""
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    wealth = 1.0
    for row, answers in zip(logits, coins, strict=True):
        gain = 1.0
        for logit, coin in zip(row, answers, strict=True):
            if (logit > 0 and "in" not in kinds) or (logit < 0 and "out" not in kinds):
                continue
            a = 1 / (1 + math.exp(-abs(logit)))
            if a <= q:
                continue
            stake = min((a / q - 1) * gain, cap)
            assert stake <= math.exp(-epsilon) * gain + 1e-12
            gain += stake if coin == (logit > 0) else -stake * math.exp(epsilon)
        wealth *= gain / (1 + len(kinds) / 2 * delta * len(row) * cap)
    return wealth


@pytest.mark.parametrize("kinds", [("in", "out"), ("in",), ("out",)])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_compiled_wager_equals_a_naive_one(kinds, delta):
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 1.5, (30, 12))
    coins = rng.random((30, 12)) < 1 / (1 + np.exp(-0.5 * logits))
    epsilons = np.array([0.0, 0.3, 0.7, 1.5])
    caps = 0.4 * np.exp(-epsilons) if delta else np.full(4, 1e300)
    charges = np.log1p(len(kinds) / 2 * delta * 12 * caps) if delta else np.zeros(4)
    log_wealth = np.zeros(4)
    counts = np.zeros((2, 4), dtype=np.int64)
    # A goal out of reach: no early stop. A reach of infinity: no ε is left out.
    wager(
        logits, coins, epsilons, caps, charges, 1e9, "in" in kinds, "out" in kinds,
        log_wealth, np.zeros(4), counts[0], counts[1], 0, 1e9, np.empty((30, 2), dtype=np.int64),
    )  # fmt: skip
    for e, epsilon in enumerate(epsilons):
        expected = naive_wager(logits, coins, epsilon, caps[e], delta, kinds)
        assert log_wealth[e] == pytest.approx(math.log(expected), abs=1e-9)


def test_coins_without_a_stake_cost_as_much_as_others():
    """With a large δ, coins that nobody can predict cost wealth: their caps were granted beforehand."""
    logits = np.zeros((5, 10))
    coins = np.ones((5, 10), dtype=bool)
    log_wealth = np.zeros(1)
    charges = np.log1p(0.01 * 10 * np.ones(1))
    wager(
        logits, coins, np.array([0.5]), np.ones(1), charges, 3.0, True, True,
        log_wealth, np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64), 0, 1e9, np.empty((5, 2), dtype=np.int64),
    )  # fmt: skip
    assert log_wealth[0] == pytest.approx(-5 * charges[0])


def test_predictor_learns_scores_of_several_distributions():
    """Heavy tails, canaries remembered outright now and then, two-valued scores: one predictor for all."""
    rng = np.random.default_rng(1)
    coins = rng.integers(0, 2, (128, 64))
    noise = rng.standard_normal(coins.shape)
    cases = {
        "gaussian": (coins / math.sqrt(4.62) + noise, 0.6),
        "remembered": (5.0 * coins * (rng.random(coins.shape) < 0.2) + noise, 2.5),
        "cauchy": (coins + rng.standard_cauchy(coins.shape), 0.5),
        "two values": ((coins ^ (rng.random(coins.shape) < 0.27)).astype(float), 0.8),
        "opposite sign": (-1.0 * coins + noise, 1.0),
    }
    for name, (scores, expected) in cases.items():
        result = CoinWager().bound(Scores(scores=scores, coins=coins), delta=1e-5, failure_probability=0.05)
        assert result.epsilon > expected, name


def test_two_extreme_scores_do_not_hide_a_leak():
    rng = np.random.default_rng(2)
    coins = rng.integers(0, 2, (64, 16))
    scores = coins + rng.standard_normal(coins.shape)
    scores[3, 3], scores[40, 1] = 1e300, -1e300
    result = CoinWager().bound(Scores(scores=scores, coins=coins), delta=1e-5, failure_probability=0.05)
    assert result.epsilon > 0.3


def test_scores_near_the_largest_float_are_used():
    coins = np.random.default_rng(4).integers(0, 2, (64, 16))
    huge = Scores(scores=1.7e308 * (2.0 * coins - 1), coins=coins)
    assert CoinWager().bound(huge, delta=1e-5, failure_probability=0.05).epsilon > 3


def test_perfect_scores_give_a_large_bound():
    rng = np.random.default_rng(3)
    coins = rng.integers(0, 2, (1, 20_000))
    result = CoinWager().bound(Scores(scores=coins, coins=coins), delta=0, failure_probability=0.05)
    assert result.epsilon > 6


def test_run_refuses_trials_of_another_design():
    run = CoinWager().begin(delta=0, failure_probability=0.05)
    with pytest.raises(InvalidScores, match="no trial"):
        run.bound()
    run.update(flips(canaries=6))
    with pytest.raises(InvalidScores, match="the run began with"):
        run.update(flips(canaries=7))


@pytest.mark.parametrize("options", [{"cap": 0}, {"cap": -1}, {"resolution": 0}, {"largest": float("inf")}])
def test_invalid_parameters_are_refused(options):
    with pytest.raises(InvalidArgument):
        CoinWager(**options)


def test_predictor_does_not_learn_the_share_of_ones():
    """Scores that tell nothing, and three coins of four are 1: nothing is predicted."""
    rng = np.random.default_rng(0)
    coins = rng.random((1, 4000)) < 0.75
    for values in (
        rng.standard_normal(coins.shape),
        rng.exponential(size=coins.shape),
        1.0 * (rng.random(coins.shape) < 0.3),
    ):
        logits = CoinPredictor(values).predict(values, coins)[0, 1000:]
        assert abs(logits.mean()) < 0.1
        assert np.abs(logits).mean() < 0.2
