import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, MixtureOfGaussiansDpEvent
from scipy import stats
from scipy.integrate import quad

from lidp import Claim
from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve
from lidp.curves.loss_distribution import SLACK, SLACK_PER_STEP

GAUSSIAN, LAPLACE = dp_accounting.GaussianDpEvent(1.2), dp_accounting.LaplaceDpEvent(0.8)
SAMPLED = dp_accounting.PoissonSampledDpEvent(0.1, GAUSSIAN)
EVENTS = {
    "gaussian": GAUSSIAN,
    "laplace": LAPLACE,
    "discrete laplace": DiscreteLaplaceDpEvent(0.7, 1),
    "mixture of gaussians": MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.5, 0.3, 0.2]),
    "sampled laplace": dp_accounting.PoissonSampledDpEvent(0.3, LAPLACE),
    "truncated batches": dp_accounting.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 120, 1.0),
    "steps": dp_accounting.SelfComposedDpEvent(SAMPLED, 50),
    "several": dp_accounting.ComposedDpEvent([GAUSSIAN, dp_accounting.SelfComposedDpEvent(LAPLACE, 3), SAMPLED]),
    "nothing": dp_accounting.NoOpDpEvent(),
}
EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 12, 25), [400.0, 750.0, 1000.0]])


def curve_of(event, neighbours="add-remove"):
    return Claim.from_event(event, delta=1e-3, neighbours=neighbours).curve


SLOW = ("mixture of gaussians", "truncated batches")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in EVENTS])
def test_curve_is_that_of_the_accountant_plus_the_slack(name):
    """It lies between those for a finer and for a coarser discretisation."""
    curve = curve_of(EVENTS[name])
    ours = np.maximum(*curve.both(EPSILONS))
    finer, coarser = (
        pld.PLDAccountant(value_discretization_interval=interval).compose(EVENTS[name]) for interval in (1e-4, 2e-3)
    )
    assert (ours >= [finer.get_delta(epsilon) for epsilon in EPSILONS]).all()
    slack = 2 * curve.least_value
    assert (ours <= np.array([coarser.get_delta(epsilon) for epsilon in EPSILONS]) + slack).all()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_gaussian_event_is_the_gaussian_curve(neighbours):
    """Replacing a record moves the sum twice as far as removing it."""
    curve = curve_of(dp_accounting.GaussianDpEvent(2.0), neighbours)
    exact = GaussianCurve(0.5 if neighbours == "add-remove" else 1.0)
    epsilons = np.linspace(0, 4, 30)
    for values in curve.both(epsilons):
        assert (values >= exact.forward(epsilons) / (1 + 1e-8)).all()
        assert values == pytest.approx(exact.forward(epsilons), rel=1e-3, abs=1e-8)


def test_laplace_event_is_the_laplace_curve():
    epsilons = np.linspace(0, 2, 30)
    exact = LaplaceCurve(0.8).forward(epsilons)
    for values in curve_of(LAPLACE).both(epsilons):
        assert (values >= exact * (1 - 1e-12)).all()
        assert values == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.0), (0.5, 0.7), (0.01, 0.5)])
def test_removing_a_record_gives_the_forward_curve_of_sampled_noise(rate, noise):
    """By numerical integration: with the record the output is (1-q)·N(0) + q·N(1), without it N(0)."""

    def exact(epsilon, forward):
        def excess(x):
            without = stats.norm.pdf(x, 0, noise)
            present = (1 - rate) * without + rate * stats.norm.pdf(x, 1, noise)
            above, below = (present, without) if forward else (without, present)
            return max(0.0, above - math.exp(epsilon) * below)

        # The two densities cross at one point, where p/q = e^ε or e^-ε: the integrand has a kink there.
        odds = (math.exp(epsilon if forward else -epsilon) - 1 + rate) / rate
        if odds <= 0:
            return 0.0
        kink = 0.5 + noise**2 * math.log(odds)
        far = kink + 15 * noise if forward else kink - 15 * noise
        return abs(quad(excess, kink, far, epsabs=1e-13, limit=200)[0])

    curve = curve_of(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise)))
    epsilons = np.array([0.0, 0.02, 0.05, 0.1, 0.3, 0.8, 1.5])
    differ = False
    for values, forward in zip(curve.both(epsilons), (True, False), strict=True):
        expected = np.array([exact(epsilon, forward) for epsilon in epsilons])
        assert (values >= expected - 1e-12).all()
        assert values == pytest.approx(expected, rel=2e-3, abs=1e-6)
        differ = differ or not np.allclose(values, curve.backward(epsilons), rtol=0.05, atol=1e-6)
    assert differ  # else the test could not tell the directions apart


