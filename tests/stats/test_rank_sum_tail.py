"""The tail of a weighted sum of guesses, against enumeration of all outputs, assignments and coins."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from lidp.curves import GaussianCurve
from lidp.stats.posterior_law import CertaintyLaw, certainty_law
from lidp.stats.rank_sum_tail import Weights, _law_of_sum, tail_bound


def tail_given_outputs(weights, certainties, total):
    """P[T ≥ total] for one assignment, by enumeration of all outcomes."""
    probability = 0.0
    for outcome in itertools.product((1, -1), repeat=len(weights)):
        if np.dot(outcome, weights) >= total - 1e-12:
            probability += math.prod((1 + sign * m) / 2 for sign, m in zip(outcome, certainties, strict=True))
    return probability


def worst_tail(weights, law, total):
    """The largest P[T ≥ total] over all rules: given all outputs, the best assignment of the weights."""
    probability = 0.0
    for outputs in itertools.product(range(len(law.values)), repeat=len(weights)):
        certainties = law.values[list(outputs)]
        best = max(tail_given_outputs(order, certainties, total) for order in set(itertools.permutations(weights)))
        probability += math.prod(law.probabilities[list(outputs)]) * best
    return probability


def random_law(rng, atoms):
    return CertaintyLaw(np.sort(rng.random(atoms)), rng.dirichlet(np.ones(atoms)))


@pytest.mark.parametrize("seed", range(12))
def test_bound_is_above_the_worst_rule(seed):
    rng = np.random.default_rng(seed)
    coins = int(rng.integers(1, 5))
    law = random_law(rng, int(rng.integers(1, 4)))
    values = np.sort(rng.uniform(0.1, 1.0, coins))
    weights = Weights(values, np.ones(coins, dtype=np.int64))
    for total in np.linspace(-values.sum(), values.sum(), 7):
        assert tail_bound(total, weights, law) >= worst_tail(tuple(values), law, total) - 1e-12


@pytest.mark.parametrize("coins", [1, 7, 256, 1000, 100_003])
def test_weights_are_as_many_as_coins(coins):
    weights = Weights.for_law(certainty_law(GaussianCurve(0.5)), coins)
    assert weights.coins == coins == len(weights.each())
    assert (np.diff(weights.each()) >= 0).all()
    assert weights.values[-1] == 1


def test_weights_of_a_law_without_information_are_equal():
    weights = Weights.for_law(CertaintyLaw(np.zeros(1), np.ones(1)), 10)
    assert weights.each() == pytest.approx(np.ones(10))


def test_bound_falls_with_the_sum():
    law = certainty_law(GaussianCurve(0.5))
    weights = Weights.for_law(law, 2000)
    bounds = [tail_bound(share * weights.total(), weights, law) for share in np.linspace(0.1, 0.6, 20)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(bounds))
    assert bounds[0] == 1
    assert bounds[-1] < 1e-6


@pytest.mark.slow
def test_bound_is_close_to_the_best_rule_for_many_coins():
    """The rule that sorts by certainty is the best one; its tail is simulated."""
    coins, law = 20_000, certainty_law(GaussianCurve(0.5))
    weights = Weights.for_law(law, coins)
    rng = np.random.default_rng(3)
    sums = []
    for _ in range(2000):
        certainties = np.sort(rng.choice(law.values, coins, p=law.probabilities))
        right = rng.random(coins) < (1 + certainties) / 2
        sums.append(weights.each() @ (2.0 * right - 1.0))
    quantile = np.quantile(sums, 0.95)
    assert 0.04 < tail_bound(quantile, weights, law) < 0.08


def test_law_of_sum_keeps_mean_and_adds_little_variance():
    terms, probabilities = np.array([0.0, 0.013, 0.4]), np.array([0.5, 0.3, 0.2])
    sums, law = _law_of_sum(terms, probabilities, 1000)
    mean = probabilities @ terms
    variance = probabilities @ (terms - mean) ** 2
    assert law.sum() == pytest.approx(1.0)
    assert law @ sums == pytest.approx(1000 * mean)
    assert 1000 * variance <= law @ (sums - 1000 * mean) ** 2 <= 1000 * variance * 1.01


def test_law_of_sum_of_few_terms_is_exact_on_the_grid():
    sums, law = _law_of_sum(np.array([0.0, 1.0]), np.array([0.25, 0.75]), 3)
    likely = law > 1e-12
    assert sums[likely] == pytest.approx([0, 1, 2, 3])
    assert law[likely] == pytest.approx([1 / 64, 9 / 64, 27 / 64, 27 / 64])


def test_certain_outputs_are_never_unlikely():
    """An output that tells each coin for certain makes the largest sum."""
    law = CertaintyLaw(np.ones(1), np.ones(1))
    weights = Weights(np.ones(1), np.array([50]))
    assert tail_bound(50.0, weights, law) == 1.0


@pytest.mark.slow
def test_rounding_error_is_added_for_very_many_coins():
    """The Fourier transform of the law of one term is raised to the power of the number of coins, with its rounding error."""
    coins, share = 10**8, 0.3
    sums, law = _law_of_sum(np.array([0.0, 1.0]), np.array([1 - share, share]), coins)
    whole = np.abs(sums - np.rint(sums)) < 1e-9
    exact = np.where(whole, binom.pmf(np.rint(sums), coins, share), 0.0)
    weights = Weights(np.ones(1), np.array([coins]))
    added = tail_bound(1e6, weights, CertaintyLaw(np.zeros(1), np.ones(1)))  # a hundred standard deviations
    assert np.abs(law - exact).sum() < added < 1e-6
