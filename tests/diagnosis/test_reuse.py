"""Noise that is used twice is found, and fresh noise is not taken for it."""

import numpy as np
import pytest

from lidp.diagnosis.evidence import Evidence
from lidp.diagnosis.reuse import correlation_limits, runs_share_noise
from tests.diagnosis.simulated_runs import Training

EXPONENT = 5.0


def sums(correlation, rng, steps=100, canaries=20):
    """Return the sums of autocorrelated noise: of lagged products, squares, squares of the last tenth, and their number."""
    fresh = rng.standard_normal((steps, canaries))
    noise = fresh.copy()
    for step in range(1, steps):
        noise[step] = correlation * noise[step - 1] + np.sqrt(1 - correlation**2) * fresh[step]
    return (noise[1:] * noise[:-1]).sum(), (noise**2).sum(), (noise[-10:] ** 2).sum(), float(noise.size)


@pytest.mark.parametrize("correlation", [-0.9, -0.3, 0.0, 0.3, 0.9, 1.0])
def test_limits_hold_at_every_correlation(correlation):
    rng = np.random.default_rng(0)
    limits = [correlation_limits(*sums(correlation, rng), EXPONENT) for _ in range(300)]
    # Each pair fails with probability at most 2 e^-5 = 0.0135; more than 14 of 300 fail with probability below 2e-5.
    assert sum(not lower <= correlation <= upper for lower, upper in limits) <= 14


def test_limits_are_close_to_the_truth():
    rng = np.random.default_rng(1)
    for correlation in (0.0, 0.5, 0.9, 1.0):
        lower, upper = correlation_limits(*sums(correlation, rng, steps=1000), EXPONENT)
        assert correlation - 0.1 < lower <= correlation <= upper < correlation + 0.2


def test_the_same_noise_at_every_step_has_a_correlation_close_to_one():
    assert correlation_limits(*sums(1.0, np.random.default_rng(2), steps=200), 12.0)[0] > 0.98


def test_uneven_noise_is_not_taken_for_reused_noise():
    rng = np.random.default_rng(3)
    for _ in range(200):
        noise = rng.standard_normal((160, 20))
        noise[20:] = 0.0
        lagged, squares = (noise[1:] * noise[:-1]).sum(), (noise**2).sum()
        lower, upper = correlation_limits(lagged, squares, 0.0, float(noise.size), EXPONENT, unevenness=8.0)
        assert lower <= 0 <= upper


def test_nothing_is_known_without_noise_or_steps():
    assert correlation_limits(0.0, 0.0, 0.0, 100, EXPONENT) == (-1.0, 1.0)
    assert correlation_limits(0.0, 1.0, 1.0, 1, EXPONENT) == (-1.0, 1.0)
    assert correlation_limits(1e50, 1.0, 1.0, 100, EXPONENT) == (-1.0, 1.0)


def test_runs_with_one_seed_share_noise():
    rng = np.random.default_rng(4)
    assert runs_share_noise(Evidence.of(Training(seed=5).runs(3, rng)), 10.0) is True
    assert runs_share_noise(Evidence.of(Training().runs(3, rng)), 10.0) is False


def test_canaries_at_the_same_coordinate_of_one_run_do_not_count_as_shared_noise():
    runs = Training(canaries=8, seed=5).runs(1, np.random.default_rng(6))
    fresh = Training(canaries=8).run(1, np.random.default_rng(7))
    doubled = {name: np.concatenate([array[: len(array) // 2]] * 2) for name, array in fresh.evidence.items()}
    fresh.evidence.update(doubled)
    assert runs_share_noise(Evidence.of([*runs, fresh]), 10.0) is False


def test_too_few_steps_or_runs_tell_nothing_about_shared_noise():
    rng = np.random.default_rng(8)
    assert runs_share_noise(Evidence.of(Training(steps=1, seed=5).runs(3, rng)), 10.0) is None
    assert runs_share_noise(Evidence.of(Training(seed=5).runs(1, rng)), 10.0) is None
