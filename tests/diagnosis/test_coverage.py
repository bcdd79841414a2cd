"""All limits of a diagnosis hold at once, except with the stated probability, in whatever way a training deviates."""

import numpy as np
import pytest
from scipy import stats

from lidp.diagnosis import Quantity
from tests.diagnosis.simulated_runs import Training, diagnosed

CORRECT = Training()
FEW_CANARIES = Training(canaries=4, steps=40)
ONE_CANARY = Training(canaries=1, steps=40)
TRAININGS = {
    "correct": CORRECT,
    "few canaries": FEW_CANARIES,
    "one canary": ONE_CANARY,
    "one step": Training(canaries=64, steps=1),
    "all records in every batch": Training(canaries=8, steps=40, rate=1.0),
    "no participation": Training(canaries=8, steps=40, rate=0.0),
    "little noise": Training(canaries=16, steps=60, noise=0.3),
    "more often and more": Training(canaries=16, steps=60, noise=0.7, rate=0.3, contribution=1.5),
    "partly reused noise": Training(canaries=16, steps=60, reused_share=0.4),
    "noise that partly cancels": Training(canaries=16, steps=60, reused_share=-0.4),
    "reused noise": Training(canaries=16, steps=60, reused_share=1.0),
}


def misses(training, trials, repetitions, **options):
    """Return how many diagnoses have a limit on the wrong side of the truth, or see shared noise."""
    truth = {
        Quantity.NOISE: training.noise,
        Quantity.CORRELATION: training.reused_share,
        Quantity.PRODUCT: training.rate * training.contribution,
        Quantity.RATE: training.rate,
        Quantity.CONTRIBUTION: training.contribution,
    }
    count = 0
    for seed in range(repetitions):
        diagnosis = diagnosed(training.runs(trials, np.random.default_rng([seed, trials])), **options)
        wrong = any(
            (one.lower is not None and one.lower > truth[one.quantity])
            or (one.upper is not None and one.upper < truth[one.quantity])
            for one in diagnosis.measurements
        )
        count += wrong or bool(diagnosis.runs_share_noise)
    return count


def check(training, trials, repetitions, probability, **options):
    """Assert that limits fail as rarely as they should; a correct diagnosis fails this with probability 1e-6."""
    most = stats.binom.ppf(1 - 1e-6, repetitions, probability)
    assert misses(training, trials, repetitions, failure_probability=probability, **options) <= most


@pytest.mark.parametrize("trials", [1, 2])
@pytest.mark.parametrize("name", ["few canaries", "one canary"])
def test_all_limits_hold_together(name, trials):
    check(TRAININGS[name], trials, 100, 0.2)


def test_upper_limits_hold_for_canaries_that_may_overlap():
    check(FEW_CANARIES, 2, 100, 0.2, separate_canaries=False)


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("probability", [0.05, 0.5])
def test_all_limits_hold_together_in_many_repetitions(name, trials, probability):
    check(TRAININGS[name], trials, 600, probability)


@pytest.mark.slow
@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_upper_limits_hold_for_any_overlap(overlap):
    from tests.diagnosis.simulated_runs import record_of

    rng, wrong, repetitions = np.random.default_rng(9), 0, 600
    for _ in range(repetitions):
        common, separate = rng.standard_normal((60, 1)), rng.standard_normal((60, 16))
        noise = np.sqrt(overlap) * common + np.sqrt(1 - overlap) * separate
        records = [record_of(0, noise, rng.integers(0, 2, 16))]
        diagnosis = diagnosed(records, separate_canaries=False, failure_probability=0.5)
        wrong += any(one.upper is not None and one.upper < 1 for one in diagnosis.measurements)
    assert wrong <= stats.binom.ppf(1 - 1e-6, repetitions, 0.5)


@pytest.mark.slow
def test_limits_hold_if_the_audit_stops_at_the_worst_moment():
    wrong, repetitions = 0, 400
    for seed in range(repetitions):
        runs = Training(canaries=4, steps=16).runs(6, np.random.default_rng(seed))
        stops = (diagnosed(runs[:trials], failure_probability=0.5) for trials in range(1, 7))
        wrong += any(
            one.below or one.above for stop in stops for one in stop.measurements if one.quantity is Quantity.NOISE
        )
    assert wrong <= stats.binom.ppf(1 - 1e-6, repetitions, 0.5)
