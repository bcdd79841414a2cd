"""What the figures of a claimed curve show, against formulas and plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from lidp import Claim, CoinFlip
from lidp.curves import GaussianCurve, LaplaceCurve, PointCurve
from lidp.report.curve_figure_data import _NEAR, ClaimedTradeOff, NoiseGauge, TradeOff
from lidp.report.figure_data import STEPS, BoundPath, Gauge, claimed_epsilon
from lidp.report.roc import excluded_corners
from tests.report import curve_results
from tests.report.results import result_like, scores_like

RATES = np.linspace(0.0, 1.0, 501)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_trade_off_of_a_gaussian_curve_is_that_of_two_normal_distributions(mu):
    exact = ndtr(ndtri(1 - RATES) - mu)
    found = TradeOff.of(GaussianCurve(mu), 1.0).at(RATES)
    np.testing.assert_allclose(found, exact, atol=2e-3)
    assert (found <= exact + 1e-12).all()  # excludes no more than the curve


def test_trade_off_of_laplace_noise_is_that_of_two_laplace_distributions():
    least = np.exp(-2.0)
    between = least / (
        4 * np.maximum(RATES, 1e-300)
    )  # thresholds between the two centres; above and below them, straight lines
    exact = np.select([least > 2 * RATES, RATES <= 0.5], [1 - RATES / least, between], least * (1 - RATES))
    found = TradeOff.of(LaplaceCurve(0.5), 2.0).at(RATES)
    np.testing.assert_allclose(found, exact, atol=2e-3)
    assert (found <= exact + 1e-9).all()


@pytest.mark.parametrize(("epsilon", "delta"), [(1.3, 0.02), (0.0, 0.1), (8.0, 1e-5)])
def test_trade_off_of_a_point_has_the_corners_of_the_claim(epsilon, delta):
    data = TradeOff.of(PointCurve(epsilon, delta), epsilon)
    lines = np.maximum(1 - delta - np.exp(epsilon) * RATES, np.exp(-epsilon) * (1 - delta - RATES))
    np.testing.assert_allclose(data.at(RATES), np.maximum(lines, 0.0), atol=1e-9)
    (x, y), _ = excluded_corners(Claim(epsilon, delta))
    assert 1 - data.at(x[:-1]) == pytest.approx(y[:-1], abs=1e-9)


def test_trade_off_equals_a_loop_over_orders_and_directions():
    curve = curve_results.dpsgd().bound.curve
    forward, backward = curve.both(np.array([0.0, 0.4]))
    assert forward[1] != backward[1]  # sampling makes adding and removing a record different
    found = TradeOff.of(curve, 1.0).at(RATES)
    largest = np.zeros_like(RATES)
    for order in np.linspace(0.0, 5.0, 800):
        above, below = (float(side[0]) for side in curve.both(np.array([order])))
        largest = np.maximum(largest, 1 - above - np.exp(order) * RATES)
        largest = np.maximum(largest, np.exp(-order) * (1 - below - RATES))
    np.testing.assert_allclose(found, largest, atol=1e-3)


@pytest.mark.parametrize("curve", [GaussianCurve(0.01), GaussianCurve(1.0), GaussianCurve(30.0), PointCurve(3.0, 0.0)])
def test_visible_corners_are_few_and_close_to_the_line(curve):
    data = TradeOff.of(curve, 3.0)
    x, y = data.visible()
    assert (x[0], x[-1], y[-1]) == (0.0, 1.0, 0.0)
    assert len(x) < 340
    np.testing.assert_allclose(np.interp(RATES, x, y), data.at(RATES), atol=_NEAR)
    assert (np.diff(data.false_positives) >= 0).all()
    assert (np.diff(data.false_negatives) <= 0).all()


def test_excluded_corners_are_mirror_images():
    (x, y), (mirrored_x, mirrored_y) = TradeOff.of(GaussianCurve(1.0), 4.0).excluded_corners()
    assert (x[-1], y[-1]) == (0.0, 1.0)
    np.testing.assert_allclose(mirrored_x, 1 - x)
    np.testing.assert_allclose(mirrored_y, 1 - y)


def test_exceeded_curve_is_that_of_the_effective_noise():
    result = curve_results.refuted()
    data = ClaimedTradeOff.of(result)
    assert data.refuted
    assert data.noise == result.bound.effective_noise < 1
    mu = 1 / result.bound.effective_noise
    np.testing.assert_allclose(data.exceeded.at(RATES), ndtr(ndtri(1 - RATES) - mu), atol=2e-3)
    assert (data.exceeded.at(RATES) <= data.claimed.at(RATES) + 1e-7).all()  # less noise, smaller errors


def test_no_curve_is_computed_that_is_not_drawn():
    assert ClaimedTradeOff.of(curve_results.nothing_excluded()).exceeded is None
    at_the_claim = curve_results.without_family()
    assert at_the_claim.bound.effective_noise == 1.0
    assert ClaimedTradeOff.of(at_the_claim).exceeded is None
    assert ClaimedTradeOff.of(result_like(scores_like(CoinFlip(6)))) is None


def test_gauge_of_the_noise():
    refuted = NoiseGauge.of(curve_results.refuted())
    assert refuted.refuted
    assert refuted.noise_words == "at most 0.5118"
    assert (refuted.name, refuted.claimed, refuted.most) == ("noise multiplier", 1.0, 1.5)
    stands = NoiseGauge.of(curve_results.not_refuted())
    assert not stands.refuted
    assert 1 < stands.noise < stands.most
    nothing = NoiseGauge.of(curve_results.nothing_excluded())
    assert nothing.noise is None
    assert nothing.noise_words == "no amount excluded"
    assert NoiseGauge.of(curve_results.laplace_pair()).noise_words == "below 1"


def test_point_and_curve_without_family_have_no_gauge_of_the_noise():
    assert NoiseGauge.of(result_like(scores_like(CoinFlip(6)))) is None
    assert NoiseGauge.of(curve_results.without_family()) is None
    assert NoiseGauge.of(curve_results.gaussian(0.1, 100, point_only=True)) is None


def test_gauge_of_epsilon_is_about_the_point():
    result = curve_results.refuted()
    data = Gauge.of(result)
    assert data.bound == result.bound.point.epsilon
    assert not data.refuted
    assert Gauge.of(curve_results.refuted_with_point()).refuted


def test_path_has_both_bounds_and_the_trial_at_which_the_curve_fell():
    result = curve_results.refuted()
    data = BoundPath.of(result)
    assert data.fell_at == result.bound.fell_at
    assert data.claim == result.claim.epsilon
    for path, bound in ((data, result.bound), (data.point, result.bound.point)):
        assert path.epsilons[-1] == bound.epsilon
        for trials, epsilon in zip(path.trials, path.epsilons, strict=True):
            assert epsilon == bound.epsilon_after(int(trials))
    point = BoundPath.of(result_like(scores_like(CoinFlip(6))))
    assert point.point is None
    assert point.fell_at is None


def test_thinned_path_keeps_the_trial_at_which_the_curve_fell():
    result = curve_results.refuted()
    path = tuple((i + 1, (i + 1) / 1000) for i in range(5000))
    long = replace(result.bound, path=path, epsilon=5.0, trials=5000, fell_at=1235)
    data = BoundPath.of(replace(result, bound=long))
    assert len(data.trials) <= STEPS
    assert 1235 in data.trials


def test_computed_epsilon_is_rounded_up_unless_that_hides_a_refutation():
    result = curve_results.refuted()
    assert claimed_epsilon(result) == "4.37718"
    assert float(claimed_epsilon(result)) > result.claim.epsilon
    above = (result.claim.epsilon + 4.37718) / 2
    hidden = replace(result, bound=replace(result.bound, epsilon=above))
    assert float(claimed_epsilon(hidden)) == result.claim.epsilon
