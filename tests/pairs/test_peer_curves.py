"""Mechanisms of real libraries have the privacy curve that they state; with 15 % less noise they do not."""

import pytest

from lidp import Claim, Verdict, audit_pair

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SCALE = 0.8
"""Laplace scale, or standard deviation, for sensitivity 1."""


def opendp_measurement(make, scale):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    measurement = space >> getattr(dp.m, make)(scale=scale)
    return lambda value, _: measurement(value)


def diffprivlib_laplace(scale):
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")
    mechanism = mechanisms.Laplace(epsilon=1 / scale, sensitivity=1.0)
    return lambda value, _: mechanism.randomise(value)


def diffprivlib_gaussian(scale):
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")
    mechanism = mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0)
    mechanism._scale = scale
    return lambda value, _: mechanism.randomise(value)


LAPLACE, GAUSSIAN = Claim.laplace(scale=SCALE), Claim.gaussian(mu=1 / SCALE)
LIBRARIES = {
    "OpenDP Laplace": (lambda scale: opendp_measurement("then_laplace", scale), LAPLACE),
    "OpenDP Gaussian": (lambda scale: opendp_measurement("then_gaussian", scale), GAUSSIAN),
    "diffprivlib Laplace": (diffprivlib_laplace, LAPLACE),
    "diffprivlib Gaussian": (diffprivlib_gaussian, GAUSSIAN),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_stated_curve_stands_in_forty_of_forty_seeds(library):
    """A false alarm in any of the forty audits has a probability of at most 4e-5."""
    make, claim = LIBRARIES[library]
    options = {"claim": claim, "runs": 1500, "failure_probability": 1e-6}
    verdicts = [audit_pair(make(SCALE), 0.0, 1.0, seed=seed, **options).verdict for seed in range(40)]
    assert verdicts.count(Verdict.NOT_REFUTED) == 40


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("seed", range(3))
def test_fifteen_per_cent_less_noise_is_refuted_within_50_000_runs(library, seed):
    make, claim = LIBRARIES[library]
    result = audit_pair(make(0.85 * SCALE), 0.0, 1.0, claim=claim, runs=50_000, seed=seed)
    assert result.verdicts["curve"] is Verdict.REFUTED
