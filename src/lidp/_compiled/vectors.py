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
_BYTES = ir.VectorType(ir.IntType(8), LANES)
_VECTOR_TYPES: dict[Any, ir.VectorType] = {
    types.float32: SINGLES,
    types.int32: WORDS,
    types.uint32: WORDS,
    types.uint8: _BYTES,
}
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

    def where_equal(self, number: ir.Value, chosen: Vector, other: Vector) -> Vector:
        """Return ``chosen`` in the lanes of words that equal a whole number of 64 bits, ``other`` elsewhere."""
        words = words_in_all_lanes(self.builder, self.builder.trunc(number, _SHORT))
        equal = self.builder.icmp_signed("==", self.value, words)
        return self._new(self.builder.select(equal, chosen.value, other.value))

    def where_above(self, limit: Vector, chosen: Vector, other: Vector) -> Vector:
        """Return ``chosen`` in the lanes of numbers above ``limit``, ``other`` elsewhere and where either is NaN."""
        above = self.builder.fcmp_ordered(">", self.value, limit.value)
        return self._new(self.builder.select(above, chosen.value, other.value))

    def reciprocal(self) -> Vector:
        return self._new(self.builder.fdiv(self._operand(1.0), self.value))

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
        """Return whole numbers of single precision below 2^22 in size as numbers with sign; any word for NaN."""
        shift = 1.5 * 2**23  # sums with it have no fraction, so that their last bits are the number
        return (self + shift).as_words() - int(np.float32(shift).view(np.int32))

    def _call(self, name: str, *others: ir.Value) -> Vector:
        kind = ir.FunctionType(SINGLES, [SINGLES] * (1 + len(others)))
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{LANES}f32")
        return self._new(self.builder.call(function, [self.value, *others]))


State = tuple[Vector, ...]


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


def transpose(lines: Sequence[Vector]) -> list[Vector]:
    """Return the columns of the matrix whose rows are these LANES vectors."""
    builder, half = lines[0].builder, LANES // 2
    merged = [[lane for k in part for lane in (k, LANES + k)] for part in (range(half), range(half, LANES))]
    columns = list(lines)
    for _ in range(LANES.bit_length() - 1):
        columns = [
            Vector(builder, builder.shuffle_vector(one.value, other.value, ir.Constant(WORDS, lanes)))
            for one, other in zip(columns[:half], columns[half:], strict=True)
            for lanes in merged
        ]
    return columns


def nonzero_bits(numbers: Vector) -> ir.Value:
    """Return a word of 64 bits whose lowest LANES say which numbers are not 0; the bit of NaN is set."""
    builder = numbers.builder
    compared = builder.fcmp_unordered("!=", numbers.value, ir.Constant(SINGLES, [0.0] * LANES))
    return builder.zext(builder.bitcast(compared, ir.IntType(LANES)), _LONG)


def zeros(builder: ir.IRBuilder, count: int) -> State:
    """Return so many vectors of zeros."""
    return (Vector(builder, ir.Constant(SINGLES, [0.0] * LANES)),) * count


