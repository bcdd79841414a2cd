"""Simulated audits of the planner: the same in parts as in one piece, and raced no further than needed."""

import math

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, LeaveOneOut, Scores
from lidp.curves.gaussian import sigma_for
from lidp.mechanisms.gaussian import simulate_gaussian
from lidp.simulated_audits import SimulatedAudit, race

CLAIM = Claim(0.5, 1e-5)
SIGMA = sigma_for(8.0, 1e-5)


def whole_scores(design, dimension, trials, seed):
    """Return all trials of a simulated audit, drawn at once."""
    if dimension is not None:
        return simulate_gaussian(design, trials=trials, sigma=SIGMA, dimension=dimension, seed=seed)
    first, second = np.random.default_rng([seed, design.canaries]).spawn(2)
    if design.has_coins:
        coins = first.integers(0, 2, (trials, design.canaries))
        return Scores(scores=coins + SIGMA * second.standard_normal(coins.shape), coins=coins)
    inserted = 1 + SIGMA * first.standard_normal((trials, design.canaries))
    return Scores(inserted=inserted, held_out=SIGMA * second.standard_normal((trials, design.held_out)))


@pytest.mark.parametrize("design", [CoinFlip(2), LeaveOneOut(8, 8)], ids=str)
@pytest.mark.parametrize("dimension", [None, 500])
def test_a_simulated_audit_in_growing_parts_refutes_where_the_whole_one_does(design, dimension):
    audit = SimulatedAudit(design, CLAIM, SIGMA, dimension, 0.05, seed=3)
    refuted_at = audit.trials_to_refute(300)
    whole = lidp.bound(whole_scores(design, dimension, 300, seed=3), claim=CLAIM, failure_probability=0.05)
    assert 8 < refuted_at < 300
    assert refuted_at == whole.refuted_after(CLAIM)
    assert audit.epsilon_after(20) == whole.epsilon_after(20)
    assert audit.epsilon_after(290) == whole.epsilon_after(290)
    assert audit.trials_to_refute(int(refuted_at) - 1) == math.inf
    assert audit.refuted_by(int(refuted_at)) == refuted_at


def audits(number):
    return [SimulatedAudit(CoinFlip(2), CLAIM, SIGMA, None, 0.05, seed) for seed in range(number)]


@pytest.mark.parametrize("winners", [3, 12, 20])
@pytest.mark.parametrize("watched", [0, 60])
def test_a_race_knows_the_numbers_of_its_winners_and_those_within_what_is_watched(winners, watched):
    full = np.array([audit.trials_to_refute(400) for audit in audits(20)])
    raced = np.array(race(audits(20), most=400, winners=winners, watched=watched))
    known = np.isfinite(raced)
    assert np.isfinite(full).all()
    assert (raced[known] == full[known]).all()
    assert (np.sort(raced)[:winners] == np.sort(full)[:winners]).all()
    assert known[full <= watched].all()


def test_a_race_ends_long_before_its_slowest_audit():
    contestants = audits(20)
    race(contestants, most=400, winners=1, watched=0)
    slowest = [audit for audit in contestants[8:] if math.isinf(audit.refuted_by(0))]  # the first 8 are pilots
    assert max(audit._done for audit in slowest) < max(audit.trials_to_refute(400) for audit in slowest)


def test_a_race_that_nobody_wins_is_run_to_its_end():
    contestants = audits(10)
    assert race(contestants, most=9, winners=10, watched=0) == [math.inf] * 10
    assert {audit._done for audit in contestants} == {9}
