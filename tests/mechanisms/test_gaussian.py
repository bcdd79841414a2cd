"""The simulation without d-dimensional vectors has the law of the naive one."""

import numpy as np
import pytest
from scipy import stats

from lidp import CoinFlip, InvalidArgument, LeaveOneOut, Neighbours, ReplaceOne
from lidp.mechanisms.gaussian import draw_gaussian, simulate_gaussian
from lidp.mechanisms.gaussian_naive import simulate_gaussian_naively

VIEWS = {
    "single": lambda s: s[:, 0],
    "last": lambda s: s[:, -1],
    "mean": lambda s: s.mean(axis=1),
    "pair": lambda s: s[:, 0] * s[:, -1],
    "largest": lambda s: s.max(axis=1),
    "spread": lambda s: s.std(axis=1),
}


def assert_same_law(fast, naive):
    for name, view in VIEWS.items():
        # In one dimension scores cancel to 0, or to a last bit that only one of the two keeps.
        a, b = (np.round(view(some), 5) + 0.0 for some in (fast, naive))
        assert stats.ks_2samp(a, b, method="asymp").pvalue > 1e-4, name


# One dimension; more canaries than dimensions; as many; strong interference; weak.
SIZES = [(1, 1), (1, 5), (4, 3), (6, 6), (8, 3), (5, 40)]


@pytest.mark.parametrize("sigma", [0.1, 0.7])
@pytest.mark.parametrize("design", [LeaveOneOut, ReplaceOne])
@pytest.mark.parametrize(("canaries", "dimension"), SIZES)
def test_scores_of_two_arms_have_the_naive_law(design, canaries, dimension, sigma):
    options = {"trials": 2000, "sigma": sigma, "dimension": dimension}
    ours = simulate_gaussian(design(canaries, 3), seed=1, **options).arms()
    naive = simulate_gaussian_naively(design(canaries, 3), seed=2, **options).arms()
    for a, b in zip(ours, naive, strict=True):
        assert_same_law(a, b)
    # ... and jointly: the arms share canaries, and one output in replace-one.
    joint = [np.hstack([inserted.sum(axis=1, keepdims=True), held_out]) for inserted, held_out in (ours, naive)]
    assert_same_law(*joint)
    assert_same_law(*(np.abs(both) for both in joint))


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(("canaries", "dimension"), SIZES)
def test_scores_of_coin_flips_have_the_naive_law(neighbours, canaries, dimension):
    design = CoinFlip(canaries, neighbours)
    options = {"trials": 2000, "sigma": 0.7, "dimension": dimension}
    scores, coins = simulate_gaussian(design, seed=1, **options).flips()
    naive_scores, naive_coins = simulate_gaussian_naively(design, seed=2, **options).flips()
    assert_same_law(scores, naive_scores)
    assert_same_law(scores * (2 * coins - 1), naive_scores * (2 * naive_coins - 1))
    assert coins.mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("design", [LeaveOneOut(16, 16), ReplaceOne(16, 16), CoinFlip(16)], ids=str)
def test_scores_have_the_naive_law_with_many_trials(design):
    options = {"trials": 40_000, "sigma": 2.149, "dimension": 200}
    ours = simulate_gaussian(design, seed=3, **options).to_arrays()
    naive = simulate_gaussian_naively(design, seed=4, **options).to_arrays()
    for name in set(ours) - {"coins", "failed"}:
        assert_same_law(ours[name], naive[name])


def test_pairs_of_canaries_have_the_right_covariance_in_high_dimension():
    """Two inserted canaries have covariance 1/d; two held-out ones are uncorrelated but share the length of the output."""
    inserted, held_out = simulate_gaussian(LeaveOneOut(2, 2), trials=200_000, sigma=0.1, dimension=100).arms()
    assert np.cov(inserted.T)[0, 1] == pytest.approx(0.01, abs=5 * 0.02 / 200_000**0.5)
    assert np.cov(held_out.T)[0, 1] == pytest.approx(0.0, abs=5 * 0.02 / 200_000**0.5)


@pytest.mark.parametrize("design", [LeaveOneOut(8, 5), ReplaceOne(8, 5), CoinFlip(8)], ids=str)
def test_a_trial_depends_on_its_seed_and_number_only(design):
    def arrays(**options):
        return simulate_gaussian(design, sigma=1.0, **{"trials": 20_000, "seed": 3, "threads": 2, **options}).to_arrays()

    many = arrays()
    for other in (arrays(threads=1), arrays(trials=70)):
        for name, array in other.items():
            np.testing.assert_array_equal(array, many[name][: len(array)])
    changed = arrays(seed=4, trials=70)
    assert all((changed[name] != many[name][:70]).mean() > 0.3 for name in changed if name != "failed")


@pytest.mark.parametrize("design", [LeaveOneOut(8, 5), ReplaceOne(8, 5), CoinFlip(8)], ids=str)
def test_trials_drawn_in_parts_are_those_drawn_at_once(design):
    whole = draw_gaussian(design, trials=600, seed=3).scores(1.0).to_arrays()
    part = draw_gaussian(design, trials=350, first=250, seed=3).scores(1.0).to_arrays()
    for name, array in part.items():
        np.testing.assert_array_equal(array, whole[name][250:])


def test_draws_give_the_scores_of_every_sigma():
    draws = draw_gaussian(LeaveOneOut(4, 4), trials=3, seed=5)
    for sigma in (1.0, 2.0):
        once = simulate_gaussian(LeaveOneOut(4, 4), trials=3, sigma=sigma, seed=5)
        for a, b in zip(draws.scores(sigma).arms(), once.arms(), strict=True):
            np.testing.assert_array_equal(a, b)
    first, second, third = (draws.scores(sigma).arms()[0] for sigma in (1.0, 2.0, 3.0))
    assert third - second == pytest.approx(second - first, abs=1e-5)


def test_no_score_is_undefined_in_one_dimension():
    """Millions of normals are drawn, none of which may be 0: lengths are divided by them."""
    scores = simulate_gaussian(LeaveOneOut(1, 4096), trials=8192, sigma=1.0, dimension=1)
    assert np.isfinite(scores.arms()[1]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials must be"),
        ({"dimension": 0}, "dimension must be"),
        ({"sigma": -1.0}, "sigma must be"),
        ({"sigma": float("nan")}, "sigma must be"),
        ({"seed": -1}, "seed must be"),
        ({"threads": -1}, "threads must be"),
        ({"threads": 0}, "threads must be"),
        ({"design": "coin-flip"}, "design must be"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    with pytest.raises(InvalidArgument, match=message):
        simulate_gaussian(**{"design": CoinFlip(2), "trials": 2, "sigma": 1.0, **options})
