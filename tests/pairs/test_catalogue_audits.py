"""Audits of the whole catalogue: broken ones fall, right ones stand at their exact ε."""

import numpy as np
import pytest

from lidp import Claim, Verdict, audit_pair
from lidp.mechanisms.catalogue import CATALOGUE

DELTA = 1e-5
BROKEN = [name for name, entry in CATALOGUE.items() if not entry.correct]
RIGHT = [name for name, entry in CATALOGUE.items() if entry.correct]


def target(name, epsilon=1.0):
    entry = CATALOGUE[name]
    delta = DELTA if entry.needs_delta else 0.0
    return entry.make(epsilon, delta), entry.truth(epsilon, delta), delta


def runs_needed(name, runs, seeds):
    made, _, delta = target(name)
    results = [audit_pair(made, claim=Claim(1.0, delta), runs=runs, seed=seed) for seed in range(seeds)]
    return [result.bound.trials if result.verdict is Verdict.REFUTED else np.inf for result in results]


@pytest.mark.parametrize(("name", "most"), [("svt5", 500), ("laplace-half-scale", 800)])
def test_how_many_runs_it_takes(name, most):
    assert np.median(runs_needed(name, 4 * most, 20)) <= most


@pytest.mark.slow
def test_how_many_runs_it_takes_for_the_hard_one():
    assert np.median(runs_needed("svt3", 40_000, 20)) <= 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_broken_ones_are_refuted_within_200_000_runs(name):
    assert np.isfinite(runs_needed(name, 200_000, 2)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_right_ones_stand_in_200_of_200_seeds(name):
    """At their exact ε on these data sets, which is the hardest claim that holds."""
    made, truth, delta = target(name)
    options = {"claim": Claim(truth, delta), "runs": 1500, "failure_probability": 1e-3}
    refuted = sum(audit_pair(made, seed=seed, **options).verdict is Verdict.REFUTED for seed in range(200))
    assert refuted == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "randomized-response", "svt1", "noisy-max", "rappor"])
def test_false_alarms_of_right_ones(name):
    """The same at a failure probability that can be seen."""
    from lidp.testing.simulations import assert_covers

    made, truth, delta = target(name)
    refuted = sum(
        audit_pair(made, claim=Claim(truth, delta), runs=1000, seed=seed).verdict is Verdict.REFUTED for seed in range(100)
    )
    assert_covers(refuted, 100, 0.05)
