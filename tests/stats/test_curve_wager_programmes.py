"""Linear programmes over all mechanisms: no one gains more against the curve wager than it is charged.

A mechanism for K coins is a table of probabilities, one row for each vector of coins and one column for each output. It is
allowed if every pair of rows that differ in one coin obeys h⁺ and h⁻ at the rungs that are bet at: linear constraints. What the
wager does is fixed by the output (its predictions) and the coins, so that the mean wealth is linear in the table, and its
maximum over *all* allowed mechanisms with these outputs is a linear programme.
"""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from lidp._compiled.curve_wager import wager
from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve, PointCurve
from lidp.stats.bet_sizes import log_charge

SAMPLED = EventCurve(
    json.dumps(
        {
            "event": "PoissonSampledDpEvent",
            "sampling_probability": 0.5,
            "of": {"event": "GaussianDpEvent", "noise_multiplier": 0.7},
        }
    )
)
# Curve, rungs, caps, and the log-odds that outputs may give for a coin. The first of these bets at the lower rung only.
CASES = {
    "gaussian": (GaussianCurve(1.0), (0.3, 1.2), (0.1, 0.05), (0.9, 30.0)),
    "gaussian, one rung": (GaussianCurve(1.5), (0.5,), (0.4,), (30.0,)),
    "sampled gaussian": (SAMPLED, (0.1, 0.6), (0.15, 0.1), (0.5, 30.0)),
    "laplace": (LaplaceCurve(1.0), (0.2, 1.0), (0.1, math.inf), (0.7, 1.4)),
    "point": (PointCurve(1.0, 0.05), (1.0,), (0.3,), (30.0,)),
    "large caps": (GaussianCurve(1.0), (0.0, 1.0), (2.0, 1.0), (0.8, 30.0)),
}


class Setting:
    """Outputs, coins and constraints of one linear programme."""

    def __init__(self, case, canaries, sides=(-1, 1)):
        self.curve, rungs, caps, strengths = CASES[case]
        self.rungs, self.caps = np.array(rungs), np.array(caps)
        self.canaries, self.sides = canaries, sides
        levels = [0.0, *(side * strength for side in (-1, 1) for strength in strengths)]
        self.outputs = np.array(list(itertools.product(levels, repeat=canaries)))
        self.coins = np.array(list(itertools.product((False, True), repeat=canaries)))
        self.forward, self.backward = self.curve.both(self.rungs)

    @property
    def prices(self):
        return (1 in self.sides) * self.forward + (-1 in self.sides) * self.backward

    def wealths(self, charges=None):
        """Return the wealth over its charge for each vector of coins and output, by the compiled wager itself."""
        table = np.empty((len(self.coins), len(self.outputs)))
        charge = log_charge(self.caps, self.prices, self.canaries) if charges is None else charges
        for row, coins in enumerate(self.coins):
            for column, logits in enumerate(self.outputs):
                log_wealth = np.zeros((1, 1))
                wager(
                    logits[None], coins[None], np.exp(self.rungs)[None], self.caps[None, None], np.array([[charge]]),
                    1e9, -1e9, 1 in self.sides, -1 in self.sides, log_wealth, np.zeros(1), np.zeros(1, np.int64),
                    np.zeros(1, np.int64), 0, 0, 1, np.empty((1, 2), np.int64),
                )  # fmt: skip
                table[row, column] = math.exp(log_wealth[0, 0])
        return table

    def largest_mean(self, wealths):
        """Return the largest mean of a table of wealths over all allowed mechanisms.

        Variables: the probabilities, and for each pair of neighbours, direction and rung the positive parts of the differences.
        """
        rows, columns = wealths.shape
        index = np.arange(rows * columns).reshape(rows, columns)
        data, row_ids, column_ids, limits = [], [], [], []
        variables, constraints = rows * columns, 0

        def constrain(columns_, values, limit):
            nonlocal constraints
            column_ids.extend(columns_)
            data.extend(values)
            row_ids.extend([constraints] * len(columns_))
            limits.append(limit)
            constraints += 1

        for row, coins in enumerate(self.coins):
            for k in np.flatnonzero(~coins):
                flipped = coins.copy()
                flipped[k] = True
                with_record = int(np.flatnonzero((self.coins == flipped).all(axis=1))[0])
                for odds, above, below in zip(np.exp(self.rungs), self.forward, self.backward, strict=True):
                    for one, other, limit in ((with_record, row, above), (row, with_record, below)):
                        parts = variables + np.arange(columns)
                        variables += columns
                        for column in range(columns):
                            constrain([index[one, column], index[other, column], parts[column]], [1.0, -odds, -1.0], 0.0)
                        constrain(parts, [1.0] * columns, limit)
        matrix = sparse.csr_matrix((data, (row_ids, column_ids)), shape=(constraints, variables))
        whole = sparse.csr_matrix(
            (np.ones(rows * columns), (np.repeat(np.arange(rows), columns), index.ravel())), shape=(rows, variables)
        )
        objective = np.zeros(variables)
        objective[: rows * columns] = -wealths.ravel() / rows
        solution = linprog(objective, A_ub=matrix, b_ub=limits, A_eq=whole, b_eq=np.ones(rows), method="highs")
        assert solution.success, solution.message
        return -solution.fun


