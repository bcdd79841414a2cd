"""Compiled gradients of examples: exact per-example clipping without per-example gradients, and products with canaries.

Parameters are one flat float32 vector: for each layer its weights (outputs x inputs, row by row), then its biases. The gradient of
one example at a layer with input a and signal g at its output is the outer product of g and (a, 1), so its squared norm is
(|a|² + 1) |g|². Clipping therefore scales the rows of g before one matrix product, and never builds the gradient of an example.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._compiled import panels
from lidp._compiled.compiler import compiled
from lidp._compiled.prefetching import prefetch_rows
from lidp._compiled.products import FAST, ONE, ZERO, back_products, fits_tiles, inner_products, outer_products
from lidp._compiled.softmax import output_signals

_TINY, _HUGE = np.float32(1e-20), np.float32(1e30)
"""Sums of squares between these are accurate in single precision."""
_LOWEST = np.finfo(np.float32).min
_FEW_CLASSES = 256
"""Up to so many, squares of signals may be summed one after the other in single precision."""
_SMALLEST_FACTOR = 1e-25
"""Examples that clipping scales by less than this, or whose norm is not finite, are recomputed in double precision."""
_SMALLEST_SIGNAL_SQUARE = 1e-72
"""Examples whose clipped signals may be shorter than its root are, too: single precision loses digits near 1e-38."""


@compiled()
def _layer(flat, start, rows, columns):  # pragma: no cover  # compiled
    """Return a view of part of a flat vector as a matrix."""
    return flat[start : start + rows * columns].reshape(rows, columns)


@compiled(fastmath=FAST)
def _wide_square(row):  # pragma: no cover  # compiled
    """Return the square of a row's norm in double precision, where squares of single-precision numbers do not overflow."""
    total = 0.0
    for j in range(row.shape[0]):
        value = np.float64(row[j])
        total += value * value
    return total


@compiled(fastmath=FAST)
def _square(row):  # pragma: no cover  # compiled
    """Return the square of a row's norm: summed in single precision, which is faster, where that neither over- nor underflows."""
    total = ZERO
    for j in range(row.shape[0]):
        total += row[j] * row[j]
    return np.float64(total) if _TINY < total < _HUGE else _wide_square(row)


def reads_in_place(x: NDArray[Any], unit: float, widths: Sequence[int], workspace: panels.Workspace | None) -> bool:
    """Return whether the first layer reads examples where they are stored, as rows of ``x``, instead of copies.

    Sums of products are then multiplied by ``unit``, instead of the features. Sums of large features could overflow before that, so
    only bytes may have a unit other than 1.
    """
    inputs, outputs = widths[:2]
    readable = x.dtype == np.uint8 or (x.dtype == np.float32 and unit == 1)
    return bool(
        readable
        and x.flags.c_contiguous
        and fits_tiles(inputs, outputs)
        and not panels.uses_panels(workspace, inputs, outputs)
    )


@compiled(fastmath=FAST)
def add_multiple(total, factor, row):  # pragma: no cover  # compiled
    for k in range(total.shape[0]):
        total[k] += factor * row[k]


@compiled(fastmath=FAST)
def forward(theta, widths, b, source, unit, rows, activations, workspace, x, upcoming):  # pragma: no cover  # compiled
    """Compute the activations of all layers, and the scores of the classes, from examples as in :func:`clipped_sum`.

    Meanwhile, memory fetches the rows ``upcoming`` of ``x`` into the cache.
    """
    layers = widths.shape[0] - 1
    start, weight, bits = 0, 0, 0
    every = np.arange(b)
    for layer in range(layers):
        inputs, outputs = widths[layer], widths[layer + 1]
        below = _layer(activations, start, b, inputs)
        above = _layer(activations, start + b * inputs, b, outputs)
        weights, soon = _layer(theta, weight, outputs, inputs), upcoming if layer == 0 else upcoming[:0]
        scale = ONE
        # The compiler leaves out branches for a source or a workspace that is None.
        if source is not None and layer == 0:
            inner_products(source, rows, weights, above, x, soon)
            scale = unit
        elif workspace is not None and panels.uses_panels(workspace, inputs, outputs):
            row_bits, bits = panels.bit_matrix(workspace.row_bits, bits, b, inputs)
            panels.inner_products(below, weights, row_bits, above, workspace, x, soon)
        elif fits_tiles(inputs, outputs):
            inner_products(below, every, weights, above, x, soon)
        else:
            prefetch_rows(x, soon)
            np.dot(below, weights.T, above)
        bias = theta[weight + inputs * outputs : weight + (inputs + 1) * outputs]
        lowest = ZERO if layer < layers - 1 else _LOWEST
        for i in range(b):
            row = above[i]
            for j in range(outputs):
                value = row[j] * scale + bias[j]
                row[j] = lowest if _LOWEST <= value < lowest else value  # infinities and NaN stay, so that scores show them
        start += b * inputs
        weight += (inputs + 1) * outputs


