import mpmath
import numpy as np
import pytest

from lidp.curves.gaussian import LARGEST_EPSILON, GaussianCurve, gaussian_delta, gaussian_epsilon, renyi_epsilon, sigma_for
from lidp.errors import InvalidArgument


@pytest.mark.parametrize("mu", [0.05, 0.465, 2.0, 8.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 10.0])
def test_delta_equals_multiprecision(mu, epsilon):
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        expected = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    assert gaussian_delta(mu, epsilon) == pytest.approx(float(expected), rel=1e-8, abs=1e-300)


@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_epsilon_inverts_delta(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert epsilon == 0 or gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)


def test_renyi_calibrated_noise_gives_a_smaller_exact_epsilon():
    """σ² = 4.62 is ε = 2 by the paper's Rényi formula, 1.84 exactly."""
    sigma = sigma_for(2.0, 1e-5, renyi=True)
    assert sigma**2 == pytest.approx(4.62, abs=0.005)
    assert gaussian_epsilon(1 / sigma, 1e-5) == pytest.approx(1.84, abs=0.005)


@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
@pytest.mark.parametrize("mu", [0.05, 0.465, 2.0, 8.0])
def test_renyi_accounting_equals_brute_force(mu, delta):
    orders = 1 + np.geomspace(1e-4, 1e6, 200_000)
    every = orders * mu**2 / 2 - np.log(orders * delta) / (orders - 1) + np.log1p(-1 / orders)
    assert renyi_epsilon(mu, delta) == pytest.approx(max(0.0, every.min()), rel=1e-6, abs=1e-9)
    assert renyi_epsilon(mu, delta) >= gaussian_epsilon(mu, delta)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("renyi", [False, True])
def test_sigma_for_inverts_the_curve(epsilon, renyi):
    mu = 1 / sigma_for(epsilon, 1e-5, renyi=renyi)
    assert (renyi_epsilon if renyi else gaussian_epsilon)(mu, 1e-5) == pytest.approx(epsilon, rel=1e-7)
    with pytest.raises(InvalidArgument, match="at most 500"):
        sigma_for(501.0, 1e-5, renyi=renyi)


@pytest.mark.parametrize("sigma", [0.64, 2.149, 4.0])
def test_against_dp_accounting(sigma):
    accounting = pytest.importorskip("dp_accounting", reason="pip install lidp[peers] for dp-accounting")
    exact = accounting.get_epsilon_gaussian(sigma, 1e-5)
    assert gaussian_epsilon(1 / sigma, 1e-5) == pytest.approx(exact, rel=1e-6)
    orders = (1 + np.geomspace(0.1, 300, 20_000)).tolist()
    accountant = accounting.rdp.RdpAccountant(orders)
    accountant.compose(accounting.GaussianDpEvent(sigma))
    assert renyi_epsilon(1 / sigma, 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-5)


def test_extreme_arguments_of_the_curve():
    assert gaussian_epsilon(0.0, 1e-5) == 0
    assert gaussian_epsilon(1e-6, 1e-5) == 0
    assert gaussian_epsilon(1e6, 1e-5) == LARGEST_EPSILON
    assert gaussian_delta(0.0, 0.0) == 0


@pytest.mark.parametrize("mu", [*np.geomspace(1e-14, 40.0, 28), 1.0, 0.465])
def test_curve_is_never_below_the_exact_one_and_close_to_it(mu):
    """In multiprecision. Where h is above 1e-290 and μ not tiny, h is too large by at most 1e-6 of itself."""
    steps = np.array([0, 1e-9, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 36, 39])
    epsilons = np.concatenate([mu * steps, [1e-300, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0, 700.0, 1000.0]])
    curve = GaussianCurve(float(mu))
    with mpmath.workdps(80):
        for epsilon, value in zip(epsilons, curve.forward(epsilons), strict=True):
            m, e = mpmath.mpf(float(mu)), mpmath.mpf(float(epsilon))
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            assert value >= exact, (mu, epsilon)
            if mu > 1e-3 and exact > 1e-290:
                assert value <= exact * (1 + 1e-6), (mu, epsilon)
    assert (curve.backward(epsilons) == curve.forward(epsilons)).all()


def test_curve_of_a_mu_that_promises_nothing_is_refused():
    with pytest.raises(InvalidArgument, match="at most 40"):
        GaussianCurve(40.5)
