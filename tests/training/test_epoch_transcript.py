"""Log-likelihood ratios per epoch, for trainers that shuffle their batches."""

import numpy as np
import pytest

from lidp import Claim, CoinFlip, InvalidArgument, Verdict, audit
from lidp.canaries.coordinates import SpreadCoordinates
from lidp.data import synthetic_purchases
from lidp.training import DPSGD, Kind, Network, Training, TrainingSet, training_target
from lidp.training.transcript import ClaimedSteps, TranscriptRecorder


def recorded(products, claimed):
    """Return the transcript of steps whose residuals have these products with each canary, of gradients of length 1."""
    recorder = TranscriptRecorder(products.shape[1])
    for row in products:
        recorder.add(row, np.ones(len(row)), claimed)
    return recorder.transcript()


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
def test_ratios_are_those_of_taking_part_in_one_step_of_each_epoch(sigma):
    claimed = ClaimedSteps(sigma, 0.2, 1.0, steps_per_epoch=5)
    products = sigma * np.random.default_rng(1).standard_normal((15, 4)) + 0.5
    exponents = ((products - 0.5) / sigma**2).reshape(3, 5, 4)
    expected = np.log(np.exp(exponents).mean(axis=1)).sum(axis=0)
    np.testing.assert_allclose(recorded(products, claimed).log_ratios, expected, rtol=1e-9, atol=1e-9)


def test_steps_of_an_unfinished_epoch_count_with_the_chance_that_the_canary_comes_later():
    claimed = ClaimedSteps(1.0, 0.2, 1.0, steps_per_epoch=5)
    products = np.random.default_rng(2).standard_normal((7, 3))
    ratios = np.exp(products - 0.5)
    expected = np.log(ratios[:5].mean(axis=0)) + np.log((3 + ratios[5:].sum(axis=0)) / 5)
    np.testing.assert_allclose(recorded(products, claimed).log_ratios, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_extreme_residuals_neither_overflow_nor_vanish(size):
    claimed = ClaimedSteps(0.5, 0.25, 1.0, steps_per_epoch=4)
    ratios = recorded(np.full((8, 1), size), claimed).log_ratios
    np.testing.assert_allclose(ratios, 2 * (size - 0.5) / 0.25)


def test_one_step_per_epoch_is_sampling_at_rate_one():
    products = np.random.default_rng(3).standard_normal((6, 2))
    by_epoch, by_step = (
        recorded(products, ClaimedSteps(0.7, 1.0, 1.0, steps_per_epoch=steps)).evidence for steps in (1, 0)
    )
    np.testing.assert_allclose(by_epoch, by_step, rtol=1e-12, atol=1e-12)


def test_all_columns_but_the_first_are_those_of_poisson_sampling():
    products = np.random.default_rng(4).standard_normal((40, 3))
    by_epoch, by_step = (
        recorded(products, ClaimedSteps(0.7, 0.1, 1.0, steps_per_epoch=steps)).evidence for steps in (10, 0)
    )
    np.testing.assert_array_equal(by_epoch[:, :, 1:], by_step[:, :, 1:])
    assert (by_epoch[:, :, 0] != by_step[:, :, 0]).any()


def test_the_ratio_is_a_likelihood_ratio():
    """Without the canary its mean is 1. The mean of so many is off by five standard errors in 1 of a million simulations."""
    rng = np.random.default_rng(5)
    claimed = ClaimedSteps(1.0, 0.1, 1.0, steps_per_epoch=10)
    ratios = np.exp(recorded(rng.standard_normal((20, 40_000)), claimed).log_ratios)
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / np.sqrt(len(ratios))


@pytest.mark.parametrize(("steps_per_epoch", "exact"), [(10, True), (0, False)], ids=["per epoch", "per step"])
def test_only_the_ratio_per_epoch_is_that_of_shuffled_canaries(steps_per_epoch, exact):
    """With the canary in one step of each epoch, the mean of the inverse ratio is 1. Five standard errors, as above."""
    rng = np.random.default_rng(8)
    products = rng.standard_normal((20, 40_000))
    for epoch in (0, 10):
        products[epoch + rng.integers(0, 10, 40_000), np.arange(40_000)] += 1
    claimed = ClaimedSteps(1.0, 0.1, 1.0, steps_per_epoch=steps_per_epoch)
    inverse = np.exp(-recorded(products, claimed).log_ratios)
    assert (abs(inverse.mean() - 1) < 5 * inverse.std() / np.sqrt(len(inverse))) == exact


def test_memory_does_not_grow_with_steps():
    recorder = TranscriptRecorder(3)
    claimed = ClaimedSteps(1.0, 0.1, 1.0, steps_per_epoch=10)
    sizes = set()
    for _ in range(500):
        recorder.add(np.ones(3), np.ones(3), claimed)
        sizes.add(sum(value.nbytes for value in vars(recorder).values() if isinstance(value, np.ndarray)))
    assert len(sizes) == 1
    assert recorder.transcript().steps == 500


def test_the_number_of_steps_per_epoch_must_be_whole():
    with pytest.raises(InvalidArgument, match="steps_per_epoch must be a whole number of at least 1, got 2.5"):
        ClaimedSteps(1.0, 0.1, 1.0, steps_per_epoch=2.5)


def trained(claimed, seed=1):
    """Return the transcript of the built-in trainer with shuffled batches."""
    network = Network(5, 3)
    x = np.random.default_rng(6).standard_normal((40, 5)).astype(np.float32)
    canaries = SpreadCoordinates(network.group_sizes).draw(np.random.default_rng(7), 6)
    data = TrainingSet(x, np.arange(40) % 3, Kind.COORDINATE).with_canaries(canaries[:3]).watching(canaries)
    trainer = DPSGD(
        network, rate=0.2, batch_size=10.0, steps=20, learning_rate=0.1, sigma=0.5, sampling="shuffle", claimed=claimed
    )
    return trainer(data, np.random.default_rng(seed)).value


def test_the_built_in_trainer_has_the_same_two_modes():
    by_step, by_epoch, by_single_step = (
        trained(ClaimedSteps(0.5, rate, 1.0, steps_per_epoch=steps)) for rate, steps in ((1.0, 0), (1.0, 5), (1.0, 1))
    )
    np.testing.assert_allclose(by_single_step.evidence, by_step.evidence, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(by_epoch.evidence[:, :, 1:], by_step.evidence[:, :, 1:])
    assert (by_epoch.log_ratios != by_step.log_ratios).all()
    # A canary is at most in one step of an epoch, so its log-likelihood ratio is at least that of the mean step.
    assert (by_epoch.log_ratios >= by_step.log_ratios / 5 - 1e-9).all()


@pytest.mark.slow
def test_shuffled_batches_of_the_built_in_trainer_are_refuted():
    """Claimed as Poisson samples with ε = 16, in one epoch; refuted with 10 to 18 models for the first seeds."""
    claim = Claim(16.0, 1e-5)
    made = training_target(
        synthetic_purchases(400, 10, features=60, classes=4),
        claim,
        training=Training(epochs=1, batch_size=40, learning_rate=0.5, sampling="shuffle"),
        canary="dirac-gradient",
        canaries=64,
        scores="transcript",
    )
    assert made.trainer.claimed.steps_per_epoch == 12
    result = audit(made.target, claim=claim, design=CoinFlip(64), trials=64, seed=1)
    assert result.verdict is Verdict.REFUTED
