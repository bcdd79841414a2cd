"""Compiled requests for memory that will be read soon, so that it is in the cache by then."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from lidp._compiled.compiler import compiled
from lidp._compiled.vectors import built


@built
def prefetch(_typing, array, _index):
    """Ask for the cache line of an item of a one-dimensional contiguous array, without waiting for it."""

    def generate(context, builder, _signature, arguments):
        data = context.make_array(array)(context, builder, arguments[0]).data
        short = ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, short, short, short])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch")
        read, keep, of_data = 0, 2, 1  # keep: in the second-level cache
        builder.call(function, [place, *(ir.Constant(short, flag) for flag in (read, keep, of_data))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@compiled()
def prefetch_items(array, batch):  # pragma: no cover  # compiled
    """Ask for items of a one-dimensional array by their numbers, without waiting for them; higher numbers are no items."""
    for i in range(batch.shape[0]):
        if batch[i] < array.shape[0]:
            prefetch(array, batch[i])


@compiled()
def prefetch_rows(x, batch):  # pragma: no cover  # compiled
    """Ask for all cache lines of the rows of a batch, without waiting for them; higher numbers are no rows of ``x``."""
    line = 64 // x.itemsize
    for i in range(batch.shape[0]):
        if batch[i] < x.shape[0]:
            row = x[batch[i]]
            for j in range(0, x.shape[1], line):
                prefetch(row, j)
