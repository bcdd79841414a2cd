"""Roots by Brent's method, against those of scipy."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from lidp import InvalidArgument
from lidp.curves.roots import root


@pytest.mark.parametrize("seed", range(40))
def test_the_root_of_a_polynomial_is_that_of_scipy(seed):
    coefficients = np.random.default_rng(seed).normal(size=4)
    coefficients[0] = -sum(coefficients[1:]) - math.copysign(1, coefficients[-1])  # signs differ at 0 and 1

    def function(x):
        return float(np.polyval(coefficients, x))

    assert root(function, 0.0, 1.0) == pytest.approx(brentq(function, 0.0, 1.0, xtol=1e-12), abs=2e-12)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-12])
def test_the_root_is_within_its_tolerance(tolerance):
    assert abs(root(lambda x: math.exp(x) - 2, -5.0, 30.0, tolerance=tolerance) - math.log(2)) < 2 * tolerance


def test_a_function_that_is_zero_at_an_end_has_its_root_there():
    assert root(lambda x: x - 1, 1.0, 5.0) == 1.0
    assert root(lambda x: x - 5, 1.0, 5.0) == 5.0


def test_ends_of_one_sign_are_refused():
    with pytest.raises(InvalidArgument, match="same sign at 1 and at 2"):
        root(lambda x: x, 1.0, 2.0)


def test_the_root_of_a_function_with_tiny_values_is_found():
    """Products of such values are 0 in double precision, and steps that would be divided by them are not taken."""
    assert root(lambda x: 1e-300 * (x**3 - 2), 0.0, 5.0) == pytest.approx(2 ** (1 / 3), abs=1e-11)
