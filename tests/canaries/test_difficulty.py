"""Estimates of the difficulty of examples from the losses of a few models."""

import numpy as np
import pytest

from lidp import AuditFailed
from lidp.canaries.difficulty import difficulty


def losses_of(means, spreads, models, seed=0):
    rng = np.random.default_rng(seed)
    return means + spreads * rng.standard_normal((models, len(spreads)))


def test_similar_examples_get_similar_estimates():
    means, spreads = difficulty(losses_of(np.full(300, 2.5), np.full(300, 0.3), 8))
    assert np.ptp(np.log(spreads)) < 0.5  # those of 8 models themselves differ by a factor of several
    assert np.abs(means - 2.5).max() < 0.1


@pytest.mark.parametrize("models", [4, 8, 32])
def test_estimates_of_different_examples_are_better_than_raw_ones(models):
    rng = np.random.default_rng(1)
    true_means, true_spreads = rng.normal(2, 0.5, 400), 0.2 * np.exp(rng.normal(0, 0.5, 400))
    errors = []
    for seed in range(20):
        losses = losses_of(true_means, true_spreads, models, seed)
        means, spreads = difficulty(losses)
        plain = losses.std(axis=0, ddof=1)
        errors.append(
            [
                np.var(np.log(spreads / true_spreads)) / np.var(np.log(plain / true_spreads)),
                np.mean((means - true_means) ** 2) / np.mean((losses.mean(axis=0) - true_means) ** 2),
            ]
        )
        assert np.corrcoef(np.log(spreads), np.log(true_spreads))[0, 1] > 0.6
        assert np.corrcoef(means, true_means)[0, 1] > 0.9
    assert (np.mean(errors, axis=0) < 1).all()


def test_estimates_do_not_depend_on_units_or_order():
    losses = losses_of(np.linspace(0, 3, 50), np.linspace(0.1, 1, 50), 6)
    means, spreads = difficulty(losses)
    other_means, other_spreads = difficulty(7 - 1e-8 * losses[:, ::-1])
    np.testing.assert_allclose(other_means[::-1], 7 - 1e-8 * means, rtol=1e-12)
    np.testing.assert_allclose(other_spreads[::-1], 1e-8 * spreads, rtol=1e-5)


def test_an_example_with_constant_loss_does_not_dominate_the_others():
    losses = losses_of(np.zeros(20), np.ones(20), 16)
    losses[:, 3] = 1.0
    means, spreads = difficulty(losses)
    assert spreads[3] >= 1e-3 * spreads.max()
    assert np.isfinite([means, spreads]).all()


@pytest.mark.parametrize(
    "losses", [np.ones((1, 5)), np.full((3, 5), 0.1), np.zeros((2, 3)), np.arange(5.0)[None].repeat(3, axis=0)]
)
def test_spreads_are_one_if_all_models_agree(losses):
    means, spreads = difficulty(losses)
    np.testing.assert_allclose(means, losses[0], rtol=1e-15)
    np.testing.assert_array_equal(spreads, 1)


@pytest.mark.parametrize("wildness", [0.5, 1, 2])
def test_outliers_do_not_degrade_the_other_estimates(wildness):
    """Spreads may differ by orders of magnitude; means are still estimated as well as before."""
    rng = np.random.default_rng(2)
    true_means, true_spreads = rng.normal(2, 0.5, 200), 0.2 * np.exp(wildness * rng.standard_normal(200))
    losses = losses_of(true_means, true_spreads, 32)
    means, spreads = difficulty(losses)
    errors, plain = (np.abs(estimate - true_means) / true_spreads for estimate in (means, losses.mean(axis=0)))
    assert np.median(errors) <= 1.1 * np.median(plain)
    assert np.quantile(errors, 0.99) <= 2 * np.quantile(plain, 0.99)
    assert np.abs(np.log(spreads / true_spreads)[true_spreads > 1e-2 * true_spreads.max()]).max() < 1


@pytest.mark.parametrize("wild", [np.nan, np.inf, 1e200])
def test_losses_that_are_not_finite_end_the_audit(wild):
    losses = losses_of(np.zeros(5), np.ones(5), 4)
    losses[2, 3] = wild
    with pytest.raises(AuditFailed, match=f"example 3 of the pool is {wild:g}".replace("+", r"\+")):
        difficulty(losses)


def test_a_single_example_keeps_its_mean_and_spread():
    losses = losses_of(np.array([2.0]), np.array([0.5]), 10)
    means, spreads = difficulty(losses)
    assert means[0] == pytest.approx(losses.mean())
    assert spreads[0] == pytest.approx(losses.std(ddof=1))
