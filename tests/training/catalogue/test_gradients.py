"""Gradients of single records, against explicit gradients and finite differences."""

import numpy as np
import pytest

from lidp.training import Network
from lidp.training.catalogue.gradients import Batch, batch_norm_gradients, clip_rows, record_gradients
from tests.training import brute_force


def batch_of(network, count, rng):
    labels = rng.integers(0, network.classes, count)
    return Batch(rng.standard_normal((count, network.features)), labels, rng.standard_normal((2, network.size)))


@pytest.mark.parametrize("hidden", [(), (5,), (5, 4)])
def test_gradients_are_those_of_each_example_alone(hidden):
    rng = np.random.default_rng(1)
    network = Network(6, 3, hidden)
    theta, batch = rng.standard_normal(network.size), batch_of(network, 7, rng)
    rows = record_gradients(network, theta, batch)
    single = [brute_force.gradient(theta, network.widths, x, y) for x, y in zip(batch.x, batch.y, strict=True)]
    np.testing.assert_allclose(rows, [*single, *batch.gradients], atol=1e-12)


def batch_norm_loss(network, theta, batch):
    (weights, biases), (top_weights, top_biases) = brute_force.layers(theta, network.widths)
    before = batch.x @ weights.T + biases
    hidden = np.maximum((before - before.mean(axis=0)) / np.sqrt(before.var(axis=0) + 1e-5), 0)
    logits = hidden @ top_weights.T + top_biases
    return (np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), batch.y]).sum()


def test_gradients_with_batch_norm_add_up_to_the_gradient_of_the_batch():
    rng = np.random.default_rng(2)
    network = Network(4, 3, (5,))
    theta, batch = rng.standard_normal(network.size), batch_of(network, 6, rng)
    total = batch_norm_gradients(network, theta, batch)[:6].sum(axis=0)
    steps = 1e-5 * np.eye(network.size)
    slopes = [
        (batch_norm_loss(network, theta + step, batch) - batch_norm_loss(network, theta - step, batch)) / 2e-5
        for step in steps
    ]
    np.testing.assert_allclose(total, slopes, atol=1e-6)


def test_batch_norm_lets_a_record_change_the_gradients_of_others():
    rng = np.random.default_rng(3)
    network = Network(4, 3, (5,))
    theta, batch = rng.standard_normal(network.size), batch_of(network, 6, rng)
    others = batch.take(np.arange(5))
    for gradients, leaks in ((record_gradients, False), (batch_norm_gradients, True)):
        with_it, without_it = (gradients(network, theta, some)[:5] for some in (batch, others))
        assert np.allclose(with_it, without_it) is not leaks


@pytest.mark.parametrize("gradients", [record_gradients, batch_norm_gradients])
def test_an_empty_batch_has_no_gradients(gradients):
    network = Network(4, 3, (5,))
    empty = Batch(np.empty((0, 4)), np.empty(0, np.int64), np.empty((0, network.size)))
    assert gradients(network, np.ones(network.size), empty).shape == (0, network.size)


def test_batches_take_examples_first_and_then_gradients():
    network = Network(2, 3)
    batch = batch_of(network, 3, np.random.default_rng(4))
    part = batch.take(np.array([1, 4]))
    np.testing.assert_array_equal(part.x, batch.x[[1]])
    np.testing.assert_array_equal(part.gradients, batch.gradients[[1]])
    assert len(batch) == 5
    assert len(batch + part) == 7


def test_rows_are_clipped_only_if_they_are_longer():
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(clip_rows(rows, 1.0), [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]])
