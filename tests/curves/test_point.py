import numpy as np
import pytest
from scipy.optimize import linprog

from lidp.curves import PointCurve

OUTPUTS = 4


def largest_divergence(epsilon, delta, order):
    """Return the largest H_order(P‖Q) over all pairs on four outputs that are (ε, δ)-DP in both directions.

    The LP has the variables P, Q and the positive parts of P - e^ε·Q and of Q - e^ε·P. Two outputs form the set whose
    probabilities are compared.
    """
    n = OUTPUTS
    chosen = np.array([1.0, 1.0, 0.0, 0.0])
    none = np.zeros((n, n))
    unit = np.eye(n)
    bound = np.exp(epsilon)
    above = np.hstack([unit, -bound * unit, -unit, none])
    below = np.hstack([-bound * unit, unit, none, -unit])
    sums = np.zeros((2, 4 * n))
    sums[0, 2 * n : 3 * n] = sums[1, 3 * n :] = 1
    whole = np.zeros((2, 4 * n))
    whole[0, :n] = whole[1, n : 2 * n] = 1
    solution = linprog(
        np.concatenate([-chosen, np.exp(order) * chosen, np.zeros(2 * n)]),
        A_ub=np.vstack([above, below, sums]),
        b_ub=np.concatenate([np.zeros(2 * n), [delta, delta]]),
        A_eq=whole,
        b_eq=[1, 1],
    )
    return max(0.0, -solution.fun)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-3), (0.3, 0.1), (3.0, 0.02), (0.0, 0.05)])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.9, 1.0])
def test_curve_is_the_largest_of_all_mechanisms_with_that_point(epsilon, delta, share):
    """Below ε it is attained; at ε it is δ. The linear programmes are solved to about 1e-7."""
    order = share * epsilon
    value = float(PointCurve(epsilon, delta).forward(np.array([order]))[0])
    assert value == pytest.approx(largest_divergence(epsilon, delta, order), abs=1e-7)


def test_curve_beyond_its_epsilon_stays_at_delta():
    """An output that reveals everything with probability δ is allowed at any ε."""
    assert PointCurve(1.0, 0.01).forward(np.array([1.0, 5.0, 900.0])) == pytest.approx(0.01, rel=1e-9)
    assert (PointCurve(1.0, 0.0).forward(np.array([1.0, 5.0, 900.0])) == 0).all()


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 900.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1, 0.9])
def test_scale_is_a_number_for_every_point(epsilon, delta):
    assert 0 < PointCurve(epsilon, delta).scale <= 40
