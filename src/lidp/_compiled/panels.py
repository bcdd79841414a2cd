"""Compiled matrix products of wide layers, which skip features that are 0 and need processors with AVX-512.

Half of the pixels of Fashion-MNIST are 0, and most features of purchases. A *panel* holds the weights of 64 outputs, or their
gradient, transposed: one row per feature. Outputs are computed for four rows of a batch at a time, which skip the features that
are 0 in all four; gradients for four features at a time, which skip the rows in which all four are 0. Bits say which these are.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types

from lidp._compiled.compiler import compiled
from lidp._compiled.prefetching import prefetch_rows
from lidp._compiled.products import WIDE_REGISTERS, fits_tiles
from lidp._compiled.vectors import (
    LANES,
    Memory,
    built,
    loop_over_bits,
    nonzero_bits,
    number,
    shape_of,
    transpose,
    zeros,
)

_VECTORS = 4
PANEL = LANES * _VECTORS
"""Outputs of a panel."""
_BLOCK = 4  # rows of a batch, or features, whose sums are computed together
_WORD = 64  # bits
_FEWEST_ROWS = 64  # of batches for which the transposing of weights pays
_NO_BITS, _ALL_BITS = np.uint64(0), np.uint64(2**64 - 1)
_ONE = np.uint64(1)


class Workspace(NamedTuple):
    """Buffers for the products of layers that use panels; :func:`new_workspace` makes them."""

    usual_rows: float
    """the usual number of rows of a batch"""
    panel: Any
    """a panel of weights, or of their gradient"""
    row_bits: Any
    """for each layer with panels and each row of a batch, which inputs are not 0"""
    block_bits: Any
    """for one product: which inputs are not 0 in a block of rows, or in which rows a block of inputs is not 0"""


@compiled()
def _words(bits):  # pragma: no cover  # compiled
    return (bits + _WORD - 1) // _WORD


@compiled()
def _suits_panels(inputs, outputs, rows):  # pragma: no cover  # compiled
    """Whether panels are faster than other products for a layer, at least if half of the inputs are 0."""
    return WIDE_REGISTERS and outputs % PANEL == 0 and rows >= _FEWEST_ROWS and fits_tiles(inputs, outputs)


def new_workspace(widths: Sequence[int], rows: int, usual_rows: float) -> Workspace | None:
    """Return buffers for batches of up to ``rows`` rows and layers of these widths; None if no layer uses panels.

    Without a workspace, code for panels is not even compiled. Which layers use panels depends on the usual number of rows, a
    constant of the training, and not on batches or records: otherwise, rounding would let the gradient of a record depend on
    others.
    """
    layers = [inputs for inputs, outputs in itertools.pairwise(widths) if _suits_panels(inputs, outputs, usual_rows)]
    if not layers:
        return None
    words, inputs = [_words(width) for width in layers], max(layers)
    bits_of_rows = (rows + 1) * max(words)
    blocks = _words(-(-inputs // _BLOCK)) * _WORD
    bits_of_blocks = blocks * _words(rows) + rows * _words(blocks)
    return Workspace(
        float(usual_rows),
        np.empty(inputs * PANEL, np.float32),
        np.empty(rows * sum(words), np.uint64),
        np.empty(max(bits_of_rows, bits_of_blocks), np.uint64),
    )


@compiled()
def uses_panels(workspace, inputs, outputs):  # pragma: no cover  # compiled
    """Whether the products of a layer go through panels."""
    if workspace is None:
        return False
    return _suits_panels(inputs, outputs, workspace.usual_rows)


@compiled()
def bit_matrix(flat, start, rows, columns):  # pragma: no cover  # compiled
    """Return a view of part of a flat vector of words as a matrix of bits with this number of columns, and where it ends."""
    words = _words(columns)
    end = start + rows * words
    return flat[start:end].reshape(rows, words), end


@built
def _transpose_block(_typing, source, target, _row, _column, _target_row, _target_column):
    """Write a block of LANES rows and columns transposed to another matrix; return 0, or NaN if a number is not finite."""

    def generate(context, builder, signature, arguments):
        before, after = (
            Memory(context, builder, kind, array) for kind, array in zip(signature.args, arguments[:2], strict=False)
        )
        widths = [
            shape_of(context, builder, kind, array)[1] for kind, array in zip((source, target), arguments[:2], strict=True)
        ]

        def start(row, k, width, column):
            return builder.add(builder.mul(builder.add(row, number(k)), width), column)

        row, column, target_row, target_column = arguments[2:]
        lines = [before.load(start(row, k, widths[0], column)) for k in range(LANES)]
        for k, line in enumerate(transpose(lines)):
            after.store(start(target_row, k, widths[1], target_column), line)
        total = zeros(builder, 1)[0]
        for line in lines:
            total = total + line * 0.0
        return total.sum_lanes()

    whole = types.int64
    return types.float32(source, target, whole, whole, whole, whole), generate


@compiled()
def _fill_panel(weights, first, panel):  # pragma: no cover  # compiled
    """Fill a panel with the weights of the outputs from ``first`` on, transposed; return whether they are all finite."""
    inputs = panel.shape[0]
    whole = inputs - inputs % LANES
    check = np.float32(0.0)
    for column in range(0, PANEL, LANES):
        for k in range(0, whole, LANES):
            check += _transpose_block(weights, panel, first + column, k, k, column)
    for column in range(PANEL):
        for k in range(whole, inputs):
            panel[k, column] = weights[first + column, k]
            check += panel[k, column] * np.float32(0.0)
    return check == np.float32(0.0)


@compiled()
def _write_panel(panel, first, gradient):  # pragma: no cover  # compiled
    """Copy a panel, transposed, into the gradient of the weights of the outputs from ``first`` on."""
    inputs = panel.shape[0]
    whole = inputs - inputs % LANES
    for column in range(0, PANEL, LANES):
        for k in range(0, whole, LANES):
            _transpose_block(panel, gradient, k, column, first + column, k)
    for column in range(PANEL):
        for k in range(whole, inputs):
            gradient[first + column, k] = panel[k, column]


@built
def _nonzero_lanes(_typing, row, _start):
    """Return bits of the LANES numbers from an index on: those that are not 0."""

    def generate(context, builder, _signature, arguments):
        return nonzero_bits(Memory(context, builder, row, arguments[0]).load(arguments[1]))

    return types.uint64(row, types.int64), generate


@compiled()
def _find_nonzero(below, bits):  # pragma: no cover  # compiled
    """Fill ``bits``, row by row, with which inputs are not 0."""
    rows, inputs = below.shape
    whole = inputs - inputs % LANES
    for i in range(rows):
        row, words = below[i], bits[i]
        words[:] = _NO_BITS
        for k in range(0, whole, LANES):
            words[k // _WORD] |= _nonzero_lanes(row, k) << np.uint64(k % _WORD)
        for k in range(whole, inputs):
            if row[k] != np.float32(0.0):  # true for NaN
                words[k // _WORD] |= _ONE << np.uint64(k % _WORD)


def _sum_tile(count: int) -> Any:
    """Return a function that adds up rows of ``vectors`` times factors, for a block of ``count`` sums of PANEL numbers each.

    Sum n is the sum over i of factor ``first + n * step_n + i * step_i`` times the PANEL numbers of ``vectors`` in row i from
    column ``start`` on, for those i whose bit is set in ``bits[line]``. It goes to ``sums``, n rows below the item with flat index
    ``target``. Factors have flat indices, too. The sums stay in registers.
    """

    @built
    def compute(_typing, factors, _first, _step_n, _step_i, bits, _line, vectors, _start, sums, _target):
        def generate(context, builder, _signature, arguments):
            factors_data, first, step_n, step_i, words, line, vectors_data, start, sums_data, target = arguments
            multipliers = Memory(context, builder, factors, factors_data)
            summands = Memory(context, builder, vectors, vectors_data)
            out = Memory(context, builder, sums, sums_data)
            width, out_width = (
                shape_of(context, builder, kind, array)[1] for kind, array in ((vectors, vectors_data), (sums, sums_data))
            )
            starts = [builder.add(first, builder.mul(step_n, number(n))) for n in range(count)]

            def add_row(i, totals):
                row = builder.add(builder.mul(i, width), start)
                parts = [summands.load(builder.add(row, number(LANES * v))) for v in range(_VECTORS)]
                offset = builder.mul(i, step_i)
                added = []
                for n in range(count):
                    factor = multipliers.item(builder.add(starts[n], offset))
                    added += [totals[n * _VECTORS + v] + factor * part for v, part in enumerate(parts)]
                return tuple(added)

            word_data = context.make_array(bits)(context, builder, words).data
            word_count = shape_of(context, builder, bits, words)[1]
            first_word = builder.gep(word_data, [builder.mul(line, word_count)])
            totals = loop_over_bits(builder, first_word, word_count, zeros(builder, count * _VECTORS), add_row)
            for n in range(count):
                place = builder.add(target, builder.mul(out_width, number(n)))
                for v in range(_VECTORS):
                    out.store(builder.add(place, number(LANES * v)), totals[n * _VECTORS + v])
            return context.get_dummy_value()

        whole = types.int64
        kinds = (factors, whole, whole, whole, bits, whole, vectors, whole, sums, whole)
        return types.void(*kinds), generate

    return compute


_sum_block, _sum_one = _sum_tile(_BLOCK), _sum_tile(1)


@compiled()
def inner_products(below, weights, row_bits, out, workspace, x, upcoming):  # pragma: no cover  # compiled
    """Compute ``below @ weights.T``; fill ``row_bits`` with which inputs are not 0.

    Meanwhile, memory fetches the rows ``upcoming`` of ``x`` into the cache.

    Guarantee: a row of ``out`` does not depend on the other rows. Skipped terms are 0; if weights are not finite, none is skipped.
    """
    rows, inputs = below.shape
    outputs = weights.shape[0]
    _find_nonzero(below, row_bits)
    blocks = rows // _BLOCK
    block_bits, end = bit_matrix(workspace.block_bits, 0, blocks, inputs)
    all_bits, _ = bit_matrix(workspace.block_bits, end, 1, inputs)
    for block in range(blocks):
        for word in range(block_bits.shape[1]):
            union = _NO_BITS
            for i in range(block * _BLOCK, (block + 1) * _BLOCK):
                union |= row_bits[i, word]
            block_bits[block, word] = union
    all_bits[:] = _ALL_BITS
    if inputs % _WORD:
        all_bits[0, -1] = (_ONE << np.uint64(inputs % _WORD)) - _ONE
    panel = workspace.panel[: inputs * PANEL].reshape(inputs, PANEL)
    tiles, tile = blocks * (outputs // PANEL), 0
    for first in range(0, outputs, PANEL):
        finite = _fill_panel(weights, first, panel)
        for block in range(blocks):
            prefetch_rows(x, upcoming[tile * upcoming.shape[0] // tiles : (tile + 1) * upcoming.shape[0] // tiles])
            tile += 1
            row = block * _BLOCK
            bits, line = (block_bits, block) if finite else (all_bits, 0)
            _sum_block(below, row * inputs, inputs, 1, bits, line, panel, 0, out, row * outputs + first)
        for row in range(blocks * _BLOCK, rows):
            bits, line = (row_bits, row) if finite else (all_bits, 0)
            _sum_one(below, row * inputs, inputs, 1, bits, line, panel, 0, out, row * outputs + first)


@compiled()
def outer_products(signal, below, row_bits, out, workspace):  # pragma: no cover  # compiled
    """Compute ``signal.T @ below``, given which inputs of each row are not 0.

    Where inputs are 0, signals that are not finite may count as 0. Clipped signals are finite.
    """
    rows, inputs = below.shape
    whole = inputs - inputs % _BLOCK
    blocks = (inputs + _BLOCK - 1) // _BLOCK
    bits_of_rows, end = bit_matrix(workspace.block_bits, 0, rows, blocks)
    bits, _ = bit_matrix(workspace.block_bits, end, _words(blocks) * _WORD, rows)
    _fold_blocks(row_bits, bits_of_rows)
    _transpose_bits(bits_of_rows, bits)
    panel = workspace.panel[: inputs * PANEL].reshape(inputs, PANEL)
    for first in range(0, signal.shape[1], PANEL):
        for k in range(0, whole, _BLOCK):
            _sum_block(below, k, 1, inputs, bits, k // _BLOCK, signal, first, panel, k * PANEL)
        for k in range(whole, inputs):
            _sum_one(below, k, 1, inputs, bits, k // _BLOCK, signal, first, panel, k * PANEL)
        _write_panel(panel, first, out)


@compiled()
def _fold_blocks(row_bits, bits):  # pragma: no cover  # compiled
    """Fill ``bits`` with which blocks of _BLOCK = 4 inputs have one that is not 0, from the bits of single inputs."""
    bits[:] = _NO_BITS
    for i in range(row_bits.shape[0]):
        for source in range(row_bits.shape[1]):
            word = row_bits[i, source]
            word |= word >> np.uint64(1)
            word = (word | (word >> np.uint64(2))) & np.uint64(0x1111111111111111)  # the lowest of every four bits
            word = (word | (word >> np.uint64(3))) & np.uint64(0x0303030303030303)
            word = (word | (word >> np.uint64(6))) & np.uint64(0x000F000F000F000F)
            word = (word | (word >> np.uint64(12))) & np.uint64(0x000000FF000000FF)
            word = (word | (word >> np.uint64(24))) & np.uint64(0xFFFF)
            bits[i, source // _BLOCK] |= word << np.uint64(source % _BLOCK * (_WORD // _BLOCK))


@compiled()
def _transpose_bits(bits, transposed):  # pragma: no cover  # compiled
    """Transpose a matrix of bits, by exchanging ever smaller squares of 64 x 64 bits; ``transposed`` has 64 rows for each word."""
    rows = bits.shape[0]
    square = np.empty(_WORD, np.uint64)
    for column in range(bits.shape[1]):
        for first in range(0, rows, _WORD):
            for i in range(_WORD):
                square[i] = bits[first + i, column] if first + i < rows else _NO_BITS
            half, mask = _WORD // 2, np.uint64(0xFFFFFFFF)
            while half:
                shift = np.uint64(half)
                for i in range(_WORD):
                    if not i & half:
                        exchanged = ((square[i] >> shift) ^ square[i + half]) & mask
                        square[i] ^= exchanged << shift
                        square[i + half] ^= exchanged
                half //= 2
                mask ^= mask << np.uint64(half)
            for i in range(_WORD):
                transposed[column * _WORD + i, first // _WORD] = square[i]