@compiled()
def signal_outputs(widths, labels, activations, signals, signal_squares):  # pragma: no cover  # compiled
    """Compute the signals at the outputs, softmax minus the label, and the squares of their norms in single precision."""
    b, last = labels.shape[0], widths.shape[0] - 1
    before, classes = widths[:last].sum(), widths[last]
    scores = _layer(activations, b * before, b, classes)
    output_signals(scores, labels, _layer(signals, b * (before - widths[0]), b, classes), signal_squares)


@compiled(fastmath=FAST)
def backward(
    theta, widths, squares, activations, signals, signal_squares, norms, largest_inputs
):  # pragma: no cover  # compiled
    """Compute the signals of all layers from those at the outputs, and the squares of the norms of the gradients.

    ``signal_squares`` are the squares of the norms of the signals at the outputs. ``largest_inputs`` is filled with the largest
    |a|² + 1 over the layers of each example.
    """
    b, layers = norms.shape[0], widths.shape[0] - 1
    start, signal_start, weight = b * widths.sum(), b * (widths.sum() - widths[0]), theta.shape[0]
    start -= b * widths[layers]
    signal_start -= b * widths[layers]
    norms[:] = 0.0
    largest_inputs[:] = 0.0
    for layer in range(layers - 1, -1, -1):
        inputs, outputs = widths[layer], widths[layer + 1]
        has_squares = layer == layers - 1 and outputs <= _FEW_CLASSES
        weight -= (inputs + 1) * outputs
        start -= b * inputs
        below = _layer(activations, start, b, inputs)
        signal = _layer(signals, signal_start, b, outputs)
        for i in range(b):
            square = (squares[i] if layer == 0 else _square(below[i])) + 1.0
            if has_squares and signal_squares[i] > _TINY:
                norms[i] += square * signal_squares[i]
            else:
                norms[i] += square * _square(signal[i])
            largest_inputs[i] = max(largest_inputs[i], square)
        if layer > 0:
            signal_start -= b * inputs
            earlier = _layer(signals, signal_start, b, inputs)
            weights = _layer(theta, weight, outputs, inputs)
            if fits_tiles(inputs, outputs):
                back_products(signal, weights, earlier)
            else:
                np.dot(signal, weights, earlier)
            for i in range(b):
                row, out = below[i], earlier[i]
                for j in range(inputs):
                    out[j] = out[j] if row[j] > ZERO else ZERO


@compiled(fastmath=FAST)
def clip_examples(widths, clip, norms, largest_inputs, activations, signals, factors):  # pragma: no cover  # compiled
    """Fill ``factors`` with what the gradient of each example is multiplied by to have norm at most ``clip``.

    Returns the number of examples with factor 0, which must be computed in double precision; they are blanked.
    """
    recomputed, b = 0, norms.shape[0]
    factors[:] = ONE
    if clip > 0:
        # A clipped signal has norm at most clip / sqrt(|a|² + 1). If it is subnormal, rounding it changes the gradient too much.
        limit = np.float64(clip) * np.float64(clip) / _SMALLEST_SIGNAL_SQUARE
        for i in range(b):
            factor = clip / math.sqrt(max(norms[i], 1e-60))
            if factor >= _SMALLEST_FACTOR and norms[i] < np.inf and largest_inputs[i] <= limit:  # false for NaN
                factors[i] = min(1.0, factor)
            else:
                factors[i] = ZERO
                recomputed += 1
                _blank_example(i, b, widths, activations, signals)
    return recomputed


