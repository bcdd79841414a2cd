import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from lidp.curves import LaplaceCurve


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0, 1.5])
def test_curve_equals_numerical_integration(scale, share):
    """H_e(Laplace(1) ‖ Laplace(0)), the integral of the positive part of p - e^e·q, in pieces between the kinks."""
    epsilon = share / scale

    def excess(x):
        return max(0.0, (np.exp(-abs(x - 1) / scale) - np.exp(epsilon - abs(x) / scale)) / (2 * scale))

    kink = (1 + scale * epsilon) / 2  # where p = e^e·q
    pieces = [0.0, min(kink, 1.0), 1.0, 1 + 60 * scale]
    exact = sum(quad(excess, a, b, epsabs=1e-13)[0] for a, b in zip(pieces, pieces[1:], strict=False))
    value = float(LaplaceCurve(scale).forward(np.array([epsilon]))[0])
    assert value == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("scale", [1e-6, 0.01, 1.0, 1e3, 1e9, 1e300])
def test_curve_is_never_below_the_exact_one(scale):
    curve = LaplaceCurve(scale)
    epsilons = curve.largest_loss * np.array([0, 1e-12, 0.1, 0.5, 0.9, 0.999999])
    with mpmath.workdps(60):
        for epsilon, value in zip(epsilons, curve.forward(epsilons), strict=True):
            exact = -mpmath.expm1((mpmath.mpf(float(epsilon)) - mpmath.mpf(curve.largest_loss)) / 2)
            assert exact <= value <= exact * (1 + 1e-9)


def test_curve_is_exactly_zero_from_the_largest_loss_on():
    curve = LaplaceCurve(0.3)
    assert (curve.forward(curve.largest_loss * np.array([1.0, 1.1, 5.0])) == 0).all()
    assert curve.epsilon(0.0) == curve.largest_loss == curve.rungs()[-1]
