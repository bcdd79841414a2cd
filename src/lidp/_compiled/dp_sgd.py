"""The compiled inner loop of DP-SGD: Poisson batches, exact per-example clipping without per-example gradients, noise.

Parameters are one flat float32 vector: for each layer its weights (outputs x inputs, row by row), then its biases. The
gradient of one example at a layer with input a and signal g at its output is the outer product of g and (a, 1), so its squared
norm is (|a|² + 1) |g|²: clipping scales the rows of g before one matrix product, and no example's gradient is ever built.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

import numpy as np

from lidp._compiled.compiler import compiled
from lidp._compiled.noise import LANES, fill_noise
from lidp._compiled.random_numbers import next_word, uniform

__all__ = ["LANES", "clipped_sum", "poisson_batch", "shuffle", "train"]
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_FAST = {"reassoc", "contract", "arcp", "nsz", "afn"}
"""Sums may be reordered, but nobody may assume that there are no infinities: they are looked for. (fastmath=True assumes it.)"""
_TINY, _HUGE = np.float32(1e-20), np.float32(1e30)
"""Sums of squares between these are accurate in single precision."""
_SMALLEST_FACTOR = 1e-25
"""Examples that clipping scales by less than this, or whose norm is not finite, are computed again in double precision."""
_SMALLEST_SIGNAL_SQUARE = 1e-72
"""So are those whose clipped signals may be shorter than the square root of this: near 1e-38, single precision loses digits."""
_FEW = 32  # outputs up to which the loops below beat a general matrix product
_CHUNK = (
    8192  # parameters disturbed at a time; a multiple of what fill_noise makes at once, and small enough to stay in cache
)


@compiled()
def _layer(flat, start, rows, columns):  # pragma: no cover  # compiled
    """A matrix in a flat vector."""
    return flat[start : start + rows * columns].reshape(rows, columns)


@compiled(fastmath=_FAST)
def _wide_square(row):  # pragma: no cover  # compiled
    """Return the square of a row's norm in double precision, where squares of single-precision numbers do not overflow."""
    total = 0.0
    for j in range(row.shape[0]):
        value = np.float64(row[j])
        total += value * value
    return total


@compiled(fastmath=_FAST)
def _square(row):  # pragma: no cover  # compiled
    """Return the square of a row's norm: summed in single precision, which is faster, where that neither over- nor underflows."""
    total = _ZERO
    for j in range(row.shape[0]):
        total += row[j] * row[j]
    return np.float64(total) if _TINY < total < _HUGE else _wide_square(row)


@compiled(fastmath=_FAST)
def _inner_products(below, weights, out):  # pragma: no cover  # compiled
    """``below @ weights.T``, two rows and five outputs at a time: what registers hold, so that each number loaded serves often."""
    rows, inputs = below.shape
    outputs = weights.shape[0]
    if outputs > _FEW:
        np.dot(below, weights.T, out)
        return
    blocks = outputs - outputs % 5
    for i in range(0, rows, 2):
        x, y = below[i], below[min(i + 1, rows - 1)]  # the last row twice, if they are odd
        a, b = out[i], out[min(i + 1, rows - 1)]
        for j in range(0, blocks, 5):
            u, v, w, s, t = weights[j], weights[j + 1], weights[j + 2], weights[j + 3], weights[j + 4]
            a0 = a1 = a2 = a3 = a4 = b0 = b1 = b2 = b3 = b4 = _ZERO
            for k in range(inputs):
                p, q = x[k], y[k]
                a0 += p * u[k]
                a1 += p * v[k]
                a2 += p * w[k]
                a3 += p * s[k]
                a4 += p * t[k]
                b0 += q * u[k]
                b1 += q * v[k]
                b2 += q * w[k]
                b3 += q * s[k]
                b4 += q * t[k]
            a[j], a[j + 1], a[j + 2], a[j + 3], a[j + 4] = a0, a1, a2, a3, a4
            b[j], b[j + 1], b[j + 2], b[j + 3], b[j + 4] = b0, b1, b2, b3, b4
        for j in range(blocks, outputs):
            u = weights[j]
            a0 = b0 = _ZERO
            for k in range(inputs):
                a0 += x[k] * u[k]
                b0 += y[k] * u[k]
            a[j], b[j] = a0, b0


@compiled(fastmath=_FAST)
def _add_multiple(total, factor, row):  # pragma: no cover  # compiled
    for k in range(total.shape[0]):
        total[k] += factor * row[k]


