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


def test_the_numbers_of_the_literature():
    assert OneRun().epsilon(CHECK, delta=1e-5, failure_probability=0.05) == pytest.approx(2.165, abs=1e-3)
    assert OneRunFDP().epsilon(CHECK, delta=1e-5, failure_probability=0.05) == pytest.approx(3.323, abs=1e-3)


@pytest.mark.parametrize("right", [0, 1, 50, 99, 100])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
def test_the_p_value_as_defined(right, epsilon, delta):
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
def test_ways_to_guess(kind, strategy):
    found = kind(strategy).bound(run(), delta=1e-5, failure_probability=0.05)
    assert found.epsilon > 0.8
    assert found.rates["right"] <= found.rates["guesses"] <= found.rates["coins"]


def test_guesses_by_rank_are_what_they_say():
    scores = Scores(scores=[[5, 1, 4, 2, 3, 0]], coins=[[1, 0, 1, 1, 0, 0]])
    both = OneRun(RankGuesses(0.5)).bound(scores, delta=0, failure_probability=0.5)
    assert (both.rates["guesses"], both.rates["right"]) == (3, 3)  # 5, 4 in; 0 out
    assert both.thresholds == {"forward": 4.0, "backward": 0.0}
    forward = OneRun(RankGuesses(0.5), direction="forward").bound(scores, delta=0, failure_probability=0.5)
    assert (forward.rates["guesses"], forward.rates["right"]) == (3, 2)  # 5, 4, 3
    backward = OneRun(RankGuesses(0.5), direction="backward").bound(scores, delta=0, failure_probability=0.5)
    assert (backward.rates["guesses"], backward.rates["right"]) == (3, 2)  # 0, 1, 2


def test_runs_pool():
    assert OneRun().bound(run(trials=8), delta=1e-5, failure_probability=0.05).rates["coins"] == 4000


def test_one_run_cannot_be_split():
    with pytest.raises(MethodNotApplicable, match="at least 2 trials"):
        OneRun(SplitThreshold()).bound(run(trials=1), delta=1e-5, failure_probability=0.05)


@pytest.mark.parametrize("fraction", [0, -1, 1.5, float("nan")])
def test_bad_fractions(fraction):
    with pytest.raises(InvalidArgument, match="fraction"):
        RankGuesses(fraction)


def test_a_strategy_that_is_none():
    with pytest.raises(MethodNotApplicable, match="cannot guess by"):
        OneRun("top").bound(run(), delta=1e-5, failure_probability=0.05)  # type: ignore[arg-type]


def test_ties_are_not_broken_by_the_order_of_canaries():
    """30 equal scores, the inserted canaries first: by index, every guess would be right."""
    coins = np.arange(30).reshape(1, 30) >= 15
    for sorted_coins in (coins, ~coins):
        scores = Scores(scores=np.zeros((1, 30)), coins=sorted_coins)
        found = OneRun(RankGuesses(1.0)).bound(scores, delta=0, failure_probability=0.05)
        assert 8 <= found.rates["right"] <= 22
        assert found == OneRun(RankGuesses(1.0)).bound(scores, delta=0, failure_probability=0.05)
        assert found.epsilon == 0
