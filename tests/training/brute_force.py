"""Reference implementation of DP-SGD in double precision, one example at a time with explicit gradients."""

from __future__ import annotations

import numpy as np


def layers(theta, widths):
    """Return the weights and biases of each layer."""
    parts, start = [], 0
    for inputs, outputs in zip(widths, widths[1:], strict=False):
        weights = theta[start : start + inputs * outputs].reshape(outputs, inputs)
        start += inputs * outputs
        parts.append((weights, theta[start : start + outputs]))
        start += outputs
    assert start == len(theta)
    return parts


def loss(theta, widths, x, label):
    """Return the cross-entropy of one example."""
    signal = np.asarray(x, float)
    parts = layers(np.asarray(theta, float), widths)
    for k, (weights, bias) in enumerate(parts):
        signal = weights @ signal + bias
        if k < len(parts) - 1:
            signal = np.maximum(signal, 0)
    return np.log(np.exp(signal - signal.max()).sum()) + signal.max() - signal[label]


def gradient(theta, widths, x, label):
    """Return the gradient of the loss of one example, by the chain rule."""
    parts = layers(np.asarray(theta, float), widths)
    inputs = [np.asarray(x, float)]
    for k, (weights, bias) in enumerate(parts):
        signal = weights @ inputs[-1] + bias
        inputs.append(np.maximum(signal, 0) if k < len(parts) - 1 else signal)
    chances = np.exp(inputs[-1] - inputs[-1].max())
    back = chances / chances.sum()
    back[label] -= 1
    pieces = []
    for k in range(len(parts) - 1, -1, -1):
        pieces.append(np.concatenate([np.outer(back, inputs[k]).ravel(), back]))
        if k:
            back = (parts[k][0].T @ back) * (inputs[k] > 0)
    return np.concatenate(pieces[::-1])


def clipped(vector, clip):
    """Return a vector scaled to length at most ``clip``; unchanged if ``clip`` is 0."""
    return vector * min(1.0, clip / max(np.linalg.norm(vector), 1e-300)) if clip else vector


def clipped_sum(theta, widths, x, y, clip):
    """Return the sum of the clipped gradients of a batch."""
    return sum((clipped(gradient(theta, widths, a, b), clip) for a, b in zip(x, y, strict=True)), np.zeros(len(theta)))
