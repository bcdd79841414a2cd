"""Coverage: at nulls that are exactly tight, the true ε is rejected at most β of the time.

Every finite-sample method, from independent to fully dependent canaries, from rare to common events, pure and approximate
DP. The ways to break it are in ``test_ways_to_break``: there the same simulations do catch what is wrong.
"""

import math

import numpy as np
import pytest

from lidp import (
    Bernstein,
    ClopperPearson,
    CoinWager,
    FixedThreshold,
    GaussianDP,
    Jeffreys,
    LiftedBetting,
    MethodNotApplicable,
    OneRun,
    OneRunFDP,
    RankGuesses,
    Scores,
    SplitThreshold,
    UnionThreshold,
    Wilson,
)
from lidp.curves.gaussian import gaussian_epsilon
from lidp.testing.simulations import assert_covers, exchangeable_arms, false_alarms, laplace_pairs, randomized_response

BETA = 0.05


def bounder(method, delta=0.0, beta=BETA):
    return lambda scores: method.bound(scores, delta=delta, failure_probability=beta).epsilon


def tight_rate(epsilon):
    """The held-out rate at which both directions are tight: randomized response."""
    return 1 / (1 + math.exp(epsilon))


# Few ε suffice to ask whether the true one is rejected; a coarse grid with the truth on it makes simulations fast.
FAST_WAGER = CoinWager(resolution=0.25, largest=4.0)
FAST_BETTING = LiftedBetting(resolution=0.25, largest=4.0)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("trials", "canaries"), [(16, 64), (1, 1024), (512, 1)])
def test_coin_wager_on_randomized_response(epsilon, trials, canaries):
    draw = randomized_response(trials, canaries, epsilon)
    assert_covers(false_alarms(bounder(FAST_WAGER), draw, epsilon, 400, seed=1), 400, BETA)


@pytest.mark.parametrize("boldness", [0.6, 1.5], ids=["careful", "bold"])
@pytest.mark.parametrize("whole_run", [False, True], ids=["each coin revealed", "whole runs revealed"])
@pytest.mark.parametrize(("trials", "canaries", "delta"), [(64, 16, 0.01), (4, 256, 0.02), (256, 1, 0.05), (64, 16, 0.0)])
def test_coin_wager_on_given_log_odds(trials, canaries, delta, whole_run, boldness):
    """Someone else's predictions: certain where a coin was revealed, and surer than ε allows elsewhere."""
    told = randomized_response(trials, canaries, 0.5, delta, whole_run)

    def draw(rng):
        values, coins = told(rng).flips()
        return Scores(scores=np.where(np.abs(values) > 1, values, boldness * (2 * values - 1)), coins=coins)

    method = CoinWager(resolution=0.25, largest=4.0, log_odds=True)
    assert_covers(false_alarms(bounder(method, delta), draw, 0.5, 400, seed=3), 400, BETA)


@pytest.mark.parametrize("whole_run", [False, True], ids=["each coin revealed", "whole runs revealed"])
@pytest.mark.parametrize(("trials", "canaries", "delta"), [(64, 16, 0.01), (4, 256, 0.02), (256, 1, 0.05)])
def test_coin_wager_with_delta(whole_run, trials, canaries, delta):
    draw = randomized_response(trials, canaries, 0.5, delta, whole_run)
    assert_covers(false_alarms(bounder(FAST_WAGER, delta), draw, 0.5, 400, seed=2), 400, BETA)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_coin_wager_in_one_direction(direction):
    method = CoinWager(direction=direction, resolution=0.25, largest=4.0)
    draw = randomized_response(64, 16, 0.5, 0.01, whole_run=True)
    assert_covers(false_alarms(bounder(method, 0.01), draw, 0.5, 400, seed=3), 400, BETA)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_coin_wager_on_laplace(epsilon):
    draw = laplace_pairs(500, epsilon)
    assert_covers(false_alarms(bounder(FAST_WAGER), draw, epsilon, 400, seed=4), 400, BETA)


def test_coin_wager_with_dependent_canaries():
    """A run tells the truth about all of its canaries, or lies about all: one answer's worth of evidence, K times."""
    epsilon, trials, canaries = 1.0, 64, 16

    def draw(rng):
        coins = rng.integers(0, 2, (trials, 1))
        lies = rng.random((trials, 1)) < tight_rate(epsilon)
        # The first canary gets randomized response; the others are echoes of that answer, with coins of their own.
        answer = np.where(lies, 1 - coins, coins)
        all_coins = np.hstack([coins, rng.integers(0, 2, (trials, canaries - 1))])
        return Scores(scores=np.repeat(answer, canaries, axis=1), coins=all_coins)

    assert_covers(false_alarms(bounder(FAST_WAGER), draw, epsilon, 400, seed=5), 400, BETA)


