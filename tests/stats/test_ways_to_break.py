"""Ways to get a wrong bound, each written out here and caught by the same simulations that the library passes.

They guard against regressions in both directions: the library must not start to do these things, and the coverage
simulations must stay able to notice.
"""

import math

import numpy as np
import pytest

from lidp import (
    ClopperPearson,
    CoinWager,
    FixedThreshold,
    InvalidScores,
    Neighbours,
    Scores,
    SplitThreshold,
    UnionThreshold,
)
from lidp.stats.coin_predictor import CoinPredictor
from lidp.testing.simulations import assert_breaks, assert_covers, exchangeable_arms, false_alarms, randomized_response

BETA = 0.05
GRID = {"resolution": 0.25, "largest": 4.0}


def kelly(logits, coins, epsilon, delta, cap):
    """Wealth of the wager at one ε. ``cap(trial logits) -> γ per coin``; an honest one ignores its argument."""
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    log_wealth, peak = 0.0, 0.0
    for row, answers in zip(logits, coins, strict=True):
        gammas = cap(row)
        gain = 1.0
        for logit, coin, gamma in zip(row, answers, gammas, strict=True):
            sure = 1 / (1 + math.exp(-abs(logit)))
            if sure > q:
                stake = min((sure / q - 1) * gain, gamma)
                gain += stake if coin == (logit > 0) else -stake * math.exp(epsilon)
        log_wealth += math.log(max(gain, 1e-300)) - math.log1p(delta * sum(gammas))
        peak = max(peak, log_wealth)
    return peak


def rejects(logits, coins, epsilon, delta=0.0, cap=None):
    honest = cap or (lambda row: [math.exp(-epsilon)] * len(row))
    return kelly(logits, coins, epsilon, delta, honest) >= math.log(1 / BETA)


def test_caps_that_depend_on_the_output_break_the_wager():
    """A run that reveals everything with probability δ is allowed. Whoever stakes, and is charged, only then, wins."""
    epsilon, delta, trials, canaries = 0.5, 0.01, 64, 16
    draw = randomized_response(trials, canaries, epsilon, delta, whole_run=True)

    def logits_of(scores):
        values, _ = scores.flips()
        told = epsilon * (2 * values - 1)
        return np.where(abs(values) == 10, np.sign(values) * 8.0, told)

    def peeking(row):
        return [1e3 if abs(logit) == 8 else 0.0 for logit in row]

    def alarms(cap):
        def bound(scores):
            return 1.0 if rejects(logits_of(scores), scores.flips()[1], epsilon, delta, cap) else 0.0

        return false_alarms(bound, draw, epsilon, 200, seed=1)

    # With large γ only where something is known, a winning row is worth e^(K·log(1+e^-ε)) against a charge of a few units.
    def fractional(row):
        stakes, wealth = [], 1.0
        for logit in row:
            stakes.append(math.exp(-epsilon) * wealth if abs(logit) == 8 else 0.0)
            wealth += stakes[-1]
        return stakes

    broken = max(alarms(peeking), alarms(fractional))
    assert_breaks(broken, 200, BETA)
    assert broken > 60
    assert_covers(alarms(lambda row: [0.3] * len(row)), 200, BETA)


def test_predictions_from_later_coins_break_the_wager():
    """A histogram of all coins, the predicted ones included, finds structure in pure noise."""

    def draw(rng):
        coins = rng.integers(0, 2, (8, 64))
        return Scores(scores=rng.standard_normal(coins.shape), coins=coins)

    def hindsight(scores):
        values, coins = (array.ravel() for array in scores.flips())
        bins = np.searchsorted(np.quantile(values, np.arange(1, 64) / 64), values)
        inside = np.bincount(bins, weights=coins, minlength=64) + 0.5
        total = np.bincount(bins, minlength=64) + 1.0
        logits = np.log(inside / (total - inside))[bins].reshape(scores.flips()[0].shape)
        return 1.0 if rejects(logits, scores.flips()[1], 0.25) else 0.0

    def foresight(scores):
        values, coins = scores.flips()
        logits = CoinPredictor(values[:1]).predict(values, coins)
        return 1.0 if rejects(logits, coins, 0.25) else 0.0

    assert_breaks(false_alarms(hindsight, draw, 0.25, 200, seed=2), 200, BETA)
    assert_covers(false_alarms(foresight, draw, 0.25, 200, seed=2), 200, BETA)


