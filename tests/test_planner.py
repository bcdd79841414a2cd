"""The budget planner: its budgets suffice, its power is right, and it refuses what it cannot plan."""

import numpy as np
import pytest

import lidp
from lidp import (
    Claim,
    Target,
    Verdict,
)
from lidp.canaries.sphere import UniformSphere
from lidp.curves.gaussian import gaussian_epsilon, sigma_for
from lidp.mechanisms.gaussian import GaussianSum, InnerProduct
from lidp.simulated_audits import SimulatedAudit


def gaussian_target(epsilon, delta, share, dimension):
    return Target(GaussianSum(share * sigma_for(epsilon, delta), dimension), UniformSphere(dimension), InnerProduct())


@pytest.mark.slow
def test_half_the_noise_is_refuted_within_the_planned_budget():
    claim, dimension = Claim(1.0, 1e-5), 500
    mu = 2 / sigma_for(1.0, 1e-5)
    planned = lidp.plan(
        claim, suspect=gaussian_epsilon(mu, 1e-5), canaries=64, dimension=dimension, power=0.95, repeats=100
    )
    budget = planned.recommended
    assert budget is not None
    target = gaussian_target(1.0, 1e-5, 0.5, dimension)
    trials = budget.models // budget.design.models_per_trial
    refuted = sum(
        lidp.audit(target, claim=claim, design=budget.design, trials=trials, seed=seed).verdict is Verdict.REFUTED
        for seed in range(50)
    )
    assert refuted >= 45


@pytest.mark.slow
def test_power_of_real_audits_is_within_5_points_of_the_plan():
    claim, suspect, dimension = Claim(0.5, 1e-5), 3.0, 60
    planned = lidp.plan(claim, suspect=suspect, canaries=16, dimension=dimension, power=0.8, repeats=600)
    row = planned.rows[0]
    assert row.models is not None
    target = gaussian_target(suspect, 1e-5, 1.0, dimension)
    refuted = [
        lidp.audit(target, claim=claim, design=row.design, trials=row.models, seed=10_000 + seed).verdict is Verdict.REFUTED
        for seed in range(600)
    ]
    assert np.mean(refuted) == pytest.approx(row.power, abs=0.05)


def test_plan_recommends_a_budget_in_words_and_numbers():
    planned = lidp.plan(Claim(0.5, 1e-5), suspect=4.0, canaries=32, repeats=20, models=16, seconds_per_model=60)
    assert [type(row.design).__name__ for row in planned.rows] == ["CoinFlip", "LeaveOneOut"]
    best = planned.recommended
    assert best is not None
    assert best.at_models == 16
    assert 0 < best.epsilon < 4
    assert 0 <= best.power <= 1
    assert "canaries by coin flips and coin-wager" in planned.sentence()
    assert "minutes" in planned.sentence() or "seconds" in planned.sentence()
    assert planned.to_dict()["recommended"]["models"] == best.models


def test_plan_refuses_claims_that_it_cannot_plan_for():
    with pytest.raises(lidp.InvalidArgument, match="suspect must be above"):
        lidp.plan(Claim(2.0, 1e-5), suspect=1.0)
    with pytest.raises(lidp.InvalidArgument, match="delta"):
        lidp.plan(Claim(2.0), suspect=3.0)
    with pytest.raises(lidp.InvalidArgument, match="add-remove"):
        lidp.plan(Claim(2.0, 1e-5, "replace-one"), suspect=3.0)


@pytest.mark.parametrize("suspicion", [{"suspect": 4.0}, {"noise_ratio": 0.3}], ids=["point", "curve"])
def test_a_plan_survives_json_exactly(suspicion):
    planned = lidp.plan(
        Claim(0.5, 1e-5), **suspicion, canaries=16, repeats=3, seconds_per_model=7, price_per_hour=2, workers=3
    )
    again = lidp.BudgetPlan.from_json(planned.to_json())
    assert again == planned
    assert again.to_json() == planned.to_json()


@pytest.mark.parametrize("text", ['{"claim": 1}', '{"colour": 3}', "[1]", "{"])
def test_json_of_something_else_is_no_plan(text):
    with pytest.raises(lidp.InvalidArgument, match="not a budget plan|not JSON"):
        lidp.BudgetPlan.from_json(text)


@pytest.mark.parametrize("models", [None, 3, 40])
def test_a_plan_equals_that_of_audits_which_are_all_simulated_to_their_end(models):
    claim, power, repeats = Claim(0.5, 1e-5), 0.8, 20
    row = lidp.plan(claim, suspect=4.0, canaries=16, power=power, repeats=repeats, models=models).rows[0]
    sigma = sigma_for(4.0, 1e-5)
    audits = [SimulatedAudit(row.design, claim, sigma, None, 0.05, seed) for seed in range(repeats)]
    needed = sorted(audit.trials_to_refute(200) for audit in audits)
    assert np.isfinite(needed).all()
    assert row.models == needed[15]
    assert row.at_models == (models or row.models)
    assert row.power == np.mean(np.array(needed) <= row.at_models)
    assert row.epsilon == pytest.approx(np.mean([audit.epsilon_after(row.at_models) for audit in audits]), rel=1e-12)
