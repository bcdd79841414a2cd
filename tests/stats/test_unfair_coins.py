"""Pure noise with coins that are not as they should be: sorted, or not quite fair. Refused, or no more bounds than β allows.

The true ε is 0, so that every rejected ε is a false bound, 0 included. A simulation of a valid method fails with probability 1e-4.
"""

import numpy as np
import pytest

from lidp import CoinWager, InvalidScores, OneRun, OneRunFDP, Scores
from lidp.testing.simulations import assert_covers

BETA = 0.05
REPEATS = 150
LAWS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "bits": lambda rng, shape: 1.0 * (rng.random(shape) < 0.5),
    "constant": lambda rng, shape: np.zeros(shape),
}
every_law = pytest.mark.parametrize("law", list(LAWS))


def false_bounds(method, draw, delta=0.0):
    """How often the method rejects an ε, and on how many scores that were not refused."""
    alarms = accepted = 0
    for seed in range(REPEATS):
        try:
            scores = draw(np.random.default_rng(seed))
        except InvalidScores:
            continue
        accepted += 1
        bound = method.bound(scores, delta=delta, failure_probability=BETA)
        alarms += bound.epsilon > 0 or bool(bound.path)
    return alarms, accepted


def grouped(trials, canaries, law):
    """Inserted canaries first: per trial, or over all trials if each has one canary."""

    def draw(rng):
        coins = np.sort(rng.integers(0, 2, (trials, canaries)), axis=1 if canaries > 1 else 0)
        return Scores(scores=LAWS[law](rng, coins.shape), coins=coins[::-1, ::-1])

    return draw


@every_law
@pytest.mark.parametrize(("trials", "canaries"), [(1, 256), (16, 64), (200, 1)])
def test_long_groups_of_equal_coins_are_refused(trials, canaries, law):
    assert false_bounds(CoinWager(), grouped(trials, canaries, law)) == (0, 0)


@every_law
@pytest.mark.parametrize("method", [CoinWager(), OneRun(), OneRunFDP()], ids=lambda method: method.name)
@pytest.mark.parametrize(("trials", "canaries"), [(1, 30), (8, 4), (40, 2), (64, 2)])
def test_short_groups_of_equal_coins_give_no_bounds(method, trials, canaries, law):
    alarms, accepted = false_bounds(method, grouped(trials, canaries, law), delta=1e-5)
    assert accepted == REPEATS
    assert_covers(alarms, accepted, BETA)


def ordered_by_number(trials, canaries, law):
    """Trials in the order of how many of their canaries are in."""

    def draw(rng):
        coins = rng.integers(0, 2, (trials, canaries))
        return Scores(scores=LAWS[law](rng, coins.shape), coins=coins[np.argsort(coins.sum(axis=1), kind="stable")])

    return draw


@pytest.mark.parametrize(("trials", "canaries"), [(250, 8), (250, 4), (1000, 16), (75, 4)])
def test_many_trials_ordered_by_the_number_of_inserted_canaries_are_refused(trials, canaries):
    assert false_bounds(CoinWager(), ordered_by_number(trials, canaries, "normal")) == (0, 0)


@every_law
@pytest.mark.parametrize(("trials", "canaries"), [(30, 2), (30, 4), (30, 8), (24, 16), (24, 64)])
def test_few_trials_ordered_by_the_number_of_inserted_canaries_give_no_bounds(trials, canaries, law):
    alarms, accepted = false_bounds(CoinWager(), ordered_by_number(trials, canaries, law))
    assert accepted > REPEATS / 2
    assert_covers(alarms, accepted, BETA)


@every_law
@pytest.mark.parametrize(("trials", "canaries"), [(1, 256), (16, 64)])
def test_groups_that_pass_the_checks_give_no_bounds(trials, canaries, law):
    """The order of betting is a second line of defence: here the coins are sorted after they were checked."""

    def draw(rng):
        coins = rng.integers(0, 2, (trials, canaries))
        scores = Scores(scores=LAWS[law](rng, coins.shape), coins=coins)
        scores._second = np.sort(scores._second, axis=1)
        return scores

    alarms, accepted = false_bounds(CoinWager(), draw, delta=1e-5)
    assert_covers(alarms, accepted, BETA)


@every_law
@pytest.mark.parametrize(
    ("trials", "canaries", "heads"), [(1, 100, 0.6), (200, 1, 0.6), (2, 100, 0.6), (10, 50, 0.55), (1, 2000, 0.55)]
)
def test_slightly_unfair_coins_give_no_bounds(trials, canaries, heads, law):
    def draw(rng):
        coins = rng.random((trials, canaries)) < heads
        return Scores(scores=LAWS[law](rng, coins.shape), coins=coins)

    alarms, accepted = false_bounds(CoinWager(), draw)
    assert accepted > REPEATS / 2
    assert_covers(alarms, accepted, BETA)


def test_600_ones_among_1000_coins_are_refused():
    def draw(rng):
        coins = rng.random((1, 1000)) < 0.6
        return Scores(scores=rng.standard_normal(coins.shape), coins=coins)

    alarms, accepted = false_bounds(CoinWager(), draw)
    assert accepted < REPEATS / 5
    assert alarms <= 5