def share_of_ones(coins):
    """Log-odds of each coin by the coins before it, scores left aside: what a predictor with a free intercept learns."""
    flat = coins.ravel().astype(float)
    ones = np.concatenate([[0.0], np.cumsum(flat)[:-1]])
    chance = (ones + 1) / (np.arange(len(flat)) + 2)
    return np.log(chance / (1 - chance)).reshape(coins.shape)


def test_matching_duplicate_canaries_by_value_breaks_the_wager():
    """Candidates that come in equal pairs: "is this value in?" is true three times in four, and needs no mechanism."""

    def draw(rng):
        coins = rng.integers(0, 2, (64, 16))
        labels = np.repeat(coins[:, ::2] | coins[:, 1::2], 2, axis=1)
        noise = rng.standard_normal(coins.shape)
        with pytest.raises(InvalidScores, match="coins must be fair"):
            Scores(scores=noise, coins=labels)
        # Trial by trial the labels look fair enough to be let in.
        options = {"neighbours": Neighbours.ADD_REMOVE}
        return Scores.join([Scores.of_block(scores=noise[[t]], coins=labels[[t]], **options) for t in range(64)])

    def learned(scores):
        return 1.0 if rejects(share_of_ones(scores.flips()[1]), scores.flips()[1], 0.5) else 0.0

    def bound(scores):
        return CoinWager(**GRID).bound(scores, delta=1e-5, failure_probability=BETA).epsilon

    assert false_alarms(learned, draw, 0.5, 100, seed=3) == 100
    assert_covers(false_alarms(bound, draw, 0.5, 100, seed=3), 100, BETA)


@pytest.mark.parametrize("shared", [True, False])
def test_coins_and_noise_from_one_seed_break_the_wager(shared):
    """Two generators with one seed are one generator: the noise then knows the coins."""
    epsilon = 1.0

    def draw(rng):
        seed = int(rng.integers(2**32))
        other = seed if shared else int(rng.integers(2**32))
        coins = (np.random.default_rng(seed).random((16, 64)) < 0.5).astype(int)
        lies = np.random.default_rng(other).random((16, 64)) < 1 / (1 + math.exp(epsilon))
        return Scores(scores=np.where(lies, 1 - coins, coins).astype(float), coins=coins)

    def bound(scores):
        return CoinWager(**GRID).bound(scores, delta=0, failure_probability=BETA).epsilon

    alarms = false_alarms(bound, draw, epsilon, 100, seed=4)
    if shared:
        assert alarms == 100
    else:
        assert_covers(alarms, 100, BETA)


@pytest.mark.slow
def test_picking_the_best_threshold_afterwards_breaks_the_bound():
    """The plain maximum over thresholds, at the full failure probability, on the scores that are reported.

    Beyond 1 every threshold is tight for Laplace noise, and thresholds far apart look at nearly different samples.
    """
    beta = 0.3
    grid = 1 + math.log(2) * np.arange(0, 9, 0.25)

    def draw(rng):
        return Scores(inserted=1 + rng.laplace(size=(2000, 1)), held_out=rng.laplace(size=(2000, 1)))

    def forward(threshold):
        return ClopperPearson(threshold=threshold, direction="forward")

    def maximum(scores):
        return max(forward(FixedThreshold(t)).bound(scores, delta=0, failure_probability=beta).epsilon for t in grid)

    assert_breaks(false_alarms(maximum, draw, 1.0, 300, seed=5), 300, beta)
    for honest in (SplitThreshold(), UnionThreshold(tuple(grid))):
        alarms = false_alarms(
            lambda scores, s=honest: forward(s).bound(scores, delta=0, failure_probability=beta).epsilon,
            draw,
            1.0,
            300,
            seed=5,
        )
        assert_covers(alarms, 300, beta)


def test_counting_canaries_of_one_model_as_independent_breaks_the_bound():
    draw = exchangeable_arms(30, 64, 0.2, 0.5, correlation=0.3)

    def pooled(scores):
        flat = Scores(**{key: array.reshape(-1, 1) for key, array in scores.to_arrays().items()})
        return ClopperPearson(threshold=FixedThreshold(0.5)).bound(flat, delta=0, failure_probability=BETA).epsilon

    assert_breaks(false_alarms(pooled, draw, 0.5, 200, seed=6), 200, BETA)