@compiled(fastmath=_FAST)
def _outer_products(signal, below, out):  # pragma: no cover  # compiled
    """``signal.T @ below``, four rows and two outputs at a time."""
    rows, inputs = below.shape
    outputs = signal.shape[1]
    if outputs > _FEW:
        np.dot(signal.T, below, out)
        return
    out[:] = _ZERO
    for i in range(0, rows - 3, 4):
        x, y, z, w = below[i], below[i + 1], below[i + 2], below[i + 3]
        s, t, u, v = signal[i], signal[i + 1], signal[i + 2], signal[i + 3]
        for j in range(0, outputs - 1, 2):
            a, b = out[j], out[j + 1]
            a0, a1, a2, a3 = s[j], t[j], u[j], v[j]
            b0, b1, b2, b3 = s[j + 1], t[j + 1], u[j + 1], v[j + 1]
            for k in range(inputs):
                p, q, r, o = x[k], y[k], z[k], w[k]
                a[k] += a0 * p + a1 * q + a2 * r + a3 * o
                b[k] += b0 * p + b1 * q + b2 * r + b3 * o
    # what the blocks left: an odd output, up to three rows
    blocks = rows - rows % 4
    for i in range(rows):
        for j in range(0 if i >= blocks else outputs - outputs % 2, outputs):
            _add_multiple(out[j], signal[i, j], below[i])


@compiled(fastmath=_FAST)
def clipped_sum(theta, widths, labels, squares, activations, signals, clip, gradient):  # pragma: no cover  # compiled
    """The sum over a batch of per-example gradients of the cross-entropy, each scaled to norm at most ``clip``.

    ``activations[: b * widths[0]]`` holds the b examples, ``squares`` the squares of their norms; the rest of ``activations``, and
    ``signals``, are room for the layers. Fills ``gradient``. A clip norm of 0 means no clipping.

    Guarantee: with a clip norm above 0, an example adds a vector of norm at most ``clip`` (up to rounding), whatever its features:
    where single precision overflows or underflows, :func:`_add_clipped_gradient` takes over.
    """
    b = labels.shape[0]
    layers = widths.shape[0] - 1
    # forward
    here, weight = 0, 0
    for layer in range(layers):
        inputs, outputs = widths[layer], widths[layer + 1]
        below = _layer(activations, here, b, inputs)
        above = _layer(activations, here + b * inputs, b, outputs)
        _inner_products(below, _layer(theta, weight, outputs, inputs), above)
        bias = theta[weight + inputs * outputs : weight + (inputs + 1) * outputs]
        for i in range(b):
            row = above[i]
            for j in range(outputs):
                row[j] += bias[j]
                if layer < layers - 1:
                    row[j] = max(row[j], _ZERO)
        here += b * inputs
        weight += (inputs + 1) * outputs
    # the signal at the output: softmax minus the label
    classes = widths[layers]
    scores = _layer(activations, here, b, classes)
    there = 0
    for layer in range(1, layers):
        there += b * widths[layer]
    signal = _layer(signals, there, b, classes)
    for i in range(b):
        row, out = scores[i], signal[i]
        top = row[0]
        for j in range(1, classes):
            top = max(top, row[j])
        rest = _ZERO
        for j in range(classes):
            out[j] = math.exp(row[j] - top)
            if j != labels[i]:
                rest += out[j]
        total = rest + out[labels[i]]
        for j in range(classes):
            out[j] /= total
        out[labels[i]] = -rest / total  # as such: 1 minus a number near 1 would lose its digits
    # backward, and the norms
    norms = np.zeros(b, np.float64)
    longest = np.zeros(b, np.float64)  # the largest |a|² + 1 of each example's layers
    for layer in range(layers - 1, -1, -1):
        inputs, outputs = widths[layer], widths[layer + 1]
        weight -= (inputs + 1) * outputs
        here -= b * inputs
        below = _layer(activations, here, b, inputs)
        signal = _layer(signals, there, b, outputs)
        for i in range(b):
            square = (squares[i] if layer == 0 else _square(below[i])) + 1.0
            norms[i] += square * _square(signal[i])
            longest[i] = max(longest[i], square)
        if layer > 0:
            there -= b * inputs
            earlier = _layer(signals, there, b, inputs)
            np.dot(signal, _layer(theta, weight, outputs, inputs), earlier)
            for i in range(b):
                row, out = below[i], earlier[i]
                for j in range(inputs):
                    out[j] = out[j] if row[j] > _ZERO else _ZERO
    factors = np.ones(b, np.float32)
    doubtful = 0
    if clip > 0:
        # A clipped signal has norm at most clip / sqrt(|a|² + 1). Rounding it moves the gradient by too much if it is subnormal.
        most = np.float64(clip) * np.float64(clip) / _SMALLEST_SIGNAL_SQUARE
        for i in range(b):
            factor = clip / math.sqrt(max(norms[i], 1e-60))
            if factor >= _SMALLEST_FACTOR and norms[i] < np.inf and longest[i] <= most:  # false for NaN
                factors[i] = min(1.0, factor)
            else:
                factors[i] = _ZERO
                doubtful += 1
                _blank_example(i, b, widths, activations, signals)
    # the weighted sums
    here, there, weight = 0, 0, 0
    for layer in range(layers):
        inputs, outputs = widths[layer], widths[layer + 1]
        signal = _layer(signals, there, b, outputs)
        bias = gradient[weight + inputs * outputs : weight + (inputs + 1) * outputs]
        bias[:] = _ZERO
        for i in range(b):
            row = signal[i]
            for j in range(outputs):
                row[j] *= factors[i]
                bias[j] += row[j]
        _outer_products(signal, _layer(activations, here, b, inputs), _layer(gradient, weight, outputs, inputs))
        here += b * inputs
        there += b * outputs
        weight += (inputs + 1) * outputs
    if doubtful:
        for i in range(b):
            if factors[i] == _ZERO:
                _add_clipped_gradient(theta, widths, _layer(activations, 0, b, widths[0])[i], labels[i], clip, gradient)


