import math

import mpmath
import pytest

from lidp.stats.gaussian_curve import LARGEST_EPSILON, gaussian_delta, gaussian_epsilon


@pytest.mark.parametrize("mu", [0.05, 0.465, 2.0, 8.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 10.0])
def test_delta_in_multiprecision(mu, epsilon):
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        expected = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    assert gaussian_delta(mu, epsilon) == pytest.approx(float(expected), rel=1e-8, abs=1e-300)


@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_epsilon_inverts_delta(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert epsilon == 0 or gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)


def test_the_papers_noise_buys_less_than_nominal():
    """σ² = 4.62 is ε = 2 by the paper's Rényi formula, 1.84 exactly."""
    sigma2, delta = 4.62, 1e-5
    nominal = min(
        a / (2 * sigma2) + math.log(1 / (a * delta)) / (a - 1) + math.log1p(-1 / a)
        for a in (1 + i / 100 for i in range(1, 5000))
    )
    assert nominal == pytest.approx(2.0, abs=0.01)
    assert gaussian_epsilon(1 / math.sqrt(sigma2), delta) == pytest.approx(1.84, abs=0.01)


def test_the_ends():
    assert gaussian_epsilon(0.0, 1e-5) == 0
    assert gaussian_epsilon(1e-6, 1e-5) == 0
    assert gaussian_epsilon(1e6, 1e-5) == LARGEST_EPSILON
    assert gaussian_delta(0.0, 0.0) == 0