@compiled(fastmath=FAST)
def weighted_sums(
    widths, factors, source, unit, rows, activations, signals, workspace, gradient
):  # pragma: no cover  # compiled
    """Sum the gradients of the examples, each times its factor; the signals are multiplied by the factors.

    ``workspace`` is as :func:`forward` leaves it for the same batch.
    """
    b = factors.shape[0]
    every = np.arange(b)
    start, signal_start, weight, bits = 0, 0, 0, 0
    for layer in range(widths.shape[0] - 1):
        inputs, outputs = widths[layer], widths[layer + 1]
        signal = _layer(signals, signal_start, b, outputs)
        bias = gradient[weight + inputs * outputs : weight + (inputs + 1) * outputs]
        bias[:] = ZERO
        for i in range(b):
            row = signal[i]
            for j in range(outputs):
                row[j] *= factors[i]
                bias[j] += row[j]
        below, sums = _layer(activations, start, b, inputs), _layer(gradient, weight, outputs, inputs)
        if source is not None and layer == 0:
            outer_products(signal, source, rows, unit, sums)
        elif workspace is not None and panels.uses_panels(workspace, inputs, outputs):
            row_bits, bits = panels.bit_matrix(workspace.row_bits, bits, b, inputs)
            panels.outer_products(signal, below, row_bits, sums, workspace)
        elif fits_tiles(inputs, outputs):
            outer_products(signal, below, every, ONE, sums)
        else:
            np.dot(signal.T, below, sums)
        start += b * inputs
        signal_start += b * outputs
        weight += (inputs + 1) * outputs


@compiled(fastmath=FAST)
def clipped_sum(
    theta, widths, labels, squares, source, unit, rows, activations, signals, clip, workspace, gradient, x, upcoming
):  # pragma: no cover  # compiled
    """Sum the per-example gradients of the cross-entropy over a batch, each scaled to norm at most ``clip``.

    The b examples are the ``rows`` of ``source`` times ``unit``, if :func:`reads_in_place`. Otherwise, ``source`` is None, and
    ``activations[: b * widths[0]]`` holds them. ``squares`` holds the squares of their norms. The rest of ``activations``,
    ``signals`` and ``workspace`` are buffers for the layers. Fills ``gradient``. A clipping norm of 0 disables clipping. Meanwhile,
    memory fetches the rows ``upcoming`` of ``x`` into the cache.

    Guarantee: with a clipping norm above 0, an example adds a vector of norm at most ``clip`` (up to rounding), whatever its
    features: where single precision overflows or underflows, :func:`_add_clipped_gradient` computes it.
    """
    b = labels.shape[0]
    norms, largest_inputs = np.empty(b), np.empty(b)
    signal_squares, factors = np.empty(b, np.float32), np.empty(b, np.float32)
    forward(theta, widths, b, source, unit, rows, activations, workspace, x, upcoming)
    signal_outputs(widths, labels, activations, signals, signal_squares)
    backward(theta, widths, squares, activations, signals, signal_squares, norms, largest_inputs)
    recomputed = clip_examples(widths, clip, norms, largest_inputs, activations, signals, factors)
    weighted_sums(widths, factors, source, unit, rows, activations, signals, workspace, gradient)
    if recomputed:
        for i in range(b):
            if factors[i] == ZERO:
                if source is None:
                    features = _layer(activations, 0, b, widths[0])[i]
                else:
                    features = np.empty(widths[0], np.float32)
                    copy_scaled(features, source[rows[i]], unit)
                _add_clipped_gradient(theta, widths, features, labels[i], clip, gradient)


@compiled()
def _blank_example(i, b, widths, activations, signals):  # pragma: no cover  # compiled
    """Set the activations above the features, and the signals, of example ``i`` to 0: they may be infinite or NaN."""
    activation_start, signal_start = b * widths[0], 0
    for layer in range(1, widths.shape[0]):
        _layer(activations, activation_start, b, widths[layer])[i] = ZERO
        _layer(signals, signal_start, b, widths[layer])[i] = ZERO
        activation_start += b * widths[layer]
        signal_start += b * widths[layer]


