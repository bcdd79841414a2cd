"""Compiled loop of DP-SGD: Poisson or shuffled batches, clipped gradients, noise, and what each step tells about canaries."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lidp._compiled.clipped_gradients import (
    add_multiple,
    clipped_sum,
    copy_scaled,
    project_examples,
    project_gradients,
    reads_in_place,
    square_scaled,
)
from lidp._compiled.compiler import compiled
from lidp._compiled.noise import LANES, fill_noise
from lidp._compiled.panels import Workspace, new_workspace, uses_panels
from lidp._compiled.prefetching import prefetch_items
from lidp._compiled.products import FAST, ONE, ZERO
from lidp._compiled.random_numbers import next_word, uniform
from lidp._compiled.signs import add_signs, project_signs
from lidp._compiled.transcripts import add_epoch_step, add_step

__all__ = [
    "LANES", "clipped_sum", "copy_examples", "poisson_batch", "reads_in_place", "shuffle", "sort_by_label", "square_rows",
    "take_examples", "train", "update", "workspace_for",
]  # fmt: skip
_CHUNK = 4096  # parameters that get noise at a time; a multiple of the block of fill_noise, and small enough for the cache


@compiled()
def poisson_batch(state, rate, size, batch):  # pragma: no cover  # compiled
    """Sample each of ``size`` indices with probability ``rate``, by geometric skips; fill ``batch`` and return their number.

    If there are more than fit into ``batch``, the rest is dropped, but the returned number counts them.
    """
    if rate >= 1.0:
        for i in range(min(size, batch.shape[0])):
            batch[i] = i
        return size
    count = 0
    log_out = math.log1p(-rate)
    index = -1.0
    while True:
        index += 1.0 + math.floor(math.log(uniform(state)) / log_out)
        if index >= size:
            return count
        if count < batch.shape[0]:
            batch[count] = np.int64(index)
        count += 1


@compiled()
def shuffle(state, order):  # pragma: no cover  # compiled
    """Shuffle ``order`` in place, uniformly."""
    for i in range(order.shape[0] - 1, 0, -1):
        j = np.int64(next_word(state) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]


@compiled()
def _next_batch(state, rate, batch_size, poisson, size, order, used, batch):  # pragma: no cover  # compiled
    """Fill ``batch`` with the records of a step; return their number, and how much of the shuffled ``order`` is used up."""
    if poisson:  # a batch ten standard deviations above the mean is cut
        return min(poisson_batch(state, rate, size, batch), batch.shape[0]), used
    if used >= size:
        shuffle(state, order)
        used = 0
    count = min(np.int64(batch_size), size - used)
    batch[:count] = order[used : used + count]
    return count, used + count


@compiled()
def square_rows(x, unit):  # pragma: no cover  # compiled
    """Return the squares of the norms of all rows times ``unit``."""
    squares = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        squares[i] = square_scaled(x[i], unit)
    return squares


@compiled()
def sort_by_label(batch, y, counts, buffer):  # pragma: no cover  # compiled
    """Sort the records of a batch by label, because examples with one label have many zeros in common; canaries come last.

    ``counts`` has an item for each label and one for canaries; ``buffer`` is at least as long as the batch.
    """
    last = counts.shape[0] - 1
    counts[:] = 0
    for i in range(batch.shape[0]):
        counts[np.int64(y[batch[i]]) if batch[i] < y.shape[0] else last] += 1
    start = 0
    for label in range(last + 1):
        counts[label], start = start, start + counts[label]
    for i in range(batch.shape[0]):
        group = np.int64(y[batch[i]]) if batch[i] < y.shape[0] else last
        buffer[counts[group]] = batch[i]
        counts[group] += 1
    batch[:] = buffer[: batch.shape[0]]


@compiled()
def take_examples(x, unit, y, row_squares, batch, first, rows, labels, squares):  # pragma: no cover  # compiled
    """Find the examples of a batch that are rows of ``x``, whose record numbers begin with ``first``; return how many there are.

    Fills ``rows``, ``labels`` and ``squares`` with their rows, their labels, and the squares of their norms. ``row_squares`` holds
    the squares of the norms of all rows times ``unit``, or is empty; then they are computed here.
    """
    taken = 0
    for i in range(batch.shape[0]):
        row = batch[i] - first
        if 0 <= row < x.shape[0]:
            rows[taken], labels[taken] = row, y[row]
            squares[taken] = row_squares[row] if row_squares.shape[0] else square_scaled(x[row], unit)
            taken += 1
    return taken


@compiled()
def copy_examples(x, unit, rows, features, activations):  # pragma: no cover  # compiled
    """Copy rows of ``x`` times ``unit`` into the buffer of activations, one after the other."""
    for i in range(rows.shape[0]):
        copy_scaled(activations[i * features : (i + 1) * features], x[rows[i]], unit)


@compiled(fastmath=FAST)
def update(theta, gradient, noise, step_size):  # pragma: no cover  # compiled
    """Take a step against a noisy gradient, in place."""
    for j in range(theta.shape[0]):
        theta[j] -= step_size * (gradient[j] + noise[j])


@compiled()
def _capacity(size, rate, batch_size, poisson):  # pragma: no cover  # compiled
    """Return the largest number of records that a batch may have."""
    expected = rate * size
    largest = np.int64(expected + 10.0 * math.sqrt(expected) + 16.0) if poisson else np.int64(batch_size)
    return min(largest, size)


def workspace_for(
    widths: Sequence[int], size: int, rate: float, batch_size: float, poisson: bool, watched: int
) -> Workspace | None:
    """Return buffers for training on ``size`` records, canaries included, with so many watched examples; None if not needed."""
    rows = max(_capacity(size, rate, batch_size, poisson), watched)
    return new_workspace(widths, rows, batch_size)


@compiled(nogil=True, fastmath=FAST)
def train(
    x, unit, y, extra_x, extra_y, gradients, coordinates, values, sign_words, sign_sizes, theta, widths,
    steps, rate, batch_size, poisson, learning_rate, clip, noise, sampling, noise_state,
    watched_x, watched_y, watched_gradients, watched_coordinates, watched_values,
    watched_sign_words, watched_sign_sizes, claimed, evidence, workspace, source,
):  # fmt: skip  # pragma: no cover  # compiled
    """Run DP-SGD from ``theta``, in place.

    The records are the rows of ``x`` (times ``unit``) and of ``extra_x``, then one per row of ``gradients``, per item of
    ``coordinates`` and per item of ``sign_sizes``. The latter three are canaries that contribute a given gradient, a value at one
    coordinate, or one number with random signs at all coordinates, instead of the gradient of an example. Every record is in a
    batch with probability ``rate`` (without ``poisson``, batches are consecutive parts of a shuffled order). The gradients of
    canaries are added to those of the examples in the batch.

    Watched canaries, in the training or not, are scored at every step. They are examples, gradients, coordinates in ascending
    order, or signs. The residual of a step is what it releases minus the sum of the clipped gradients of all records that are no
    canaries. :func:`add_step` adds what its inner product with the gradient of each watched canary tells to ``evidence``, under
    the ``claimed`` noise multiplier, sampling rate and clipping norm. If ``claimed`` has a fourth number above 0, the steps per
    epoch, :func:`add_epoch_step` does.

    ``workspace`` is what :func:`workspace_for` returns. ``source`` is ``x`` if :func:`reads_in_place` allows it, else None.
    """
    rows, extras, vectors = x.shape[0], extra_x.shape[0], gradients.shape[0]
    examples = rows + extras
    not_signs = examples + vectors + coordinates.shape[0]
    size = not_signs + sign_sizes.shape[0]
    features = widths[0]
    all_widths, upper_widths = 0, 0
    for layer in range(widths.shape[0]):
        all_widths += widths[layer]
        if layer > 0:
            upper_widths += widths[layer]
    capacity = _capacity(size, rate, batch_size, poisson)
    batch, next_batch = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    example_rows = np.empty(capacity, np.int64)
    labels = np.empty(capacity, np.int64)
    squares = np.empty(capacity, np.float64)
    activations = np.empty(capacity * all_widths, np.float32)
    signals = np.empty(capacity * upper_widths, np.float32)
    gradient = np.zeros(theta.shape[0], np.float32)
    chunk_noise = np.zeros(_CHUNK, np.float32)
    order = np.arange(0 if poisson else size)
    step_size = np.float32(learning_rate / batch_size)
    watched, watched_examples, watched_points = evidence.shape[0], watched_x.shape[0], watched_coordinates.shape[0]
    watched_signs = watched_sign_sizes.shape[0]
    watches_all = watched_examples + watched_gradients.shape[0] + watched_signs > 0  # and so needs the residual everywhere
    projections, lengths, last = np.zeros(watched), np.zeros(watched), np.zeros(watched)
    steps_per_epoch = np.int64(claimed[3]) if claimed.shape[0] > 3 else 0
    epoch_log_sums = np.zeros(watched)
    before = np.zeros(watched_points, np.float32)
    residual = np.zeros(theta.shape[0] if watches_all else 0, np.float32)
    extra_gradient = np.zeros(theta.shape[0] if extras else 0, np.float32)
    watched_gradient = np.zeros(theta.shape[0] if watched_examples else 0, np.float32)
    watched_rows, watched_squares = np.arange(watched_examples), square_rows(watched_x, ONE)
    watched_activations = np.empty(watched_examples * all_widths, np.float32)
    watched_signals = np.empty(watched_examples * upper_widths, np.float32)
    # Norms that are needed more than once are computed once.
    row_squares = square_rows(x[: rows if steps * rate > 1 else 0], unit)
    extra_squares = square_rows(extra_x, ONE)
    sorts = uses_panels(workspace, features, widths[1])
    label_counts, sorted_batch = np.empty(widths[-1] + 1, np.int64), np.empty(capacity, np.int64)
    count, used = _next_batch(sampling, rate, batch_size, poisson, size, order, size, batch)
    for step in range(steps):
        if sorts:
            sort_by_label(batch[:count], y, label_counts, sorted_batch)
        taken = take_examples(x, unit, y, row_squares, batch[:count], 0, example_rows, labels, squares)
        next_count, used = _next_batch(sampling, rate, batch_size, poisson, size, order, used, next_batch)
        upcoming = next_batch[:next_count]
        prefetch_items(y, upcoming)
        prefetch_items(row_squares, upcoming)
        if source is None:
            copy_examples(x, unit, example_rows[:taken], features, activations)
        if taken:
            clipped_sum(
                theta, widths, labels[:taken], squares, source, unit, example_rows[:taken], activations, signals, clip,
                workspace, gradient, x, upcoming,
            )  # fmt: skip
        else:
            gradient[:] = ZERO
        if watches_all:
            residual[:] = gradient
        for k in range(watched_points):
            before[k] = gradient[watched_coordinates[k]]
        if extras:  # planted examples by themselves, so that the sum of the others is known
            taken = take_examples(extra_x, ONE, extra_y, extra_squares, batch[:count], rows, example_rows, labels, squares)
            if taken:
                copy_examples(extra_x, ONE, example_rows[:taken], features, activations)
                clipped_sum(
                    theta, widths, labels[:taken], squares, None, ONE, example_rows[:taken], activations, signals, clip,
                    workspace, extra_gradient, x, upcoming[:0],
                )  # fmt: skip
                add_multiple(gradient, ONE, extra_gradient)
        for i in range(count):
            record = batch[i] - examples
            if batch[i] >= not_signs:
                sign = batch[i] - not_signs
                add_signs(sign_words[sign], gradient, sign_sizes[sign])
            elif record >= vectors:
                gradient[coordinates[record - vectors]] += values[record - vectors]
            elif record >= 0:
                add_multiple(gradient, ONE, gradients[record])
        if watched_examples:  # their gradients at the parameters of this step, clipped as claimed
            copy_examples(watched_x, ONE, watched_rows, features, watched_activations)
            clipped_sum(
                theta, widths, watched_y, watched_squares, None, ONE, watched_rows, watched_activations, watched_signals,
                np.float32(claimed[2]), workspace, watched_gradient, x, upcoming[:0],
            )  # fmt: skip
        point = 0
        for first in range(0, theta.shape[0], _CHUNK):
            part, part_gradient = theta[first : first + _CHUNK], gradient[first : first + _CHUNK]
            part_noise = chunk_noise[: part.shape[0]]
            if noise > 0:
                fill_noise(noise_state, part_noise, noise)
            update(part, part_gradient, part_noise, step_size)
            if watches_all:
                part_residual = residual[first : first + _CHUNK]
                for j in range(part.shape[0]):
                    part_residual[j] = part_gradient[j] + part_noise[j] - part_residual[j]
            while point < watched_points and watched_coordinates[point] < first + _CHUNK:
                j = watched_coordinates[point] - first
                value = np.float64(watched_values[point])
                projections[point] = value * (np.float64(part_gradient[j]) + part_noise[j] - before[point])
                lengths[point] = value * value
                point += 1
        if watched_gradients.shape[0]:
            project_gradients(residual, watched_gradients, projections, lengths)
        elif watched_signs:
            project_signs(residual, watched_sign_words, watched_sign_sizes, projections, lengths)
        elif watched_examples:
            project_examples(
                residual,
                widths,
                watched_examples,
                watched_squares,
                watched_activations,
                watched_signals,
                projections,
                lengths,
            )
        if watched:
            part_evidence = evidence[:, step * evidence.shape[1] // steps]
            if steps_per_epoch > 0:
                seen = step % steps_per_epoch
                add_epoch_step(projections, lengths, claimed, seen, steps_per_epoch, epoch_log_sums, last, part_evidence)
            else:
                add_step(projections, lengths, claimed, last, part_evidence)
        batch, next_batch, count = next_batch, batch, next_count
