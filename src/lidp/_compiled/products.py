"""Compiled matrix products of the layers of small models, in tiles whose sums stay in vector registers.

For the sizes of such models (batches of 100, layers of up to 1,024) this is some 10 % faster than OpenBLAS on processors with
AVX-512. Other products are left to BLAS: :func:`fits_tiles` says which.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding
from numba import types

from lidp._compiled.compiler import compiled
from lidp._compiled.prefetching import prefetch_rows
from lidp._compiled.vectors import LANES, Memory, built, in_all_lanes, loop, number, shape_of, sums_of_lanes, zeros

ZERO, ONE = np.float32(0.0), np.float32(1.0)
FAST = {"reassoc", "contract", "arcp", "nsz", "afn"}
"""Fast-math flags that allow reordering sums but, unlike ``fastmath=True``, do not assume that there are no infinities."""
WIDE_REGISTERS = bool(binding.get_host_cpu_features().get("avx512f"))
_FEW_OUTPUTS = 32
_MAX_OUTPUTS = 1024 if WIDE_REGISTERS else _FEW_OUTPUTS  # up to this number, tiles are faster than a general product
_MAX_INPUTS = 1024  # of layers with more than few outputs; the rows of a tile fit into the first-level cache
_OUTPUTS = 5  # of a tile
_ROWS = _VECTORS = 4 if WIDE_REGISTERS else 1  # of a tile, so that its sums fit into registers


@compiled()
def fits_tiles(inputs, outputs):  # pragma: no cover  # compiled
    """Whether tiles are faster than a general product for a layer."""
    return outputs <= _FEW_OUTPUTS or (outputs <= _MAX_OUTPUTS and inputs <= _MAX_INPUTS)


def _inner_tile(rows: int, outputs: int) -> Any:
    """Return a function that computes ``below[chosen] @ weights.T`` for some rows and outputs, but for the last inputs % LANES.

    ``start_row`` and ``start_output`` say where the tile begins. Its sums stay in registers.
    """

    @built
    def compute(_typing, below, chosen, weights, out, _start_row, _start_output):
        def generate(context, builder, signature, arguments):
            lower, choice, upper, products = (
                Memory(context, builder, kind, array) for kind, array in zip(signature.args, arguments[:4], strict=False)
            )
            (_, inputs), (_, width) = (
                shape_of(context, builder, kind, array) for kind, array in ((below, arguments[0]), (out, arguments[3]))
            )
            row_numbers = [builder.add(arguments[4], number(i)) for i in range(rows)]
            output_numbers = [builder.add(arguments[5], number(j)) for j in range(outputs)]
            row_starts = [builder.mul(choice.whole_number(i), inputs) for i in row_numbers]
            weight_starts = [builder.mul(j, inputs) for j in output_numbers]

            def add_vector(vector, totals):
                offset = builder.mul(vector, number(LANES))
                features = [lower.load(builder.add(start, offset)) for start in row_starts]
                added = []
                for j, start in enumerate(weight_starts):
                    factors = upper.load(builder.add(start, offset))
                    added += [totals[j * rows + i] + features[i] * factors for i in range(rows)]
                return tuple(added)

            totals = loop(builder, builder.sdiv(inputs, number(LANES)), zeros(builder, rows * outputs), add_vector)
            sums = iter(sums_of_lanes(totals))
            for output in output_numbers:
                for row in row_numbers:
                    products.store_item(builder.add(builder.mul(row, width), output), next(sums))
            return context.get_dummy_value()

        return types.void(below, chosen, weights, out, types.int64, types.int64), generate

    return compute


_inner_block, _inner_row = _inner_tile(_ROWS, _OUTPUTS), _inner_tile(1, _OUTPUTS)
_inner_column, _inner_item = _inner_tile(_ROWS, 1), _inner_tile(1, 1)


@compiled()
def _inner_columns(below, chosen, weights, out, first, end, x, upcoming):  # pragma: no cover  # compiled
    """Compute the outputs ``first`` to ``end - 1`` of ``below[chosen] @ weights.T``, but for the last inputs % LANES."""
    rows = chosen.shape[0]
    blocks, whole = rows - rows % _ROWS, end - (end - first) % _OUTPUTS
    for i in range(0, blocks, _ROWS):
        prefetch_rows(x, upcoming[i * upcoming.shape[0] // rows : (i + _ROWS) * upcoming.shape[0] // rows])
        for j in range(first, whole, _OUTPUTS):
            _inner_block(below, chosen, weights, out, i, j)
        for j in range(whole, end):
            _inner_column(below, chosen, weights, out, i, j)
    for i in range(blocks, rows):
        for j in range(first, whole, _OUTPUTS):
            _inner_row(below, chosen, weights, out, i, j)
        for j in range(whole, end):
            _inner_item(below, chosen, weights, out, i, j)


@compiled(fastmath=FAST)
def inner_products(below, chosen, weights, out, x, upcoming):  # pragma: no cover  # compiled
    """Compute ``below[chosen] @ weights.T``, in tiles whose sums fit into registers; ``below`` may hold bytes.

    Meanwhile, memory fetches the rows ``upcoming`` of ``x`` into the cache.
    """
    outputs, inputs = weights.shape
    # At most so many outputs at a time, whose weights stay in the first-level cache.
    step = outputs if outputs <= _FEW_OUTPUTS else _OUTPUTS
    for first in range(0, outputs, step):
        end = min(first + step, outputs)
        part = upcoming[first * upcoming.shape[0] // outputs : end * upcoming.shape[0] // outputs]
        _inner_columns(below, chosen, weights, out, first, end, x, part)
    for k in range(inputs - inputs % LANES, inputs):
        for i in range(chosen.shape[0]):
            for j in range(outputs):
                out[i, j] += np.float32(below[chosen[i], k]) * weights[j, k]


def _outer_tile(outputs: int, vectors: int, *, transposed: bool = True) -> Any:
    """Return a function that computes ``scale * signal.T @ below[chosen]`` for some outputs and LANES times ``vectors`` inputs.

    Unless ``transposed``, it computes ``scale * signal @ below[chosen]``, and the outputs are rows of ``signal``.

    ``start_output`` and ``start_input`` say where the tile begins. Its sums stay in registers.
    """

    @built
    def compute(_typing, signal, below, chosen, _scale, out, _start_output, _start_input):
        def generate(context, builder, _signature, arguments):
            signal_data, below_data, chosen_data, scale, out_data, first_output, first_input = arguments
            signals, inputs, choice, sums = (
                Memory(context, builder, kind, array)
                for kind, array in ((signal, signal_data), (below, below_data), (chosen, chosen_data), (out, out_data))
            )
            signal_rows, signal_width = shape_of(context, builder, signal, signal_data)
            _, input_width = shape_of(context, builder, below, below_data)
            offsets = [number(LANES * v) for v in range(vectors)]

            def add_row(row, totals):
                input_start = builder.add(builder.mul(choice.whole_number(row), input_width), first_input)
                features = [inputs.load(builder.add(input_start, offset)) for offset in offsets]
                added = []
                for j in range(outputs):
                    output = builder.add(first_output, number(j))
                    line, column = (row, output) if transposed else (output, row)
                    factor = signals.item(builder.add(builder.mul(line, signal_width), column))
                    added += [totals[j * vectors + v] + factor * features[v] for v in range(vectors)]
                return tuple(added)

            rows = signal_rows if transposed else signal_width
            totals = loop(builder, rows, zeros(builder, outputs * vectors), add_row)
            factor = in_all_lanes(builder, scale)
            for j in range(outputs):
                start = builder.add(builder.mul(builder.add(first_output, number(j)), input_width), first_input)
                for v, offset in enumerate(offsets):
                    sums.store(builder.add(start, offset), totals[j * vectors + v] * factor)
            return context.get_dummy_value()

        return types.void(signal, below, chosen, types.float32, out, types.int64, types.int64), generate

    return compute


_WIDE, _SINGLE = LANES * _VECTORS, LANES
_wide_tile, _tall_tile = _outer_tile(_OUTPUTS, _VECTORS), _outer_tile(_OUTPUTS, 1)
_flat_tile, _small_tile = _outer_tile(1, _VECTORS), _outer_tile(1, 1)
_wide_back, _tall_back = _outer_tile(_OUTPUTS, _VECTORS, transposed=False), _outer_tile(_OUTPUTS, 1, transposed=False)
_flat_back, _small_back = _outer_tile(1, _VECTORS, transposed=False), _outer_tile(1, 1, transposed=False)


@compiled(fastmath=FAST)
def outer_products(signal, below, chosen, scale, out):  # pragma: no cover  # compiled
    """Compute ``scale * signal.T @ below[chosen]``, in tiles whose sums fit into registers; ``below`` may hold bytes."""
    outputs, inputs = out.shape
    whole, wide, narrow = outputs - outputs % _OUTPUTS, inputs - inputs % _WIDE, inputs - inputs % _SINGLE
    for k in range(0, wide, _WIDE):
        for j in range(0, whole, _OUTPUTS):
            _wide_tile(signal, below, chosen, scale, out, j, k)
        for j in range(whole, outputs):
            _flat_tile(signal, below, chosen, scale, out, j, k)
    for k in range(wide, narrow, _SINGLE):
        for j in range(0, whole, _OUTPUTS):
            _tall_tile(signal, below, chosen, scale, out, j, k)
        for j in range(whole, outputs):
            _small_tile(signal, below, chosen, scale, out, j, k)
    for k in range(narrow, inputs):
        for j in range(outputs):
            total = ZERO
            for i in range(chosen.shape[0]):
                total += signal[i, j] * np.float32(below[chosen[i], k])
            out[j, k] = total * scale


@compiled(fastmath=FAST)
def back_products(signal, weights, out):  # pragma: no cover  # compiled
    """Compute ``signal @ weights``, in tiles whose sums fit into registers."""
    rows, outputs = signal.shape
    inputs = weights.shape[1]
    every = np.arange(outputs)
    whole, wide, narrow = rows - rows % _OUTPUTS, inputs - inputs % _WIDE, inputs - inputs % _SINGLE
    for k in range(0, wide, _WIDE):
        for i in range(0, whole, _OUTPUTS):
            _wide_back(signal, weights, every, ONE, out, i, k)
        for i in range(whole, rows):
            _flat_back(signal, weights, every, ONE, out, i, k)
    for k in range(wide, narrow, _SINGLE):
        for i in range(0, whole, _OUTPUTS):
            _tall_back(signal, weights, every, ONE, out, i, k)
        for i in range(whole, rows):
            _small_back(signal, weights, every, ONE, out, i, k)
    for i in range(rows):
        for k in range(narrow, inputs):
            total = ZERO
            for j in range(outputs):
                total += signal[i, j] * weights[j, k]
            out[i, k] = total