RARE_AND_COMMON = [(1.0, 0.02), (1.0, None), (0.5, 0.3), (2.0, 0.005)]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("correlation", [*(pytest.param(c, marks=pytest.mark.slow) for c in (0.0, 1.0)), 0.1])
@pytest.mark.parametrize(("epsilon", "rate"), RARE_AND_COMMON)
def test_lifted_betting_on_exchangeable_arms(correlation, epsilon, rate):
    draw = exchangeable_arms(200, 8, rate or tight_rate(epsilon), epsilon, correlation=correlation)
    assert_covers(false_alarms(bounder(FAST_BETTING), draw, epsilon, 200, seed=6), 200, BETA)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("correlation", [0.0, 1.0])
def test_lifted_betting_with_delta(correlation):
    draw = exchangeable_arms(300, 4, 0.05, 0.5, delta=0.05, correlation=correlation)
    assert_covers(false_alarms(bounder(FAST_BETTING, 0.05), draw, 0.5, 200, seed=7), 200, BETA)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_lifted_betting_in_one_direction(direction):
    method = LiftedBetting(direction=direction, resolution=0.25, largest=4.0)
    draw = exchangeable_arms(200, 4, tight_rate(0.5), 0.5, correlation=0.3)
    assert_covers(false_alarms(bounder(method), draw, 0.5, 200, seed=8), 200, BETA)


BERNSTEINS = [Bernstein(order, threshold=FixedThreshold(0.5)) for order in (1, 2, 4, 8)]


@pytest.mark.parametrize("method", BERNSTEINS, ids=lambda m: f"order {m.order}")
@pytest.mark.parametrize("correlation", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("epsilon", "rate"), RARE_AND_COMMON)
def test_bernstein_on_exchangeable_arms(method, correlation, epsilon, rate):
    draw = exchangeable_arms(200, 8, rate or tight_rate(epsilon), epsilon, correlation=correlation)
    assert_covers(false_alarms(bounder(method), draw, epsilon, 300, seed=9), 300, BETA)


@pytest.mark.parametrize("threshold", [FixedThreshold(0.5), SplitThreshold(0.3), UnionThreshold(4)], ids=str)
@pytest.mark.parametrize(("epsilon", "rate"), RARE_AND_COMMON)
def test_clopper_pearson(threshold, epsilon, rate):
    draw = exchangeable_arms(300, 1, rate or tight_rate(epsilon), epsilon)
    assert_covers(false_alarms(bounder(ClopperPearson(threshold=threshold)), draw, epsilon, 500, seed=10), 500, BETA)


@pytest.mark.parametrize("threshold", [SplitThreshold(0.5), UnionThreshold(8)], ids=str)
def test_clopper_pearson_on_laplace_with_chosen_thresholds(threshold):
    draw = laplace_pairs(500, 1.0)
    assert_covers(false_alarms(bounder(ClopperPearson(threshold=threshold)), draw, 1.0, 400, seed=11), 400, BETA)


ONE_RUNS = [RankGuesses(0.2), RankGuesses(1.0), UnionThreshold(8), FixedThreshold(0.5), SplitThreshold(0.5)]


