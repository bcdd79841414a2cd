import numpy as np
import pytest

from lidp import Direction, EpsilonBound, FixedThreshold, JointBeta, Scores
from lidp.stats.joint_beta import credible_epsilon


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize(("inserted", "held_out", "n"), [(60, 20, 100), (900, 880, 1000), (30, 0, 50)])
def test_bound_is_the_quantile_of_a_simulated_posterior(direction, inserted, held_out, n):
    rng = np.random.default_rng(1)
    p1 = rng.beta(inserted + 0.5, n - inserted + 0.5, 2_000_000)
    p0 = rng.beta(held_out + 0.5, n - held_out + 0.5, 2_000_000)
    delta = 0.01
    with np.errstate(invalid="ignore", divide="ignore"):
        forward = np.where(p1 > delta, np.log((p1 - delta) / p0), 0)
        backward = np.where(1 - p0 > delta, np.log((1 - p0 - delta) / (1 - p1)), 0)
    epsilon = {"forward": forward, "backward": backward, "both": np.maximum(forward, backward)}[direction]
    expected = max(0.0, float(np.quantile(epsilon, 0.05)))
    result = credible_epsilon(
        np.array([[n - inserted, inserted]]), np.array([[n - held_out, held_out]]), delta, 0.05, direction
    )
    assert result[0] == pytest.approx(expected, abs=0.01)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("level", [1e-3, *(pytest.param(level, marks=pytest.mark.slow) for level in (1e-6, 1e-9))])
def test_small_levels_are_computed_accurately(level, monkeypatch):
    counts = np.array([[150, 50]]), np.array([[198, 2]])
    result = credible_epsilon(*counts, 1e-5, level, Direction.BOTH)[0]
    monkeypatch.setattr("lidp.stats.joint_beta._NODES", 3000)
    assert result == pytest.approx(credible_epsilon(*counts, 1e-5, level, Direction.BOTH)[0], abs=1e-3)


def test_empty_arm_gives_no_bound():
    heads = Scores(scores=np.arange(20.0).reshape(-1, 1), coins=np.ones((20, 1)))
    result = JointBeta(threshold=FixedThreshold(3.0)).bound(heads, delta=0, failure_probability=0.05)
    assert result.epsilon == 0
    assert EpsilonBound.from_json(result.to_json()) == result
