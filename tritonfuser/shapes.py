"""Shape rules and index maps of the views: which element of the operand each element reads.

Every view of the op table names one ``*_dims`` rule (result dims), one ``*_pull`` map (result
index -> operand index) and, where the result can lie in the operand's memory, one ``*_alias``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .dtypes import DataType
from .ir import Const, Dim, Extent, TensorType, Type, Value
from .symbolic.index_expr import Affine, Bounded, constant, digit
from .symbolic.loaded_index import Indexed
from .symbolic.queries import (
    assume_abs,
    assume_at_most,
    assume_empty,
    assume_equal,
    assume_less,
    assume_max,
    assume_min,
    assume_multiple,
    is_known_less,
)
from .symbolic.row_major import linear, unravel
from .symbolic.sizes import is_integer

Index = tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """The layout of a tensor in a buffer.

    Attributes
    ----------
    sizes, strides : tuple of int
        In elements.
    offset : int
        The distance of the first element from the start of the buffer, in elements.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Guard:
    """``low <= expr < high``: a condition for reading a source."""

    expr: Affine
    low: int
    high: int

    @property
    def always(self) -> bool:
        """Whether it is proved to hold at all positions."""
        bounds = self.expr.range
        if bounds is None:
            return False
        inside = is_known_less(self.low - 1, bounds[0])
        return inside and is_known_less(bounds[1], self.high)

    @property
    def never(self) -> bool:
        """Whether it is proved to hold at no position."""
        bounds = self.expr.range
        if bounds is None:
            return False
        below = is_known_less(bounds[1], self.low)
        return below or is_known_less(self.high - 1, bounds[0])


@dataclass(frozen=True, slots=True)
class Source:
    """Where an element of a view may come from. A view reads the first source whose guards hold.

    Attributes
    ----------
    operand : Value, Const or None
        None stands for zero of any dtype.
    index : tuple of Affine
        The index in the operand.
    guards : tuple of Guard
        Conditions that must all hold.
    """

    operand: Value | Const | None
    index: Index = ()
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The index in the result at which a scatter stores an element, if the guards hold."""

    index: Index
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Pull:
    """The arguments of an index map.

    Attributes
    ----------
    index : tuple of Affine
        The index of an element.
    read : callable
        ``(value, index, dim) -> Affine``: an element of an index tensor, as an index of ``dim``.
    """

    index: Index
    read: Callable[[Value, Index, Indexed], Affine]


# --- sizes ---------------------------------------------------------------------------------


def assume_extents_equal(a: Extent, b: Extent) -> bool:
    """Whether two extents are equal, with a guard for sizes; symbolic ones by their expressions."""
    if type(a) is int and type(b) is int:
        return a == b
    return assume_equal(a, b) if is_integer(a) and is_integer(b) else bool(a == b)


def assume_extents_fit(a: Extent, b: Extent) -> bool:
    """Whether two extents are equal; True where one is symbolic: a run may give equal ones."""
    return not (is_integer(a) and is_integer(b)) or assume_equal(a, b)


def assume_dims_equal(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Whether all dims are equal and expanded alike, from here on for all sizes."""
    return len(a) == len(b) and all(
        assume_extents_equal(x.size, y.size) and x.expanded is y.expanded
        for x, y in zip(a, b, strict=True)
    )


