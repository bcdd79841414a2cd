"""The mechanisms that guess best: one run is tested at the worst case over all mechanisms with a curve, for up to 40 coins.

Guess every coin, and let the curve be the same in both directions. Then the best mechanism may be taken to treat all coins and
both sides alike: it draws the number i of right guesses with probability p_i, and then which ones are right. So a linear programme
over p finds it.
"""

from functools import lru_cache

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from lidp import FixedThreshold, OneRunFDP, Scores
from lidp.curves import GaussianCurve
from lidp.stats.curve_wager_with_guesses import CurveWagerWithGuesses
from lidp.stats.one_run import Guesses
from lidp.testing.simulations import assert_breaks, assert_covers
from tests.stats.curve_nulls import Interpolated, p_value, refutations

AT = tuple(np.linspace(0, 4, 17))
VALUES = GaussianCurve(1.0).forward(np.array(AT))
CURVE = Interpolated(1.0, AT, tuple(VALUES), tuple(VALUES))
OPTIMISTIC = Interpolated(1.0, AT, tuple(VALUES / 2), tuple(VALUES / 2))


@lru_cache
def best_guesser(coins, least_right, curve=CURVE):
    """Return the largest probability of at least so many right guesses, and the law of their number that attains it."""
    i = np.arange(1, coins + 1)
    # The probability that a given guess is one of i right ones; and, with its coin changed, wrong besides i - 1 right ones.
    right = sparse.csr_matrix((i / coins, (i - 1, i)), shape=(coins, coins + 1))
    wrong = sparse.csr_matrix(((coins - i + 1) / coins, (i - 1, i - 1)), shape=(coins, coins + 1))
    slacks = 2 * len(curve.at)  # for each ε, what exceeds e^ε times the other law: among right and among wrong guesses
    rows, limits = [], []
    for k, (epsilon, value) in enumerate(zip(curve.at, curve.forward_values, strict=True)):
        for slack, (one, other) in ((2 * k, (right, wrong)), (2 * k + 1, (wrong, right))):
            row = [one - np.exp(epsilon) * other, *[None] * slacks]
            row[1 + slack] = -sparse.eye(coins)
            rows.append(row)
            limits.append(np.zeros(coins))
        row = [None] * (1 + slacks)
        row[1 + 2 * k] = row[2 + 2 * k] = sparse.csr_matrix(np.ones((1, coins)))
        rows.append(row)
        limits.append(np.array([value]))
    matrix = sparse.bmat(rows, format="csr")
    is_law = np.arange(matrix.shape[1]) <= coins
    gain = is_law & (np.arange(matrix.shape[1]) >= least_right)
    solution = linprog(-gain.astype(float), matrix, np.concatenate(limits), is_law[None].astype(float), [1], method="highs")
    assert solution.success
    return -solution.fun, np.maximum(solution.x[: coins + 1], 0)


@pytest.mark.parametrize(("coins", "least_right"), [(20, 14), (20, 18), (20, 20), (40, 38), (40, 40)])
def test_p_value_is_at_least_the_best_guessers_and_equal_for_no_error(coins, least_right):
    best, _ = best_guesser(coins, least_right)
    allowed = p_value(Guesses(coins, coins, least_right), CURVE)
    assert best <= allowed + 1e-9
    if least_right == coins:
        assert best == pytest.approx(allowed, rel=1e-6)
    else:
        assert best > 0.7 * allowed


def guesses_of_the_best(coins, least_right):
    law = best_guesser(coins, least_right)[1]

    def draw(rng):
        flips = rng.integers(0, 2, (1, coins))
        number = rng.choice(coins + 1, p=law / law.sum())
        right = rng.permutation(coins) < number
        return Scores(scores=np.where(right, flips, 1 - flips).astype(float), coins=flips)

    return draw


COINS = 20
ALWAYS_RIGHT = best_guesser(COINS, COINS)[0]  # .0392


def test_best_guesser_is_refuted_as_often_as_allowed():
    """At a failure probability just above the p-value of no error; below it, the curve cannot be refuted at all."""
    method = OneRunFDP(FixedThreshold(0.5), curve=CURVE)
    draw = guesses_of_the_best(COINS, COINS)
    alarms = refutations(method, draw, 1000, seed=50, delta=1e-3, beta=ALWAYS_RIGHT * 1.01)
    assert_covers(alarms, 1000, ALWAYS_RIGHT * 1.01)
    assert alarms > 15  # fewer have a probability below 1e-4
    assert refutations(method, draw, 200, seed=51, delta=1e-3, beta=ALWAYS_RIGHT * 0.99) == 0


def test_optimistic_curve_breaks_coverage_at_the_best_guesser():
    beta = p_value(Guesses(COINS, COINS, COINS), OPTIMISTIC) * 1.01  # .0205
    draw = guesses_of_the_best(COINS, COINS)
    assert_breaks(
        refutations(OneRunFDP(FixedThreshold(0.5), curve=OPTIMISTIC), draw, 2000, seed=52, delta=1e-3, beta=beta),
        2000,
        beta,
    )


def test_wager_with_guesses_at_the_best_guesser():
    beta = 2 * ALWAYS_RIGHT * 1.01  # so that the count alone is refuted as often as half of it allows
    draw = guesses_of_the_best(COINS, COINS)
    method = CurveWagerWithGuesses(CURVE, FixedThreshold(0.5))
    alarms = refutations(method, draw, 400, seed=53, delta=1e-3, beta=beta)
    assert_covers(alarms, 400, beta)
    assert alarms > 0
