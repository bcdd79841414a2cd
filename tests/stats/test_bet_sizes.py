import json

import numpy as np
import pytest

from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve, PointCurve
from lidp.stats.bet_sizes import (
    SUSPECTED_RATIOS,
    best_powers,
    caps_of,
    gambler_caps,
    kernels,
    log_charge,
    simulate_wagers,
    simulated_trials,
)
from lidp.stats.curve_family import family_of

SAMPLED = {
    "event": "SelfComposedDpEvent",
    "count": 20,
    "of": {
        "event": "PoissonSampledDpEvent",
        "sampling_probability": 0.1,
        "of": {"event": "GaussianDpEvent", "noise_multiplier": 0.8},
    },
}


def test_charge_is_the_price_of_all_caps_for_all_coins():
    caps, prices = np.array([0.2, 0.1]), np.array([0.3, 0.05])
    assert log_charge(caps, prices, 64) == pytest.approx(np.log(1 + 32 * (0.2 * 0.3 + 0.1 * 0.05)))


def test_infinite_caps_are_free_where_the_curve_is_zero_and_only_there():
    free = log_charge(np.array([0.2, np.inf]), np.array([0.3, 0.0]), 8)
    assert free == pytest.approx(np.log(1 + 4 * 0.2 * 0.3))
    assert np.isinf(log_charge(np.array([np.inf]), np.array([1e-300]), 8))


@pytest.mark.parametrize("curve", [GaussianCurve(0.8), LaplaceCurve(0.8), PointCurve(1.0, 1e-3)], ids=str)
@pytest.mark.parametrize("canaries", [1, 64])
def test_caps_are_finite_wherever_they_are_charged(curve, canaries):
    family = family_of(curve, 1e-3)
    caps = gambler_caps(family, canaries)
    assert caps.shape == (len(family), len(SUSPECTED_RATIOS), family.rungs.shape[1])
    assert (caps >= 0).all()
    prices = np.maximum(family.forward, family.backward)[:, None, :] + np.zeros_like(caps)
    assert np.isinf(caps[prices == 0]).all()
    assert np.isfinite(caps[prices > 0]).all()
    assert np.isfinite(log_charge(caps, 2 * prices, canaries)).all()


def test_nothing_is_bet_at_rungs_whose_value_is_a_rounding_error():
    """The loss of one Laplace mechanism is bounded: beyond, its curve is the slack against rounding errors and nothing else."""
    curve = EventCurve('{"event": "LaplaceDpEvent", "noise_multiplier": 1.0}')
    family = family_of(curve, 1e-5)
    slack = np.maximum(family.forward, family.backward) <= curve.least_value
    assert slack[family.claimed].any()
    assert not slack[family.claimed].all()
    caps = gambler_caps(family, 8)
    assert (caps[np.repeat(slack[:, None, :], len(SUSPECTED_RATIOS), axis=1)] == 0).all()


def test_power_below_the_first_stands_for_no_bets():
    rungs = np.array([0.0, 0.5])
    assert caps_of(np.array([-25, -25]), rungs).tolist() == [0.0, 0.0]
    assert caps_of(np.array([0, 2]), rungs) == pytest.approx([1.0, 2 * np.exp(-0.5)])


@pytest.mark.parametrize(("canaries", "trials"), [(1, 32_768), (64, 512), (4096, 32), (100_000, 2), (1_000_000, 1)])
def test_number_of_simulated_trials_is_limited_for_very_many_coins(canaries, trials):
    assert simulated_trials(canaries) == trials


def test_wealth_beyond_the_largest_float_does_not_stop_the_search():
    """At a rung without a price there is no cap, and the wealth doubles with every certain coin."""
    chances, right = np.full((1, 5000), 0.999), np.ones((1, 5000), dtype=bool)
    growth = kernels().mean_log_wealth(chances, right, np.array([1.0]), np.array([np.inf]))
    assert np.log(1e200) <= growth < np.log(1e201)
    assert np.isfinite(best_powers(LaplaceCurve(1.0), 1.4, 50_000)).all()


def test_caps_depend_on_the_claim_only():
    """They are fixed before any output is seen, and are the same in every process."""
    first = best_powers(GaussianCurve(0.8), 1.15, 16)
    best_powers.cache_clear()
    np.random.default_rng(0).random(10)
    assert best_powers(GaussianCurve(0.8), 1.15, 16) == first


def test_search_improves_on_where_it_starts():
    curve, canaries = GaussianCurve(0.8), 64
    wagers = simulate_wagers(curve.with_noise(1 / 1.4), 512, canaries)
    rungs = curve.rungs()
    prices = np.add(*curve.both(rungs))

    def growth(powers):
        caps = caps_of(np.array(powers), rungs)
        return kernels().mean_log_wealth(*wagers, np.exp(rungs), caps) - log_charge(caps, prices, canaries)

    found = growth(best_powers(curve, 1.4, canaries))
    assert found > growth([-4] * len(rungs))
    assert found > 0.1


@pytest.mark.parametrize(
    ("curve", "losses"),
    [
        (GaussianCurve(1.0), lambda rng, coins: coins + rng.standard_normal(coins.shape) - 0.5),
        (
            LaplaceCurve(0.8),
            lambda rng, coins: (lambda x: (np.abs(x) - np.abs(x - 1)) / 0.8)(coins + rng.laplace(0, 0.8, coins.shape)),
        ),
    ],
    ids=["gaussian", "laplace"],
)
def test_simulated_coins_have_the_law_of_the_privacy_loss(curve, losses):
    """Share of right guesses, and quantiles of the chances, against the mechanism itself; within 5 standard errors or so."""
    simulated = simulate_wagers(curve, 2000, 16)
    rng = np.random.default_rng(1)
    coins = rng.integers(0, 2, (2000, 16))
    exact = losses(rng, coins)
    assert simulated.right.mean() == pytest.approx(((exact > 0) == coins).mean(), abs=0.02)
    quantiles = np.linspace(0.1, 0.9, 9)
    chances = 1 / (1 + np.exp(-np.abs(exact)))
    assert np.quantile(simulated.chances, quantiles) == pytest.approx(np.quantile(chances, quantiles), abs=0.02)


def test_simulated_coins_of_an_asymmetric_curve_are_calibrated():
    """Among coins with a chance of about p, a share p of the guesses is right."""
    simulated = simulate_wagers(EventCurve(json.dumps(SAMPLED)), 4000, 16)
    for low, high in ((0.5, 0.6), (0.6, 0.7), (0.7, 0.9)):
        chosen = (simulated.chances >= low) & (simulated.chances < high)
        assert simulated.right[chosen].mean() == pytest.approx(simulated.chances[chosen].mean(), abs=0.03)
