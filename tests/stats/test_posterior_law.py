"""The law of certainties that a privacy curve allows, against exact laws."""

import numpy as np
import pytest
from scipy.special import expit

from lidp.curves import GaussianCurve, LaplaceCurve, PointCurve
from lidp.stats.posterior_law import certainty_law
from tests.stats.curve_nulls import EventAlone, sampled_event, sampled_scores

CURVES = {
    "gaussian": GaussianCurve(1.0),
    "much noise": GaussianCurve(0.05),
    "little noise": GaussianCurve(6.0),
    "laplace": LaplaceCurve(0.7),
    "point": PointCurve(2.0, 1e-5),
    "pure point": PointCurve(1.0, 0.0),
    "dp-sgd": EventAlone(sampled_event()),
}


def mean_excess(values, probabilities, at):
    """The mean of max(m - t, 0), which determines all means of convex functions that increase."""
    return np.maximum(values[:, None] - at, 0.0).T @ probabilities


@pytest.mark.parametrize("name", CURVES)
def test_law_is_a_law_of_certainties(name):
    law = certainty_law(CURVES[name])
    assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert (law.probabilities >= 0).all()
    assert (np.diff(law.values) >= 0).all()
    assert law.values[0] >= 0
    assert law.values[-1] <= 1


@pytest.mark.parametrize("name", CURVES)
def test_mean_certainty_is_the_divergence_at_zero(name):
    """Of a fair coin, the mean of |2π - 1| is the total variation distance."""
    curve, law = CURVES[name], certainty_law(CURVES[name])
    at_zero = np.maximum(*curve.both(np.zeros(1)))[0]
    assert law.probabilities @ law.values == pytest.approx(at_zero, rel=1e-6)


@pytest.mark.parametrize("mu", [0.05, 1.0, 6.0])
def test_gaussian_law_is_above_the_exact_one_and_close(mu):
    rng = np.random.default_rng(1)
    certainties = np.abs(np.tanh(mu * (mu / 2 + rng.standard_normal(400_000)) / 2))
    at = np.linspace(0, 0.95, 20)
    law = certainty_law(GaussianCurve(mu))
    exact = np.maximum(certainties[:, None] - at, 0.0).mean(axis=0)
    allowed = mean_excess(law.values, law.probabilities, at)
    error = 5 * np.maximum(certainties[:, None] - at, 0.0).std(axis=0) / np.sqrt(len(certainties)) + 1e-9
    assert (allowed >= exact - error).all()
    assert (allowed <= exact * 1.001 + error).all()


def test_pure_point_is_randomized_response():
    law = certainty_law(PointCurve(1.0, 0.0))
    likely = law.probabilities > 1e-9
    assert law.values[likely] == pytest.approx(np.tanh(0.5), abs=1e-9)


def test_sampled_law_is_that_of_the_likelihood_ratio():
    """The directions of the curve differ; the law has to allow the mechanism that has this curve exactly."""
    rng = np.random.default_rng(2)
    coins = rng.integers(0, 2, (400_000, 1))
    certainties = np.abs(2 * expit(sampled_scores()(rng, coins)[:, 0]) - 1)
    at = np.linspace(0, 0.9, 10)
    law = certainty_law(EventAlone(sampled_event()))
    exact = np.maximum(certainties[:, None] - at, 0.0).mean(axis=0)
    assert mean_excess(law.values, law.probabilities, at) == pytest.approx(exact, rel=0.02, abs=1e-4)


@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.1])
def test_less_noise_allows_more(ratio):
    at = np.linspace(0, 0.99, 50)
    more, less = (certainty_law(GaussianCurve(mu)) for mu in (1.0, ratio))
    if ratio > 1:
        more, less = less, more
    assert (
        mean_excess(more.values, more.probabilities, at) >= mean_excess(less.values, less.probabilities, at) - 1e-9
    ).all()
