"""Shape rules shared by rows: dims and extents from arguments, types of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..dtypes import Category, DataType
from ..errors import DefinitionError
from ..ir import DYNAMIC, Arg, Attr, Const, Dim, Extent, TensorType, Value
from ..shapes.equal_extents import assume_extents_equal, assume_extents_fit
from ..shapes.index_map import Index, Source
from ..symbolic.extents import symbol
from ..symbolic.queries import assume_less
from ..symbolic.sizes import integer, is_integer
from .parameters import REQUIRED, Kind, Param
from .table import Call

ARG = Param("arg", Kind.TENSOR)
"""The first parameter of most rows."""

INDEX_DTYPES = frozenset({DataType.Int, DataType.Int32, DataType.Index})
"""What a tensor of indices may hold."""


def fail(op: str, expected: str, got: object, hint: str = "") -> DefinitionError:
    """The error that shape rules raise: the op, what was expected, what was given."""
    return DefinitionError(f"{op}: expected {expected}, got {got}", hint=hint)


# --- dims ----------------------------------------------------------------------------------


def wrap_dim(op: str, dim: int, rank: int, phrase: str = "") -> int:
    """``dim`` counted from the front; a 0-dim tensor counts as one of rank 1, as in torch.

    ``phrase`` is what nvFuser says of a wrong one.
    """
    count = max(rank, 1)
    if not -count <= dim < count:
        raise fail(
            f"{op}: {phrase}" if phrase else op,
            f"a dim from {-count} to {count - 1} for a tensor of rank {rank}",
            dim,
            "Dims are counted from 0; negative ones from the end.",
        )
    return dim % count


def wrap_dims(op: str, dims: Iterable[int], rank: int, phrase: str = "") -> tuple[int, ...]:
    """The dims as non-negative ints, in the order given; an error where one is repeated."""
    given = tuple(dims)
    wrapped = tuple(wrap_dim(op, dim, rank, phrase) for dim in given)
    if len(set(wrapped)) != len(wrapped):
        raise fail(op, "each dim once", list(given))
    return wrapped


def permutation(op: str, dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """``dims`` as a permutation of ``0 .. rank - 1``."""
    if len(dims) != rank:
        raise fail(op, f"{rank} dims for a tensor of rank {rank}", list(dims))
    return wrap_dims(op, dims, rank)


def reduced_dims(call: Call, rank: int) -> tuple[int, ...]:
    """The dims that a reduction reduces, sorted; all where ``dims`` is None."""
    if call.attrs["dims"] is None:
        return tuple(range(rank))
    if not call.dims():
        required = any(p.name == "dims" and p.default is REQUIRED for p in call.op.params)
        how = "Name all dims" if required else "Leave dims out, or name all dims,"
        raise DefinitionError(
            f"{call.op.name}: No reduction axis specified",
            hint=f"{how} to reduce over all of them.",
        )
    return tuple(sorted(wrap_dims(call.op.name, call.dims(), rank)))


def without(dims: Sequence[Dim], gone: Iterable[int]) -> tuple[Dim, ...]:
    """The dims whose places are not in ``gone``."""
    dropped = set(gone)
    return tuple(dim for place, dim in enumerate(dims) if place not in dropped)


def flags(places: Iterable[int], rank: int) -> tuple[bool, ...]:
    """``rank`` bools, true at ``places``."""
    wanted = set(places)
    return tuple(place in wanted for place in range(rank))


# --- extents -------------------------------------------------------------------------------


def extent(op: str, size: Arg) -> Extent:
    """The extent for an entry of a shape: a number, or the symbol of a run-time scalar."""
    if isinstance(size, Const) and not isinstance(size.value, complex):
        return integer(size.value)
    if isinstance(size, Value):
        return symbol(size.name)
    raise fail(op, "an integer size", size)


def extents(call: Call, name: str) -> tuple[Extent, ...]:
    """The extents of a shape operand."""
    given = call.arg(name)
    assert isinstance(given, tuple), f"{call.op.name}: {name} is missing"
    return tuple(extent(call.op.name, size) for size in given)


def sizes_of(call: Call, name: str) -> tuple[Extent, ...]:
    """The extents of a shape operand; none may be negative."""
    found = extents(call, name)
    if any(is_integer(size) and assume_less(size, 0) for size in found):
        raise fail(call.op.name, f"sizes of 0 and more in {name}", list(found))
    return found


def resized(dim: Dim, size: Extent) -> Dim:
    """The dim with another size; a part of an expanded dim is expanded unless its size is 1."""
    return Dim(size, dim.expanded and not assume_extents_equal(size, 1))


def expanded(op: str, dims: Sequence[Dim], sizes: Sequence[Extent]) -> tuple[Dim, ...]:
    """The dims after expand to ``sizes``; -1 keeps, leading dims may be new."""
    if len(sizes) < len(dims):
        raise fail(op, f"at least {len(dims)} sizes", list(sizes))
    new = len(sizes) - len(dims)
    result: list[Dim] = []
    for place, size in enumerate(sizes):
        if place < new and assume_extents_equal(size, DYNAMIC):
            raise fail(op, f"a size for the new leading dim {place}", DYNAMIC)
        old = Dim(1) if place < new else dims[place - new]
        result.append(_expanded_dim(op, place, old, size))
    return tuple(result)


def _expanded_dim(op: str, place: int, old: Dim, size: Extent) -> Dim:
    if assume_extents_equal(size, DYNAMIC) or assume_extents_equal(size, old.size):
        return old
    if is_integer(size) and assume_less(size, 0):
        raise fail(op, f"a size of 0 and more, or -1, in dim {place}", size)
    if assume_extents_equal(old.size, 1):
        return Dim(size, expanded=True)
    if not is_integer(old.size):
        # Both are the same, or the old one turns out to be 1: the new one holds.
        return Dim(size, old.expanded)
    if not is_integer(size):
        return old
    raise fail(op, f"size {old.size}, 1 or -1 in dim {place}", size)


# --- types and calls -----------------------------------------------------------------------


def tensor(dims: Sequence[Dim], dtype: DataType) -> TensorType:
    """The type of a new tensor; a 0-dim one is weak."""
    return TensorType(tuple(dims), dtype, weak=not dims)


def view_of(arg: TensorType, dims: Sequence[Dim]) -> tuple[TensorType, ...]:
    """The result types of a view: the operand's dtype with other dims.

    A 0-dim result is weak, unless it is a view of a full reduction's 0-dim result.
    """
    weak = not dims and (arg.weak or arg.rank > 0)
    return (TensorType(tuple(dims), arg.dtype, weak=weak),)


def source(call: Call, index: Index) -> tuple[Source, ...]:
    """The sources of a view each of whose elements is one of ``arg``."""
    return (Source(call.value("arg"), index),)


def result_sizes(call: Call) -> tuple[int, ...]:
    """The sizes of a concretized call's result."""
    out = call.op.infer(call)[0]
    assert isinstance(out, TensorType)
    return out.sizes


