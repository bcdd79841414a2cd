import numpy as np
import pytest

from lidp.curves import GaussianCurve, PointCurve, ZeroConcentratedCurve

ORDERS = 1 + np.geomspace(1e-4, 1e4, 20_000)


def rho_of(p, q):
    """Return the smallest ρ for which a pair of distributions on finitely many outputs is ρ-zCDP, both ways, rounded up."""
    largest = 0.0
    for first, second in ((p, q), (q, p)):
        ratios = np.log(first / second)
        exponents = (ORDERS[:, None] - 1) * ratios
        peak = exponents.max(axis=1)
        divergences = (peak + np.log((first * np.exp(exponents - peak[:, None])).sum(axis=1))) / (ORDERS - 1)
        largest = max(largest, float((divergences / ORDERS).max()))
    return largest * (1 + 1e-6)


def divergence(p, q, epsilons):
    return np.maximum(p - np.exp(epsilons)[:, None] * q, 0).sum(axis=1)


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.465, 1.0, 3.0, 8.0])
def test_gaussian_mechanisms_stay_below_the_curve(mu):
    epsilons = np.concatenate([mu * np.linspace(0, 8, 60), mu**2 * np.linspace(0, 3, 30)])
    curve = ZeroConcentratedCurve(mu**2 / 2)
    assert (curve.forward(epsilons) >= GaussianCurve(mu).forward(epsilons)).all()


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 6.0])
def test_randomised_response_stays_below_the_curve(epsilon):
    right = 1 / (1 + np.exp(-epsilon))
    rho = rho_of(np.array([right, 1 - right]), np.array([1 - right, right]))
    epsilons = np.linspace(0, epsilon, 50)
    assert (ZeroConcentratedCurve(rho).forward(epsilons) >= PointCurve(epsilon, 0.0).forward(epsilons) - 1e-12).all()


def test_random_pairs_stay_below_the_curve():
    """200 pairs on four outputs, from nearly equal to far apart, skewed and not."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.dirichlet(np.full(4, rng.choice([0.3, 1.0, 5.0]))) + 1e-9
        q = p * np.exp(rng.choice([0.01, 0.3, 2.0]) * rng.standard_normal(4))
        p, q = p / p.sum(), q / q.sum()
        curve = ZeroConcentratedCurve(rho_of(p, q))
        epsilons = np.linspace(0, 1.1 * np.abs(np.log(p / q)).max(), 20)
        for first, second in ((p, q), (q, p)):
            assert (curve.forward(epsilons) >= divergence(first, second, epsilons) - 1e-12).all()