@compiled()
def _blank_example(i, b, widths, activations, signals):  # pragma: no cover  # compiled
    """Set the activations above the features, and the signals, of example ``i`` to 0: they may be infinite or no numbers."""
    here, there = b * widths[0], 0
    for layer in range(1, widths.shape[0]):
        _layer(activations, here, b, widths[layer])[i] = _ZERO
        _layer(signals, there, b, widths[layer])[i] = _ZERO
        here += b * widths[layer]
        there += b * widths[layer]


@compiled()
def _add_clipped_gradient(theta, widths, features, label, clip, gradient):  # pragma: no cover  # compiled
    """Add one example's clipped gradient to ``gradient``, computed in double precision and without fast-math.

    An example whose gradient is not finite even so (weights beyond any use) adds nothing.
    """
    layers = widths.shape[0] - 1
    size = widths.sum()
    activations, signals = np.zeros(size), np.zeros(size)
    activations[: widths[0]] = features
    # forward
    here, weight = 0, 0
    for layer in range(layers):
        inputs, outputs = widths[layer], widths[layer + 1]
        for j in range(outputs):
            total = np.float64(theta[weight + inputs * outputs + j])
            for k in range(inputs):
                total += np.float64(theta[weight + j * inputs + k]) * activations[here + k]
            activations[here + inputs + j] = max(total, 0.0) if layer < layers - 1 else total
        here += inputs
        weight += (inputs + 1) * outputs
    # softmax minus the label
    classes = widths[layers]
    scores, signal = activations[here:], signals[here:]
    top = scores.max()
    rest = 0.0
    for j in range(classes):
        signal[j] = math.exp(scores[j] - top)
        if j != label:
            rest += signal[j]
    total = rest + signal[label]
    signal /= total
    signal[label] = -rest / total
    # backward, and the norm
    norm = 0.0
    for layer in range(layers - 1, -1, -1):
        inputs, outputs = widths[layer], widths[layer + 1]
        weight -= (inputs + 1) * outputs
        below, above = activations[here - inputs : here], signals[here : here + outputs]
        norm += (np.sum(below * below) + 1.0) * np.sum(above * above)
        here -= inputs
        if layer > 0:
            for k in range(inputs):
                back = 0.0
                for j in range(outputs):
                    back += theta[weight + j * inputs + k] * above[j]
                signals[here + k] = back if below[k] > 0.0 else 0.0
    if not norm < np.inf:
        return
    factor = min(1.0, clip / math.sqrt(max(norm, 1e-300)))
    # the gradient
    for layer in range(layers):
        inputs, outputs = widths[layer], widths[layer + 1]
        for j in range(outputs):
            scaled = factor * signals[here + inputs + j]
            for k in range(inputs):
                gradient[weight + j * inputs + k] += np.float32(scaled * activations[here + k])
            gradient[weight + inputs * outputs + j] += np.float32(scaled)
        here += inputs
        weight += (inputs + 1) * outputs


@compiled()
def _touch(x, batch):  # pragma: no cover  # compiled
    """Look at every cache line of the rows of a batch: memory answers many requests in the time that it takes for one.

    The sum has no meaning; it is returned so that the compiler must compute it.
    """
    line = 64 // x.itemsize
    total = 0.0
    for i in range(batch.shape[0]):
        if batch[i] < x.shape[0]:
            row = x[batch[i]]
            for j in range(0, x.shape[1], line):
                total += row[j]
    return total