@compiled()
def _add_clipped_gradient(theta, widths, features, label, clip, gradient):  # pragma: no cover  # compiled
    """Add the clipped gradient of one example to ``gradient``, computed in double precision and without fast-math.

    An example whose gradient is not finite even then (with extreme weights) adds nothing.
    """
    layers = widths.shape[0] - 1
    size = widths.sum()
    activations, signals = np.zeros(size), np.zeros(size)
    activations[: widths[0]] = features
    # Forward pass.
    start, weight = 0, 0
    for layer in range(layers):
        inputs, outputs = widths[layer], widths[layer + 1]
        for j in range(outputs):
            total = np.float64(theta[weight + inputs * outputs + j])
            for k in range(inputs):
                total += np.float64(theta[weight + j * inputs + k]) * activations[start + k]
            activations[start + inputs + j] = max(total, 0.0) if layer < layers - 1 else total
        start += inputs
        weight += (inputs + 1) * outputs
    # Softmax minus the label.
    classes = widths[layers]
    scores, signal = activations[start:], signals[start:]
    top = scores.max()
    rest = 0.0
    for j in range(classes):
        signal[j] = math.exp(scores[j] - top)
        if j != label:
            rest += signal[j]
    total = rest + signal[label]
    signal /= total
    signal[label] = -rest / total
    # Backward pass, and norm.
    norm = 0.0
    for layer in range(layers - 1, -1, -1):
        inputs, outputs = widths[layer], widths[layer + 1]
        weight -= (inputs + 1) * outputs
        below, above = activations[start - inputs : start], signals[start : start + outputs]
        norm += (np.sum(below * below) + 1.0) * np.sum(above * above)
        start -= inputs
        if layer > 0:
            for k in range(inputs):
                back = 0.0
                for j in range(outputs):
                    back += theta[weight + j * inputs + k] * above[j]
                signals[start + k] = back if below[k] > 0.0 else 0.0
    if not norm < np.inf:
        return
    factor = min(1.0, clip / math.sqrt(max(norm, 1e-300)))
    # Gradient.
    for layer in range(layers):
        inputs, outputs = widths[layer], widths[layer + 1]
        for j in range(outputs):
            scaled = factor * signals[start + inputs + j]
            for k in range(inputs):
                gradient[weight + j * inputs + k] += np.float32(scaled * activations[start + k])
            gradient[weight + inputs * outputs + j] += np.float32(scaled)
        start += inputs
        weight += (inputs + 1) * outputs


@compiled(fastmath=FAST)
def copy_scaled(target, source, unit):  # pragma: no cover  # compiled
    """Copy a row times ``unit``."""
    for j in range(target.shape[0]):
        target[j] = np.float32(source[j]) * unit


@compiled(fastmath=FAST)
def square_scaled(row, unit):  # pragma: no cover  # compiled
    """Return the square of the norm of a row times ``unit``, of products in single precision."""
    square, wide = ZERO, 0.0
    for j in range(row.shape[0]):
        value = np.float32(row[j]) * unit
        square += value * value
    if _TINY < square < _HUGE:
        return np.float64(square)
    for j in range(row.shape[0]):
        value = np.float32(row[j]) * unit
        wide += np.float64(value) * np.float64(value)
    return wide


@compiled(fastmath=FAST)
def project_gradients(residual, gradients, projections, lengths):  # pragma: no cover  # compiled
    """Compute the inner product of ``residual`` with each gradient, and the square of the gradient's length."""
    for k in range(gradients.shape[0]):
        row = gradients[k]
        product, square = ZERO, ZERO
        for j in range(row.shape[0]):
            product += row[j] * residual[j]
            square += row[j] * row[j]
        projections[k], lengths[k] = product, square


@compiled(fastmath=FAST)
def project_examples(
    residual, widths, b, squares, activations, signals, projections, lengths
):  # pragma: no cover  # compiled
    """Compute the inner product of ``residual`` with the clipped gradient of each example, and the square of its length.

    ``activations`` and ``signals`` are as :func:`clipped_sum` leaves them: the signals are scaled by the clipping.
    """
    projections[:] = 0.0
    lengths[:] = 0.0
    activation_start, signal_start, weight = 0, 0, 0
    for layer in range(widths.shape[0] - 1):
        inputs, outputs = widths[layer], widths[layer + 1]
        below = _layer(activations, activation_start, b, inputs)
        signal = _layer(signals, signal_start, b, outputs)
        matrix = _layer(residual, weight, outputs, inputs)
        bias = residual[weight + inputs * outputs : weight + (inputs + 1) * outputs]
        for k in range(b):
            a, g = below[k], signal[k]
            for j in range(outputs):
                if g[j] != ZERO:
                    row, product = matrix[j], bias[j]
                    for i in range(inputs):
                        product += row[i] * a[i]
                    projections[k] += np.float64(g[j]) * np.float64(product)
            square = (squares[k] if layer == 0 else _square(a)) + 1.0
            lengths[k] += square * _square(g)
        activation_start += b * inputs
        signal_start += b * outputs
        weight += (inputs + 1) * outputs
