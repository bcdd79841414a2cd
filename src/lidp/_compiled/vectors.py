"""Build compiled functions from vector instructions, for loops that the compiler does not vectorise by itself.

``Vector`` records arithmetic on :data:`LANES` numbers of 32 bits as instructions of LLVM, which compiles them for the vectors of
any processor: one register of 512 bits, two of 256 or four of 128.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

LANES = 16
_SHORT, _LONG = ir.IntType(32), ir.IntType(64)
WORDS = ir.VectorType(_SHORT, LANES)
SINGLES = ir.VectorType(ir.FloatType(), LANES)
_FAST = (
    "contract",
    "nsz",
)  # products and sums may be contracted, but are not reordered; infinities and NaN stay what they are


class Vector:
    """LANES whole numbers of 32 bits, or as many of single precision, in a function that is being built."""

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder, self.value = builder, value

    def _operand(self, other: Vector | float) -> ir.Value:
        if isinstance(other, Vector):
            return other.value
        if self.value.type == SINGLES:
            return ir.Constant(SINGLES, [float(np.float32(other))] * LANES)
        return ir.Constant(WORDS, [int(other) & 0xFFFFFFFF] * LANES)

    def _new(self, value: ir.Value) -> Vector:
        return Vector(self.builder, value)

    def _apply(self, whole: str, single: str, other: Vector | float) -> Vector:
        if self.value.type == SINGLES:
            return self._new(getattr(self.builder, single)(self.value, self._operand(other), flags=_FAST))
        return self._new(getattr(self.builder, whole)(self.value, self._operand(other)))

    def __add__(self, other: Vector | float) -> Vector:
        return self._apply("add", "fadd", other)

    def __sub__(self, other: Vector | float) -> Vector:
        return self._apply("sub", "fsub", other)

    def __mul__(self, other: Vector | float) -> Vector:
        return self._apply("mul", "fmul", other)

    def __xor__(self, other: Vector | int) -> Vector:
        return self._new(self.builder.xor(self.value, self._operand(other)))

    def __and__(self, other: Vector | int) -> Vector:
        return self._new(self.builder.and_(self.value, self._operand(other)))

    def __or__(self, other: Vector | int) -> Vector:
        return self._new(self.builder.or_(self.value, self._operand(other)))

    def __lshift__(self, bits: Vector | int) -> Vector:
        return self._new(self.builder.shl(self.value, self._operand(bits)))

    def __rshift__(self, bits: Vector | int) -> Vector:
        """Return the words shifted to the right, as numbers without sign."""
        return self._new(self.builder.lshr(self.value, self._operand(bits)))

    def shift_signed(self, bits: int) -> Vector:
        """Return the words shifted to the right, as numbers with sign."""
        return self._new(self.builder.ashr(self.value, self._operand(bits)))

    def rotate(self, bits: int) -> Vector:
        """Return the words rotated to the left."""
        return (self << bits) | (self >> (32 - bits))

    def to_singles(self) -> Vector:
        """Return numbers with sign as numbers of single precision."""
        return self._new(self.builder.sitofp(self.value, SINGLES))

    def as_singles(self) -> Vector:
        """Return the same bits, read as numbers of single precision."""
        return self._new(self.builder.bitcast(self.value, SINGLES))

    def as_words(self) -> Vector:
        """Return the same bits, read as words."""
        return self._new(self.builder.bitcast(self.value, WORDS))

    def sum_lanes(self) -> ir.Value:
        """Return the sum of all lanes, in any order."""
        kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), SINGLES])
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f32")
        return self.builder.call(function, [ir.Constant(ir.FloatType(), 0.0), self.value], fastmath=("reassoc",))

    def where_odd(self, chosen: Vector, other: Vector) -> Vector:
        """Return ``chosen`` in the lanes of odd words, ``other`` elsewhere."""
        odd = self.builder.trunc(self.value, ir.VectorType(ir.IntType(1), LANES))
        return self._new(self.builder.select(odd, chosen.value, other.value))

    def square_root(self) -> Vector:
        return self._call("sqrt")

    def at_least_zero(self) -> Vector:
        return self._call("maxnum", self._operand(0.0))

    def at_least(self, limit: float) -> Vector:
        """Return the larger of each number and ``limit``; NaN stays NaN."""
        below = self.builder.fcmp_ordered("<", self.value, self._operand(limit))
        return self._new(self.builder.select(below, self._operand(limit), self.value))

    def rounded(self) -> Vector:
        """Return the nearest whole numbers, in single precision."""
        return self._call("rint")

    def to_words(self) -> Vector:
        """Return whole numbers of single precision as numbers with sign; 0 for NaN."""
        kind = ir.FunctionType(WORDS, [SINGLES])
        name = f"llvm.fptosi.sat.v{LANES}i32.v{LANES}f32"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self._new(self.builder.call(function, [self.value]))

    def _call(self, name: str, *others: ir.Value) -> Vector:
        kind = ir.FunctionType(SINGLES, [SINGLES] * (1 + len(others)))
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{LANES}f32")
        return self._new(self.builder.call(function, [self.value, *others]))


def polynomial(x: Vector, coefficients: Sequence[float]) -> Vector:
    """Return the value at ``x`` of a polynomial; the coefficient of the highest power comes first."""
    total = x * 0.0 + coefficients[0] if len(coefficients) == 1 else x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def _folded(one: Vector, other: Vector, width: int) -> Vector:
    """Return the groups of ``width`` lanes of two vectors, each folded to half its width."""
    starts = range(0, 2 * LANES, width)
    half = width // 2
    lower = [start + k for start in starts for k in range(half)]
    builder = one.builder
    low, high = (
        Vector(builder, builder.shuffle_vector(one.value, other.value, ir.Constant(WORDS, lanes)))
        for lanes in (lower, [lane + half for lane in lower])
    )
    return low + high


def sums_of_lanes(vectors: Sequence[Vector]) -> list[ir.Value]:
    """Return the sum of the lanes of each vector; for many vectors, faster than one by one."""
    folded, width = list(vectors), LANES
    while width > 1:
        folded += folded[-1:] if len(folded) % 2 else []
        folded = [_folded(one, other, width) for one, other in zip(folded[::2], folded[1::2], strict=True)]
        width //= 2
    builder = folded[0].builder
    return [builder.extract_element(folded[k // LANES].value, ir.Constant(_SHORT, k % LANES)) for k in range(len(vectors))]


def in_all_lanes(builder: ir.IRBuilder, number: ir.Value) -> Vector:
    """Return a number of single precision in all lanes."""
    start = builder.insert_element(ir.Constant(SINGLES, ir.Undefined), number, ir.Constant(_SHORT, 0))
    return Vector(builder, builder.shuffle_vector(start, start, ir.Constant(WORDS, [0] * LANES)))


class Memory:
    """The numbers of a contiguous array of 32-bit numbers, read and written as vectors."""

    def __init__(self, context: Any, builder: ir.IRBuilder, array_type: types.Array, array: ir.Value) -> None:
        if array_type.layout != "C":
            raise TypingError("vector instructions need contiguous arrays")
        self._builder = builder
        self._data = context.make_array(array_type)(context, builder, array).data
        self._type = SINGLES if array_type.dtype == types.float32 else WORDS

    def _pointer(self, start: ir.Value) -> ir.Value:
        return self._builder.bitcast(self._builder.gep(self._data, [start]), self._type.as_pointer())

    def load(self, start: ir.Value) -> Vector:
        """Return the LANES numbers from this index on."""
        return Vector(self._builder, self._builder.load(self._pointer(start), align=4))

    def store(self, start: ir.Value, value: Vector) -> None:
        """Write LANES numbers from this index on."""
        self._builder.store(value.value, self._pointer(start), align=4)

    def item(self, index: ir.Value) -> Vector:
        """Return one number in all lanes."""
        return in_all_lanes(self._builder, self._builder.load(self._builder.gep(self._data, [index])))

    def store_item(self, index: ir.Value, value: ir.Value) -> None:
        """Write one number."""
        self._builder.store(value, self._builder.gep(self._data, [index]))


def number(value: int) -> ir.Value:
    """Return a whole number of 64 bits."""
    return ir.Constant(_LONG, value)


State = tuple[Vector, ...]


def loop(builder: ir.IRBuilder, count: ir.Value, state: State, body: Callable[[ir.Value, State], State]) -> State:
    """Build a loop that applies ``body(i, state)`` for each i below ``count``; return the state after it."""
    before = builder.block
    head, inside, after = (builder.append_basic_block(name) for name in ("head", "inside", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    i = builder.phi(_LONG)
    variables = [builder.phi(part.value.type) for part in state]
    i.add_incoming(number(0), before)
    for variable, part in zip(variables, state, strict=True):
        variable.add_incoming(part.value, before)
    builder.cbranch(builder.icmp_signed("<", i, count), inside, after)
    builder.position_at_end(inside)
    changed = body(i, tuple(Vector(builder, variable) for variable in variables))
    i.add_incoming(builder.add(i, number(1)), builder.block)
    for variable, part in zip(variables, changed, strict=True):
        variable.add_incoming(part.value, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return tuple(Vector(builder, variable) for variable in variables)


built: Any = intrinsic
"""The decorator of functions that return a signature and a generator of instructions."""


@built
def prefetch(_typing, array, _index):
    """Ask for the cache line of an item of a one-dimensional contiguous array, without waiting for it."""

    def generate(context, builder, _signature, arguments):
        data = context.make_array(array)(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, _SHORT, _SHORT, _SHORT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch")
        read, keep, of_data = 0, 2, 1  # keep: in the second-level cache
        builder.call(function, [place, *(ir.Constant(_SHORT, flag) for flag in (read, keep, of_data))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