def int_attr(call: Call, name: str) -> int:
    """A static argument that is one int."""
    found = call.attrs[name]
    assert isinstance(found, int), f"{call.op.name}: {name} is no int"
    return found


def with_integer_index(builder: Any, call: Call, name: str = "index") -> Call:
    """The call with indices of a floating dtype cast to Int, as C++ converts: towards zero."""
    index = call.value(name)
    if index.dtype.info.category is not Category.FLOAT:
        return call
    return with_operands(call, **{name: builder.call("cast", index, DataType.Int)})


def check_index(call: Call, name: str) -> TensorType:
    """The type of an operand that holds indices."""
    found = call.value(name).tensor
    if found.dtype not in INDEX_DTYPES:
        raise fail(call.op.name, f"an Int or Int32 tensor for {name!r}", found.dtype)
    return found


def check_indexed(call: Call, arg: TensorType, place: int, picked: Sequence[Dim]) -> None:
    """Refuse indices of a dim without elements: whatever they are, it has no such element.

    ``picked`` are the dims of the index tensor; none for a scalar.
    """
    if not arg.rank or not assume_extents_equal(arg.dims[place].size, 0):
        return
    if all(is_integer(d.size) and not assume_extents_equal(d.size, 0) for d in picked):
        raise fail(
            call.op.name,
            f"a tensor with elements in dim {place}, which is indexed",
            f"one of shape {list(arg.shape)}",
            "Give an index without elements, or a tensor with some.",
        )


def with_attrs(call: Call, **attrs: Attr) -> Call:
    """The call with some static arguments replaced."""
    return replace(call, attrs={**call.attrs, **attrs})


def with_operands(call: Call, **operands: Any) -> Call:
    """The call with some run-time operands replaced."""
    names = [p.name for p in call.op.params if p.kind.is_operand]
    args = (operands.get(name, arg) for name, arg in zip(names, call.args, strict=True))
    return replace(call, args=tuple(args))


def record_along_dim(builder: Any, call: Call) -> Any:
    """Append the node of an op along one dim, with that counted from the front."""
    rank = call.value("arg").tensor.rank
    return builder.append(with_attrs(call, dim=wrap_dim(call.op.name, int_attr(call, "dim"), rank)))


def check_inner(call: Call, left: Dim, right: Dim) -> None:
    """The dims of both operands that a product sums over are as long as each other.

    Raises
    ------
    DefinitionError
        They are not.
    """
    if not assume_extents_fit(left.size, right.size):
        raise DefinitionError(
            f"{call.op.name}: the operands' inner extents differ: {left.size} and {right.size}"
        )
