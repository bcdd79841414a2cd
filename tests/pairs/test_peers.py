"""Mechanisms of real libraries: right ones pass at their stated ε, the same with a sabotaged scale are refuted."""

import numpy as np
import pytest

from lidp import Claim, Verdict, audit_pair

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ZEROS, ONES = [0.0] * 20, [0.0] * 19 + [1.0]


def opendp_laplace(scale):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0)), size=20), dp.symmetric_distance()
    measurement = space >> dp.t.then_sum() >> dp.m.then_laplace(scale=scale)
    return (lambda data, _: measurement(data)), measurement.map(2) if hasattr(measurement, "map") else None


def opendp_randomized_response(epsilon):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    measurement = dp.m.make_randomized_response_bool(float(np.exp(epsilon) / (1 + np.exp(epsilon))))
    return lambda bit, _: measurement(bit)


def diffprivlib_laplace(epsilon):
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")
    mechanism = mechanisms.Laplace(epsilon=epsilon, sensitivity=1.0)
    return lambda count, _: mechanism.randomise(float(count))


def diffprivlib_geometric(epsilon):
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")
    mechanism = mechanisms.Geometric(epsilon=epsilon, sensitivity=1)
    return lambda count, _: mechanism.randomise(int(count))


def diffprivlib_mean(epsilon):
    tools = pytest.importorskip("diffprivlib.tools")
    return lambda data, _: float(tools.mean(np.array(data), epsilon=epsilon, bounds=(0.0, 1.0)))


def numpy_histogram(epsilon):
    def mechanism(data, rng):
        counts = np.histogram(data, bins=[0, 0.5, 1])[0]
        return counts + rng.laplace(0, 1 / epsilon, 2)

    return mechanism


# name: (mechanism at an ε, d0, d1)
LIBRARIES = {
    "OpenDP randomized response": (opendp_randomized_response, False, True),
    "OpenDP Laplace": (lambda epsilon: opendp_laplace(1 / epsilon)[0], ZEROS, ONES),
    "diffprivlib Laplace": (diffprivlib_laplace, 0, 1),
    "diffprivlib geometric": (diffprivlib_geometric, 0, 1),
    "diffprivlib mean": (diffprivlib_mean, ZEROS, ONES),
    "numpy histogram": (numpy_histogram, [0.1] * 5, [0.1] * 5 + [0.9]),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_right_in_forty_of_forty_seeds(library):
    """No seed fixes the noise of most libraries. A false alarm in any of the forty audits has a probability of at most 4e-5."""
    make, d0, d1 = LIBRARIES[library]
    mechanism = make(1.0)
    options = {"claim": Claim(1.0), "runs": 1500, "failure_probability": 1e-6}
    verdicts = [audit_pair(mechanism, d0, d1, seed=seed, **options).verdict for seed in range(40)]
    assert verdicts.count(Verdict.NOT_REFUTED) == 40


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("seed", range(3))
def test_sabotaged(library, seed):
    """Noise for an ε of 3 where 1 is claimed."""
    make, d0, d1 = LIBRARIES[library]
    assert audit_pair(make(3.0), d0, d1, claim=Claim(1.0), runs=20_000, seed=seed).verdict is Verdict.REFUTED