def test_directions_of_many_steps_by_simulation():
    """DP-SGD, 20 steps at rate .1: H is the mean of (1 - e^(ε-L))⁺; within 5 standard errors, so one failure in 100,000."""
    steps, rate, noise, size = 20, 0.1, 0.8, 40_000
    rng = np.random.default_rng(0)
    curve = Claim.dpsgd(noise_multiplier=noise, sampling_rate=rate, steps=steps).curve
    epsilons = np.array([0.0, 0.5, 1.0, 2.0])
    for forward, values in zip((True, False), curve.both(epsilons), strict=True):
        taken = rng.random((size, steps)) < rate if forward else np.zeros((size, steps), dtype=bool)
        z = taken + noise * rng.standard_normal((size, steps))
        losses = np.log(1 - rate + rate * np.exp((z - 0.5) / noise**2)).sum(axis=1) * (1 if forward else -1)
        parts = np.maximum(-np.expm1(epsilons - losses[:, None]), 0)
        error = 5 * parts.std(axis=0) / math.sqrt(size)
        assert (np.abs(parts.mean(axis=0) - values) < error + 1e-4).all()
    assert curve.forward(np.array([2.0])) > 1.1 * curve.backward(np.array([2.0]))


def test_the_accountant_still_has_the_attributes_that_curves_read():
    """They are private: a version of dp-accounting without them must fail here, not in an audit."""
    accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(SAMPLED)
    for side in ("_pmf_remove", "_pmf_add"):
        masses = getattr(accountant._pld, side)
        dense = masses.to_dense_pmf()
        losses = (np.arange(dense.size) + dense._lower_loss) * dense._discretization
        assert len(dense._probs) == len(losses)
        for epsilon in (0.0, 0.1, 0.5):
            above = losses > epsilon
            delta = dense._infinity_mass - (np.asarray(dense._probs)[above] * np.expm1(epsilon - losses[above])).sum()
            assert delta == pytest.approx(masses.get_delta_for_epsilon(epsilon), abs=1e-12)


@pytest.mark.parametrize("noise", [0.003, pytest.param(0.0014, marks=pytest.mark.slow)])
def test_values_at_epsilons_whose_exponential_overflows_are_not_too_small(noise):
    """Laplace noise of scale .0014 has privacy losses up to 714; e^710 is beyond the largest float."""
    values = EventCurve(f'{{"event": "LaplaceDpEvent", "noise_multiplier": {noise}}}').forward(EPSILONS)
    assert (values >= LaplaceCurve(noise).forward(EPSILONS)).all()


@pytest.mark.slow
def test_slack_covers_the_fourier_transforms_of_a_million_steps():
    """The total probability of the losses for removing a record is 1 at least, up to errors of the transforms."""
    accountant = pld.PLDAccountant(value_discretization_interval=5e-4)
    steps = 1_000_000
    sampled = dp_accounting.PoissonSampledDpEvent(1e-3, dp_accounting.GaussianDpEvent(1.5))
    accountant.compose(dp_accounting.SelfComposedDpEvent(sampled, steps))
    masses = accountant._pld._pmf_remove.to_dense_pmf()
    missing = 1 - masses._infinity_mass - np.sum(masses._probs)
    assert SLACK < missing < (SLACK + SLACK_PER_STEP * steps) / 5
    curve = Claim.dpsgd(noise_multiplier=1.5, sampling_rate=1e-3, steps=steps).curve
    assert curve.least_value == pytest.approx(2 * (SLACK + SLACK_PER_STEP * steps))