def assume_types_equal(a: Type, b: Type) -> bool:
    """Whether two types are equal, from here on for all sizes."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return a == b
    alike = replace(a, dims=()) == replace(b, dims=())
    return alike and assume_dims_equal(a.dims, b.dims)


def broadcast_dims(operands: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...] | tuple[int, int]:
    """The dims of a pointwise result, broadcast by torch's rules.

    Returns
    -------
    tuple of Dim, or the pair (dim, operand) that does not fit
        Two ints where dim ``dim`` of operand number ``operand`` does not broadcast.
    """
    rank = max(len(dims) for dims in operands)
    padded = [(Dim(1),) * (rank - len(dims)) + dims for dims in operands]
    result: list[Dim] = []
    for place in range(rank):
        joined = Dim(1)
        for number, dims in enumerate(padded):
            found = _broadcast_dim(joined, dims[place])
            if found is None:
                return place, number
            joined = found
        result.append(joined)
    return tuple(result)


def _broadcast_dim(a: Dim, b: Dim) -> Dim | None:
    """Two dims broadcast to one; None where they do not fit."""
    if assume_extents_equal(b.size, 1) and not b.expanded:
        return a
    if assume_extents_equal(a.size, 1) and not a.expanded:
        return b
    if not assume_extents_fit(a.size, b.size):
        return None
    return Dim(a.size if is_integer(a.size) else b.size, a.expanded and b.expanded)


def broadcast_index(index: Index, operand: TensorType) -> Index:
    """The operand's index for a result index of the same or a higher rank."""
    tail = index[len(index) - operand.rank :]
    pairs = zip(tail, operand.sizes, strict=True)
    return tuple([constant(0) if assume_equal(size, 1) else item for item, size in pairs])


def contiguous_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, as torch gives them: a size-0 dim counts as 1."""
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step *= assume_max(size, 1)
    return tuple(reversed(strides))


def strides_for_order(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Dense strides where dim ``i`` has the ``order[i]``-th smallest; 0 is the smallest."""
    strides = [0] * len(sizes)
    step = 1
    for dim in sorted(range(len(sizes)), key=lambda d: order[d]):
        strides[dim] = step
        step *= assume_max(sizes[dim], 1)
    return tuple(strides)


# --- permute, broadcast, expand, squeeze -----------------------------------------------------


def permute_pull(index: Index, dims: Sequence[int]) -> Index:
    source = [constant(0)] * len(dims)
    for place, dim in enumerate(dims):
        source[dim] = index[place]
    return tuple(source)


def permute_alias(memory: Memory, dims: Sequence[int]) -> Memory:
    return Memory(
        tuple(memory.sizes[d] for d in dims),
        tuple(memory.strides[d] for d in dims),
        memory.offset,
    )


def broadcast_pull(index: Index, flags: Sequence[bool]) -> Index:
    return tuple(item for item, new in zip(index, flags, strict=True) if not new)


def broadcast_alias(memory: Memory, flags: Sequence[bool]) -> Memory:
    """New size-1 dims; their stride is what torch.unsqueeze would give."""
    sizes: list[int] = []
    strides: list[int] = []
    old = len(memory.sizes)
    for new in reversed(flags):
        if new:
            step = strides[-1] * sizes[-1] if sizes else 1
            sizes.append(1)
            strides.append(step)
        else:
            old -= 1
            sizes.append(memory.sizes[old])
            strides.append(memory.strides[old])
    return Memory(tuple(reversed(sizes)), tuple(reversed(strides)), memory.offset)


def expand_pull(index: Index, operand: TensorType) -> Index:
    return broadcast_index(index, operand)


def expand_alias(memory: Memory, sizes: Sequence[int]) -> Memory:
    new = len(sizes) - len(memory.sizes)
    strides = [0] * new
    for old, stride, size in zip(memory.sizes, memory.strides, sizes[new:], strict=True):
        stretched = assume_equal(old, 1) and not assume_equal(size, 1)
        strides.append(0 if stretched else stride)
    return Memory(tuple(sizes), tuple(strides), memory.offset)


def squeeze_pull(index: Index, dims: Sequence[int], rank: int) -> Index:
    left = iter(index)
    return tuple(constant(0) if dim in dims else next(left) for dim in range(rank))


def squeeze_alias(memory: Memory, dims: Sequence[int]) -> Memory:
    kept = [d for d in range(len(memory.sizes)) if d not in dims]
    return permute_alias(memory, kept)


# --- reshape, slice --------------------------------------------------------------------------


def reshape_pull(index: Index, sizes: tuple[int, ...], operand: tuple[int, ...]) -> Index:
    return unravel(linear(index, sizes), operand)


