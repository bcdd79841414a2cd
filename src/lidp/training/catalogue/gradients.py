"""Gradients of single records, written for reading: one row per record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lidp.arrays import Floats, Ints
from lidp.training.model import Network

_EPSILON = 1e-5  # added to variances, so that no batch divides by 0


@dataclass(frozen=True)
class Batch:
    """Some records: examples, and then canaries that are gradients, one row each."""

    x: Floats
    y: Ints
    gradients: Floats

    def __len__(self) -> int:
        return len(self.y) + len(self.gradients)

    def __add__(self, other: Batch) -> Batch:
        return Batch(
            np.concatenate([self.x, other.x]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.gradients, other.gradients]),
        )

    def take(self, numbers: Ints) -> Batch:
        """Return some records by number: examples first, then gradients."""
        examples, late = numbers[numbers < len(self.y)], numbers[numbers >= len(self.y)] - len(self.y)
        return Batch(self.x[examples], self.y[examples], self.gradients[late])


def record_gradients(network: Network, theta: Floats, batch: Batch) -> Floats:
    """Return the gradient of the loss of each record, and then the gradients of canaries that are gradients."""
    layers = _layers(network, theta)
    inputs = [batch.x]
    for weights, biases in layers[:-1]:
        inputs.append(np.maximum(inputs[-1] @ weights.T + biases, 0.0))
    signal = _output_signal(inputs[-1] @ layers[-1][0].T + layers[-1][1], batch.y)
    signals = [signal]
    for (weights, _), below in zip(layers[:0:-1], inputs[:0:-1], strict=True):
        signals.insert(0, (signals[0] @ weights) * (below > 0))
    return np.concatenate([_flat(signals, inputs), batch.gradients])


def batch_norm_gradients(network: Network, theta: Floats, batch: Batch) -> Floats:
    """Return the rows of :func:`record_gradients` for a network of one hidden layer that is normalised over the batch.

    The mean and the variance of the hidden layer mix all records, and so do the gradients.
    """
    (weights, biases), (top_weights, top_biases) = _layers(network, theta)
    before = batch.x @ weights.T + biases
    scale = np.sqrt(before.var(axis=0) + _EPSILON) if len(batch.x) else 1.0
    normal = (before - before.mean(axis=0)) / scale if len(batch.x) else before
    hidden = np.maximum(normal, 0.0)
    signal = _output_signal(hidden @ top_weights.T + top_biases, batch.y)
    below = (signal @ top_weights) * (normal > 0)
    if len(batch.x):
        below = (below - below.mean(axis=0) - normal * (below * normal).mean(axis=0)) / scale
    return np.concatenate([_flat([below, signal], [batch.x, hidden]), batch.gradients])


def clip_rows(rows: Floats, norm: float) -> Floats:
    """Return the rows, each scaled to at most this norm."""
    norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    clipped: Floats = rows * np.minimum(1.0, norm / np.maximum(norms, 1e-300))
    return clipped


def _layers(network: Network, theta: Floats) -> list[tuple[Floats, Floats]]:
    """Return weights (outputs x inputs) and biases of each layer."""
    parts = np.split(theta, np.cumsum(network.group_sizes)[:-1])
    widths = network.widths
    return [(parts[2 * i].reshape(widths[i + 1], widths[i]), parts[2 * i + 1]) for i in range(len(widths) - 1)]


def _output_signal(logits: Floats, labels: Ints) -> Floats:
    """Return softmax minus label."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    signal: Floats = powers / powers.sum(axis=1, keepdims=True)
    signal[np.arange(len(labels)), labels] -= 1.0
    return signal


def _flat(signals: list[Floats], inputs: list[Floats]) -> Floats:
    """Return the gradients of all layers side by side: outer products for the weights, signals for the biases."""
    parts = []
    for signal, below in zip(signals, inputs, strict=True):
        parts += [(signal[:, :, None] * below[:, None, :]).reshape(len(signal), signal.shape[1] * below.shape[1]), signal]
    return np.concatenate(parts, axis=1)