@pytest.mark.parametrize("strategy", ONE_RUNS, ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_run_on_randomized_response(strategy, epsilon):
    draw = randomized_response(4, 100, epsilon)
    assert_covers(false_alarms(bounder(OneRun(strategy)), draw, epsilon, 300, seed=12), 300, BETA)


@pytest.mark.parametrize("strategy", [RankGuesses(0.2), UnionThreshold(4)], ids=str)
@pytest.mark.parametrize("whole_run", [False, True])
def test_one_run_with_delta(strategy, whole_run):
    draw = randomized_response(2, 100, 0.5, 0.01, whole_run)
    assert_covers(false_alarms(bounder(OneRun(strategy), 0.01), draw, 0.5, 300, seed=13), 300, BETA)


@pytest.mark.parametrize("order", [1, 2, 4, 8])
@pytest.mark.parametrize("correlation", [0.0, 0.1, 1.0])
def test_wilson_with_many_trials(order, correlation):
    """Asymptotic, so at large n and common events."""
    draw = exchangeable_arms(4000, 8, tight_rate(1.0), 1.0, correlation=correlation)
    method = Wilson(order, threshold=FixedThreshold(0.5))
    assert_covers(false_alarms(bounder(method), draw, 1.0, 300, seed=14), 300, BETA)


@pytest.mark.parametrize("correlation", [0.0, 0.1, 1.0])
def test_printed_fourth_order_with_many_trials(correlation):
    """Not proved; no counterexample here either."""
    draw = exchangeable_arms(4000, 8, tight_rate(1.0), 1.0, correlation=correlation)
    method = Wilson(4, threshold=FixedThreshold(0.5), as_printed=True)
    assert_covers(false_alarms(bounder(method), draw, 1.0, 300, seed=26), 300, BETA)


def test_jeffreys_with_many_trials():
    draw = exchangeable_arms(4000, 1, tight_rate(1.0), 1.0)
    method = Jeffreys(threshold=FixedThreshold(0.5))
    assert_covers(false_alarms(bounder(method), draw, 1.0, 500, seed=22), 500, BETA)


@pytest.mark.parametrize("layout", ["coins", "arms"])
def test_mechanism_that_fails_more_often_with_the_canary(layout):
    """Randomized response, then failing more often by the coin's side, is tight at a larger ε; failures marked, not dropped.

    Failing with probability f when the answer is 1 and g when it is 0 post-processes the answer: privacy is unchanged.
    """
    epsilon, trials = 1.0, 300
    fail = np.array([0.05, 0.6])

    def draw_coins(rng):
        coins = rng.integers(0, 2, (trials, 1))
        told = np.where(rng.random(coins.shape) < tight_rate(epsilon), 1 - coins, coins)
        return Scores(scores=told.astype(float), coins=coins, failed=rng.random(trials) < fail[told.ravel()])

    def draw_arms(rng):
        inserted = (rng.random((trials, 1)) > tight_rate(epsilon)).astype(int)
        held_out = (rng.random((trials, 1)) < tight_rate(epsilon)).astype(int)
        failed = rng.random((trials, 2)) < fail[np.hstack([inserted, held_out])]
        return Scores(inserted=inserted.astype(float), held_out=held_out.astype(float), failed=failed)

    methods = [FAST_WAGER, OneRun()] if layout == "coins" else [FAST_BETTING, Bernstein(1)]
    for method in methods:
        draw = draw_coins if layout == "coins" else draw_arms
        assert_covers(false_alarms(bounder(method), draw, epsilon, 200, seed=23), 200, BETA)


MU = 1.0


def gaussian_coin(trials, canaries=1):
    """Each coin through a channel with a Gaussian curve exactly: the null at which the conditional methods are tight."""

    def draw(rng):
        coins = rng.integers(0, 2, (trials, canaries))
        return Scores(scores=MU * coins + rng.standard_normal(coins.shape), coins=coins)

    return draw


@pytest.mark.parametrize(
    "method",
    [GaussianDP(threshold=FixedThreshold(0.5)), GaussianDP(), OneRunFDP(RankGuesses(0.2)), OneRunFDP(UnionThreshold(8))],
    ids=lambda m: f"{m.name} {m.threshold}",
)
def test_conditional_methods_on_a_gaussian_curve(method):
    truth = gaussian_epsilon(MU, 1e-5)
    alarms = false_alarms(bounder(method, 1e-5), gaussian_coin(400), truth, 200, seed=15)
    assert_covers(alarms, 200, BETA)


@pytest.mark.parametrize("threshold", [FixedThreshold(0.5), SplitThreshold(0.5), RankGuesses(0.2)], ids=str)
@pytest.mark.parametrize(("trials", "canaries"), [(2, 200), (8, 50)])
def test_one_run_fdp_with_many_canaries_per_run(threshold, trials, canaries):
    truth = gaussian_epsilon(MU, 1e-5)
    draw = gaussian_coin(trials, canaries)
    assert_covers(false_alarms(bounder(OneRunFDP(threshold), 1e-5), draw, truth, 200, seed=24), 200, BETA)


@pytest.mark.parametrize("interval", [None, Wilson(1), Wilson(2), Bernstein(1)], ids=str)
@pytest.mark.parametrize("shared", [0.0, 0.7, 1.0])
def test_gaussian_dp_on_arms_of_dependent_canaries(interval, shared):
    """The K scores of a run share part of their noise, or all of it; each alone is a Gaussian curve exactly."""

    def draw(rng):
        def arm(shift):
            noise = shared * rng.standard_normal((2000, 1)) + math.sqrt(1 - shared**2) * rng.standard_normal((2000, 8))
            return shift + noise

        return Scores(inserted=arm(MU), held_out=arm(0.0))

    method = GaussianDP(interval=interval, threshold=FixedThreshold(0.5))
    alarms = false_alarms(bounder(method, 1e-5), draw, gaussian_epsilon(MU, 1e-5), 200, seed=25)
    assert_covers(alarms, 200, BETA)


# The same with many more repetitions and sizes: the suite of `make test-all`.


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.05, 0.3])
@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(("trials", "canaries"), [(2, 64), (64, 16), (1, 4096), (2048, 1)])
def test_coin_wager_at_length(epsilon, trials, canaries, beta):
    draw = randomized_response(trials, canaries, epsilon)
    assert_covers(false_alarms(bounder(FAST_WAGER, beta=beta), draw, epsilon, 2000, seed=16), 2000, beta)