def reshape_alias(memory: Memory, sizes: tuple[int, ...]) -> Memory | None:
    """The strides that ``torch.Tensor.view`` gives; None where it would refuse."""
    if assume_empty(memory.sizes):
        return Memory(sizes, contiguous_strides(sizes), memory.offset)
    runs: list[tuple[int, int]] = []  # (length, innermost stride), outermost first
    for size, stride in zip(memory.sizes, memory.strides, strict=True):
        if assume_equal(size, 1):
            continue
        if runs and assume_equal(runs[-1][1], size * stride):
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    strides: list[int] = []
    left, step = runs.pop() if runs else (1, 1)
    for size in reversed(sizes):
        if not assume_equal(size, 1) and assume_equal(left, 1) and runs:
            left, step = runs.pop()
        if not assume_multiple(left, size):
            return None
        strides.append(step)
        left, step = left // size, step * size
    return Memory(sizes, tuple(reversed(strides)), memory.offset)


def slice_pull(index: Index, starts: Sequence[int]) -> Index:
    return tuple(item + start for item, start in zip(index, starts, strict=True))


def slice_alias(memory: Memory, starts: Sequence[int], sizes: tuple[int, ...]) -> Memory:
    offset = memory.offset
    if not assume_empty(sizes):
        offset += sum(s * stride for s, stride in zip(starts, memory.strides, strict=True))
    return Memory(sizes, memory.strides, offset)


def slice_bounds(size: int, start: int, end: int) -> tuple[int, int]:
    """Start and end normalized as by Python's slices.

    Negative ones count from the end of the dim. Both are clamped to the dim, and the end to the
    start.
    """
    start, end = (place + size if assume_less(place, 0) else place for place in (start, end))
    start = assume_min(assume_max(start, 0), size)
    return start, assume_max(start, assume_min(assume_max(end, 0), size))


# --- pad, cat, gathers -----------------------------------------------------------------------


def pad_sources(
    index: Index, operand: Value, before: Sequence[int], fill: Value | Const | None
) -> tuple[Source, ...]:
    """The operand where the shifted index is in bounds, the fill value elsewhere."""
    shifted = tuple(item - low for item, low in zip(index, before, strict=True))
    guards = tuple(
        Guard(item, 0, size) for item, size in zip(shifted, operand.tensor.sizes, strict=True)
    )
    return Source(operand, shifted, guards), Source(fill)


def cat_sources(index: Index, operands: Sequence[Value], dim: int) -> tuple[Source, ...]:
    """Each operand, guarded by its range of positions along ``dim``."""
    sources: list[Source] = []
    start = 0
    for operand in operands:
        size = operand.tensor.sizes[dim]
        inside = index[dim] - start
        moved = (*index[:dim], inside, *index[dim + 1 :])
        if not assume_equal(size, 0):
            sources.append(Source(operand, moved, (Guard(inside, 0, size),)))
        start += size
    return tuple(sources)


def cat_slices_pull(
    place: Affine, starts: Sequence[int], lengths: Sequence[int], size: int
) -> Affine:
    """The index in a dim of ``size`` elements of a position in slices of it, one behind the other.

    One index for all slices: where a position reaches the next slice, the index jumps to its start.
    """
    total = sum(lengths)
    moved, begin = place + starts[0], lengths[0]
    for (start, length), after in zip(
        zip(starts, lengths, strict=True), zip(starts[1:], lengths[1:], strict=True), strict=False
    ):
        reached = (place + (total - begin)) // total  # 1 from ``begin`` on, else 0
        moved = moved + reached * (after[0] - start - length)
        begin = begin + after[1]
    return digit(Bounded(moved, size))


# --- the width of indices ----------------------------------------------------------------------

INT32_LIMIT = 2**31
"""The smallest number of elements that needs 64-bit indices."""


def index_dtype(memories: Sequence[Memory]) -> DataType:
    """Int where some tensor spans 2 ** 31 elements or more of its buffer, else Int32."""
    for memory in memories:
        if assume_empty(memory.sizes):
            continue
        last = sum(
            (s - 1) * assume_abs(t) for s, t in zip(memory.sizes, memory.strides, strict=True)
        )
        if assume_at_most(INT32_LIMIT, last + memory.offset + 1):
            return DataType.Int
    return DataType.Int32
