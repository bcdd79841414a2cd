import numpy as np
import pytest
from scipy import stats

from lidp import (
    FixedThreshold,
    InvalidArgument,
    MethodNotApplicable,
    OneRun,
    OneRunFDP,
    RankGuesses,
    Scores,
    SplitThreshold,
    UnionThreshold,
)
from lidp.stats.one_run import Guesses, one_run_p_value

CHECK = Guesses(coins=1000, made=100, right=95)


def test_numbers_published_for_one_run_are_reproduced():
    assert OneRun().epsilon(CHECK, delta=1e-5, failure_probability=0.05) == pytest.approx(2.165, abs=1e-3)
    assert OneRunFDP().epsilon(CHECK, delta=1e-5, failure_probability=0.05) == pytest.approx(3.323, abs=1e-3)


@pytest.mark.parametrize("right", [0, 1, 50, 99, 100])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
def test_p_value_equals_its_definition(right, epsilon, delta):
    law = stats.binom(100, 1 / (1 + np.exp(-epsilon)))
    tail = law.sf(right - 1)
    excess = max(((law.cdf(right - 1) - law.cdf(right - i - 1)) / i for i in range(1, right + 1)), default=0.0)
    expected = min(1.0, tail + 2 * 1000 * delta * excess) if right else 1.0
    assert one_run_p_value(Guesses(1000, 100, right), epsilon, delta) == pytest.approx(expected, abs=1e-12)


def run(trials=4, canaries=500, shift=2.0, seed=0):
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, (trials, canaries))
    return Scores(scores=shift * coins + rng.standard_normal(coins.shape), coins=coins)


@pytest.mark.parametrize("kind", [OneRun, OneRunFDP])
@pytest.mark.parametrize(
    "strategy", [RankGuesses(0.2), UnionThreshold(4), SplitThreshold(0.3), FixedThreshold(1.0)], ids=str
)
def test_every_way_to_guess_gives_a_bound(kind, strategy):
    result = kind(strategy).bound(run(), delta=1e-5, failure_probability=0.05)
    assert result.epsilon > 0.8
    assert result.rates["right"] <= result.rates["guesses"] <= result.rates["coins"]


def test_rank_guesses_are_on_the_most_extreme_scores():
    scores = Scores(scores=[[5, 1, 4, 2, 3, 0]], coins=[[1, 0, 1, 1, 0, 0]])
    both = OneRun(RankGuesses(0.5)).bound(scores, delta=0, failure_probability=0.5)
    assert (both.rates["guesses"], both.rates["right"]) == (3, 3)  # 5, 4 in; 0 out
    assert both.thresholds == {"forward": 4.0, "backward": 0.0}
    forward = OneRun(RankGuesses(0.5), direction="forward").bound(scores, delta=0, failure_probability=0.5)
    assert (forward.rates["guesses"], forward.rates["right"]) == (3, 2)  # 5, 4, 3
    backward = OneRun(RankGuesses(0.5), direction="backward").bound(scores, delta=0, failure_probability=0.5)
    assert (backward.rates["guesses"], backward.rates["right"]) == (3, 2)  # 0, 1, 2


def test_coins_of_all_runs_are_pooled():
    assert OneRun().bound(run(trials=8), delta=1e-5, failure_probability=0.05).rates["coins"] == 4000


def test_split_of_a_single_run_is_refused():
    with pytest.raises(MethodNotApplicable, match="at least 2 trials"):
        OneRun(SplitThreshold()).bound(run(trials=1), delta=1e-5, failure_probability=0.05)


@pytest.mark.parametrize("fraction", [0, -1, 1.5, float("nan")])
def test_invalid_fractions_are_refused(fraction):
    with pytest.raises(InvalidArgument, match="fraction"):
        RankGuesses(fraction)


def test_object_that_is_no_strategy_is_refused():
    with pytest.raises(MethodNotApplicable, match="cannot guess by"):
        OneRun("top").bound(run(), delta=1e-5, failure_probability=0.05)  # type: ignore[arg-type]


def test_ties_do_not_follow_the_order_of_canaries():
    """30 equal scores, the inserted canaries first: by index, every guess would be right."""
    coins = np.arange(30).reshape(1, 30) >= 15
    for sorted_coins in (coins, ~coins):
        scores = Scores(scores=np.zeros((1, 30)), coins=sorted_coins)
        result = OneRun(RankGuesses(1.0)).bound(scores, delta=0, failure_probability=0.05)
        assert 8 <= result.rates["right"] <= 22
        assert result == OneRun(RankGuesses(1.0)).bound(scores, delta=0, failure_probability=0.05)
        assert result.epsilon == 0