def shape_of(context: Any, builder: ir.IRBuilder, kind: types.Array, array: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the numbers of rows and columns of a matrix."""
    shape = context.make_array(kind)(context, builder, array).shape
    return builder.extract_value(shape, 0), builder.extract_value(shape, 1)


def from_lanes(builder: ir.IRBuilder, numbers: Sequence[ir.Value]) -> Vector:
    """Return the lower words of LANES whole numbers of 64 bits as a vector."""
    value = ir.Constant(WORDS, ir.Undefined)
    for k, whole in enumerate(numbers):
        value = builder.insert_element(value, builder.trunc(whole, _SHORT), ir.Constant(_SHORT, k))
    return Vector(builder, value)


def words_in_all_lanes(builder: ir.IRBuilder, word: ir.Value) -> ir.Value:
    """Return a whole number of 32 bits in all lanes."""
    start = builder.insert_element(ir.Constant(WORDS, ir.Undefined), word, ir.Constant(_SHORT, 0))
    return builder.shuffle_vector(start, start, ir.Constant(WORDS, [0] * LANES))


def in_all_lanes(builder: ir.IRBuilder, number: ir.Value) -> Vector:
    """Return a number of single precision in all lanes."""
    start = builder.insert_element(ir.Constant(SINGLES, ir.Undefined), number, ir.Constant(_SHORT, 0))
    return Vector(builder, builder.shuffle_vector(start, start, ir.Constant(WORDS, [0] * LANES)))


class Memory:
    """A contiguous array in a function that is being built.

    Numbers of 32 bits are read and written as vectors; bytes are read as vectors of single precision; whole numbers of 64 bits are
    read one by one.
    """

    def __init__(self, context: Any, builder: ir.IRBuilder, array_type: types.Array, array: ir.Value) -> None:
        if array_type.layout != "C":
            raise TypingError("vector instructions need contiguous arrays")
        self._builder = builder
        self._data = context.make_array(array_type)(context, builder, array).data
        self._number_type = array_type.dtype
        self._type = _VECTOR_TYPES.get(array_type.dtype)

    def _pointer(self, start: ir.Value) -> ir.Value:
        if self._type is None:
            raise TypingError(f"there are no vectors of {self._number_type}")
        return self._builder.bitcast(self._builder.gep(self._data, [start]), self._type.as_pointer())

    def load(self, start: ir.Value) -> Vector:
        """Return the LANES numbers from this index on."""
        if self._type == _BYTES:
            numbers = self._builder.load(self._pointer(start), align=1)
            return Vector(self._builder, self._builder.zext(numbers, WORDS)).to_singles()
        return Vector(self._builder, self._builder.load(self._pointer(start), align=4))

    def whole_number(self, index: ir.Value) -> ir.Value:
        """Return one whole number of 64 bits, of an array of such numbers."""
        return self._builder.load(self._builder.gep(self._data, [index]))

    def store(self, start: ir.Value, value: Vector) -> None:
        """Write LANES numbers from this index on."""
        self._builder.store(value.value, self._pointer(start), align=4)

    def load_first(self, start: ir.Value, count: ir.Value) -> Vector:
        """Return the first ``count`` numbers of single precision from this index on, and 0 in the other lanes."""
        kind = ir.FunctionType(SINGLES, [SINGLES.as_pointer(), _SHORT, ir.VectorType(ir.IntType(1), LANES), SINGLES])
        function = cgutils.get_or_insert_function(self._builder.module, kind, f"llvm.masked.load.v{LANES}f32.p0")
        arguments = [
            self._pointer(start),
            ir.Constant(_SHORT, 4),
            self._first_lanes(count),
            ir.Constant(SINGLES, [0.0] * LANES),
        ]
        return Vector(self._builder, self._builder.call(function, arguments))

    def store_first(self, start: ir.Value, count: ir.Value, value: Vector) -> None:
        """Write the first ``count`` numbers of single precision from this index on."""
        kind = ir.FunctionType(ir.VoidType(), [SINGLES, SINGLES.as_pointer(), _SHORT, ir.VectorType(ir.IntType(1), LANES)])
        function = cgutils.get_or_insert_function(self._builder.module, kind, f"llvm.masked.store.v{LANES}f32.p0")
        arguments = [value.value, self._pointer(start), ir.Constant(_SHORT, 4), self._first_lanes(count)]
        self._builder.call(function, arguments)

    def _first_lanes(self, count: ir.Value) -> ir.Value:
        """Return a mask of the first ``count`` lanes."""
        counts = words_in_all_lanes(self._builder, self._builder.trunc(count, _SHORT))
        return self._builder.icmp_signed(">", counts, ir.Constant(WORDS, list(range(LANES))))

    def item(self, index: ir.Value) -> Vector:
        """Return one number in all lanes."""
        return in_all_lanes(self._builder, self._builder.load(self._builder.gep(self._data, [index])))

    def store_item(self, index: ir.Value, value: ir.Value) -> None:
        """Write one number."""
        self._builder.store(value, self._builder.gep(self._data, [index]))


def number(value: int) -> ir.Value:
    """Return a whole number of 64 bits."""
    return ir.Constant(_LONG, value)


def loop(builder: ir.IRBuilder, count: ir.Value, state: State, body: Callable[[ir.Value, State], State]) -> State:
    """Build a loop that applies ``body(i, state)`` for each i below ``count``; return the state after it."""
    return _loop(
        builder,
        number(0),
        lambda i: builder.icmp_signed("<", i, count),
        lambda i: builder.add(i, number(1)),
        state,
        body,
    )


def loop_over_bits(
    builder: ir.IRBuilder, words: ir.Value, count: ir.Value, state: State, body: Callable[[ir.Value, State], State]
) -> State:
    """Build a loop that applies ``body(i, state)`` for each bit i that is set in ``count`` words; return the state after it."""
    kind = ir.FunctionType(_LONG, [_LONG, ir.IntType(1)])
    trailing_zeros = cgutils.get_or_insert_function(builder.module, kind, "llvm.cttz.i64")

    def of_word(k: ir.Value, state: State) -> State:
        first = builder.mul(k, number(64))
        return _loop(
            builder,
            builder.load(builder.gep(words, [k])),
            lambda left: builder.icmp_unsigned("!=", left, number(0)),
            lambda left: builder.and_(left, builder.sub(left, number(1))),
            state,
            lambda left, state: body(
                builder.add(first, builder.call(trailing_zeros, [left, ir.Constant(ir.IntType(1), 1)])), state
            ),
        )

    return loop(builder, count, state, of_word)


def _loop(
    builder: ir.IRBuilder,
    start: ir.Value,
    goes_on: Callable[[ir.Value], ir.Value],
    following: Callable[[ir.Value], ir.Value],
    state: State,
    body: Callable[[ir.Value, State], State],
) -> State:
    """Build a loop over the values of a whole number of 64 bits."""
    before = builder.block
    head, inside, after = (builder.append_basic_block(name) for name in ("head", "inside", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    value = builder.phi(_LONG)
    variables = [builder.phi(part.value.type) for part in state]
    value.add_incoming(start, before)
    for variable, part in zip(variables, state, strict=True):
        variable.add_incoming(part.value, before)
    builder.cbranch(goes_on(value), inside, after)
    builder.position_at_end(inside)
    changed = body(value, tuple(Vector(builder, variable) for variable in variables))
    value.add_incoming(following(value), builder.block)
    for variable, part in zip(variables, changed, strict=True):
        variable.add_incoming(part.value, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return tuple(Vector(builder, variable) for variable in variables)


built: Any = intrinsic
"""The decorator of functions that return a signature and a generator of instructions."""