@compiled(fastmath=_FAST)
def _scaled_copy(target, source, unit):  # pragma: no cover  # compiled
    """Copy a row times ``unit``; returns the square of its norm."""
    square = _ZERO
    for j in range(target.shape[0]):
        value = np.float32(source[j]) * unit
        square += value * value
        target[j] = value
    return np.float64(square) if _TINY < square < _HUGE else _wide_square(target)


@compiled()
def poisson_batch(state, rate, size, batch):  # pragma: no cover  # compiled
    """Each of ``size`` places with probability ``rate``, by geometric skips. Returns how many, and fills ``batch`` with which.

    If they are more than there is room for, the number is returned all the same and the caller makes room.
    """
    if rate >= 1.0:
        for i in range(min(size, batch.shape[0])):
            batch[i] = i
        return size
    count = 0
    log_out = math.log1p(-rate)
    place = -1.0
    while True:
        place += 1.0 + math.floor(math.log(uniform(state)) / log_out)
        if place >= size:
            return count
        if count < batch.shape[0]:
            batch[count] = np.int64(place)
        count += 1


@compiled()
def shuffle(state, order):  # pragma: no cover  # compiled
    """A random order, by exchanges."""
    for i in range(order.shape[0] - 1, 0, -1):
        j = np.int64(next_word(state) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]


@compiled(nogil=True, fastmath=_FAST)
def train(
    x, unit, y, extra_x, extra_y, gradients, places, numbers, theta, widths,
    steps, rate, batch_size, poisson, learning_rate, clip, noise, sampling, noise_state,
):  # fmt: skip  # pragma: no cover  # compiled
    """DP-SGD from ``theta``, in place.

    The records are the rows of ``x`` (times ``unit``) and ``extra_x``, then one for each row of ``gradients`` and one for each
    of ``places``: canaries that contribute a given gradient, or a number at a coordinate, instead of the gradient of an
    example. Every record is in a batch with probability ``rate`` (or batches are cut from a shuffled order). A canary's gradient
    joins the data's, which was taken at the same parameters.
    """
    rows, extras, vectors = x.shape[0], extra_x.shape[0], gradients.shape[0]
    examples = rows + extras
    size = examples + vectors + places.shape[0]
    features = widths[0]
    wide, deep = 0, 0
    for layer in range(widths.shape[0]):
        wide += widths[layer]
        if layer > 0:
            deep += widths[layer]
    room = np.int64(rate * size + 10.0 * math.sqrt(rate * size) + 16.0) if poisson else np.int64(batch_size)
    room = min(room, size)
    batch = np.empty(room, np.int64)
    labels = np.empty(room, np.int64)
    squares = np.empty(room, np.float64)
    activations = np.empty(room * wide, np.float32)
    signals = np.empty(room * deep, np.float32)
    gradient = np.zeros(theta.shape[0], np.float32)
    disturbance = np.zeros(_CHUNK, np.float32)
    order = np.arange(0 if poisson else size)
    used = size
    step_size = np.float32(learning_rate / batch_size)
    seen = 0.0
    for _ in range(steps):
        if poisson:
            count = poisson_batch(sampling, rate, size, batch)
            if count > room:  # so rare that what was drawn is kept, and the places after are lost to memory, not to privacy
                count = room
        else:
            if used >= size:
                shuffle(sampling, order)
                used = 0
            count = min(np.int64(batch_size), size - used)
            batch[:count] = order[used : used + count]
            used += count
        seen += _touch(x, batch[:count])
        taken = 0
        for i in range(count):
            record = batch[i]
            if record < examples:
                target = activations[taken * features : (taken + 1) * features]
                if record < rows:
                    squares[taken] = _scaled_copy(target, x[record], unit)
                    labels[taken] = y[record]
                else:
                    squares[taken] = _scaled_copy(target, extra_x[record - rows], _ONE)
                    labels[taken] = extra_y[record - rows]
                taken += 1
        if taken:
            clipped_sum(theta, widths, labels[:taken], squares, activations, signals, clip, gradient)
        else:
            gradient[:] = _ZERO
        for i in range(count):
            record = batch[i] - examples
            if record >= vectors:
                gradient[places[record - vectors]] += numbers[record - vectors]
            elif record >= 0:
                source = gradients[record]
                for j in range(gradient.shape[0]):
                    gradient[j] += source[j]
        for first in range(0, theta.shape[0], _CHUNK):
            moved, along = theta[first : first + _CHUNK], gradient[first : first + _CHUNK]
            beside = disturbance[: moved.shape[0]]
            if noise > 0:
                fill_noise(noise_state, beside, noise)
            for j in range(moved.shape[0]):
                moved[j] -= step_size * (along[j] + beside[j])
    return seen