@pytest.mark.slow
@pytest.mark.parametrize("cap", [None, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("whole_run", [False, True])
@pytest.mark.parametrize(("trials", "canaries", "delta"), [(64, 16, 0.01), (16, 64, 1e-3), (4, 256, 0.02), (256, 1, 0.05)])
def test_coin_wager_with_delta_at_length(cap, whole_run, trials, canaries, delta):
    method = CoinWager(cap=cap, resolution=0.25, largest=4.0)
    draw = randomized_response(trials, canaries, 0.5, delta, whole_run)
    assert_covers(false_alarms(bounder(method, delta), draw, 0.5, 2000, seed=17), 2000, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.05, 0.3])
@pytest.mark.parametrize("canaries", [1, 8])
@pytest.mark.parametrize("correlation", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("epsilon", "rate"), RARE_AND_COMMON)
def test_lifted_betting_at_length(canaries, correlation, epsilon, rate, beta):
    draw = exchangeable_arms(300, canaries, rate or tight_rate(epsilon), epsilon, correlation=correlation)
    assert_covers(false_alarms(bounder(FAST_BETTING, beta=beta), draw, epsilon, 300, seed=18), 300, beta)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2, 4, 8])
@pytest.mark.parametrize("trials", [20, 1000])
@pytest.mark.parametrize("correlation", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize(("epsilon", "rate"), RARE_AND_COMMON)
def test_bernstein_at_length(order, trials, correlation, epsilon, rate):
    draw = exchangeable_arms(trials, 16, rate or tight_rate(epsilon), epsilon, correlation=correlation)
    method = Bernstein(order, threshold=FixedThreshold(0.5))
    assert_covers(false_alarms(bounder(method, beta=0.3), draw, epsilon, 1000, seed=19), 1000, 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("correlation", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_wilson_at_length(order, correlation, epsilon):
    draw = exchangeable_arms(10_000, 16, tight_rate(epsilon), epsilon, correlation=correlation)
    method = Wilson(order, threshold=FixedThreshold(0.5))
    assert_covers(false_alarms(bounder(method), draw, epsilon, 400, seed=20), 400, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ONE_RUNS, ids=str)
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_one_run_at_length(strategy, delta):
    draw = randomized_response(4, 100, 0.5, delta, whole_run=True)
    assert_covers(false_alarms(bounder(OneRun(strategy), delta), draw, 0.5, 2000, seed=21), 2000, BETA)


def test_fixed_size_method_refuses_audits_that_a_wager_stopped():
    """One-run bounds of all audits, those included that stopped because a wager had refuted the true claim.

    Were these not refused, there would be nearly twice as many false bounds as allowed.
    """
    epsilon, repeats = 0.5, 400
    draw = randomized_response(24, 32, epsilon)
    one_run = OneRun(RankGuesses(1.0))
    refused = would_be = alarms = 0
    for seed in range(repeats):
        scores = draw(np.random.default_rng(seed))
        path = CoinWager().bound(scores, delta=0, failure_probability=BETA).path
        stop = next((seen for seen, bound in path if bound >= epsilon), None)
        shown = scores if stop is None else scores[:stop]
        would_be += one_run.bound(shown, delta=0, failure_probability=BETA).epsilon > epsilon
        if stop is None:
            alarms += one_run.bound(shown, delta=0, failure_probability=BETA).epsilon > epsilon
        else:
            with pytest.raises(MethodNotApplicable, match="stopped when the claim was refuted"):
                one_run.bound(shown.stopped(), delta=0, failure_probability=BETA)
            refused += 1
    assert refused > 0
    assert would_be > alarms
    assert_covers(alarms, repeats, BETA)