def settings(*cases, canaries=(1, 2)):
    return pytest.mark.parametrize(("case", "canaries"), [(case, number) for case in cases for number in canaries])


@settings(*CASES)
@pytest.mark.parametrize("sides", [(-1, 1), (1,), (-1,)], ids=["both", "in", "out"])
def test_no_mechanism_gains_more_than_the_charge(case, canaries, sides):
    setting = Setting(case, canaries, sides)
    assert setting.largest_mean(setting.wealths()) <= 1 + 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("case", ["gaussian, one rung", "point", "gaussian", "sampled gaussian"])
def test_no_mechanism_for_three_coins_gains_more_than_the_charge(case):
    setting = Setting(case, 3)
    assert 0.99 < setting.largest_mean(setting.wealths()) <= 1 + 1e-7


@settings("gaussian", "gaussian, one rung", "sampled gaussian", "point")
def test_some_mechanism_gains_as_much_as_the_charge(case, canaries):
    """So the charge cannot be made smaller, and the programmes do find mechanisms that use what they are allowed."""
    setting = Setting(case, canaries)
    assert setting.largest_mean(setting.wealths()) == pytest.approx(1, abs=2e-3)


@settings("gaussian", "sampled gaussian", "point")
@pytest.mark.parametrize("factor", [0.9, 0.0, -0.1])
def test_charges_for_a_smaller_curve_are_exceeded(case, canaries, factor):
    """Optimistic accounting, a rounding to 0, and the negative values that Fourier transforms leave."""
    setting = Setting(case, canaries)
    cost = canaries / 2 * (setting.caps * setting.prices).sum() * factor
    assert setting.largest_mean(setting.wealths(math.log1p(cost))) > 1 + 1e-3


def bets(setting, logits, coins, caps, stop=math.inf):
    """Return the wealth after one trial and the number of coins that were bet on, written as the method is described.

    Bets end when the wealth reaches ``stop``.
    """
    wealth = 1.0
    for done, (logit, coin) in enumerate(zip(logits, coins, strict=True)):
        if wealth >= stop:
            return wealth, done
        chance = 1 / (1 + math.exp(-abs(logit)))
        won = lost = wealth
        for odds, cap in zip(np.exp(setting.rungs), caps, strict=True):
            stake = min(chance * lost / odds - (1 - chance) * won, cap)
            if stake <= 0 or logit == 0:
                break
            won, lost = won + stake, lost - odds * stake
        wealth = won if coin == (logit > 0) else lost
    return wealth, len(coins)


def table(setting, value):
    return np.array([[value(logits, coins) for logits in setting.outputs] for coins in setting.coins])


@pytest.mark.parametrize("case", CASES)
def test_compiled_wager_bets_as_described(case):
    setting = Setting(case, 2)
    naive = table(setting, lambda logits, coins: bets(setting, logits, coins, setting.caps)[0])
    charge = math.exp(log_charge(setting.caps, setting.prices, 2))
    assert setting.wealths() == pytest.approx(naive / charge, rel=1e-9)


@pytest.mark.parametrize("case", ["gaussian, one rung", "point"])
def test_charges_that_stop_with_the_bets_are_exceeded(case):
    """Stop after the first win: valid if both coins are charged, not if only those bet on are."""
    setting = Setting(case, 2)
    cost = (setting.caps * setting.prices).sum() / 2
    stop = 1 + setting.caps[0] - 1e-9

    def after(logits, coins, honest):
        wealth, done = bets(setting, logits, coins, setting.caps, stop)
        return wealth / (1 + cost * (len(coins) if honest else done))

    assert setting.largest_mean(table(setting, lambda *trial: after(*trial, honest=True))) <= 1 + 1e-7
    assert setting.largest_mean(table(setting, lambda *trial: after(*trial, honest=False))) > 1 + 1e-3


@pytest.mark.parametrize("case", ["gaussian, one rung", "point"])
def test_caps_that_look_at_the_output_are_exceeded(case):
    """Caps, and the charges for them, that are large only where the output is sure of its coins."""
    setting = Setting(case, 2)

    def peeking(logits, coins):
        caps = setting.caps * (1.0 if (logits != 0).all() else 0.0)
        wealth, _ = bets(setting, logits, coins, caps)
        return wealth / (1 + len(coins) / 2 * (caps * setting.prices).sum())

    assert setting.largest_mean(table(setting, peeking)) > 1 + 1e-3
