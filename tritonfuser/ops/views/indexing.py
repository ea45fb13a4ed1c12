"""Rows of the views whose index is read at run time: index_select, select, gather,

take_along_axis; and, joined in, scatter and embedding_fwd.
"""

from __future__ import annotations

from typing import Any

import torch

from ...dtypes import DataType
from ...ir import Const, Dim, TensorType, Value
from ...shapes.broadcasting import broadcast_dims, broadcast_index
from ...shapes.equal_extents import assume_extents_equal
from ...shapes.index_map import Index, Pull, Source
from ...shapes.memory import Memory
from ...symbolic.index_expr import Affine, constant
from ...symbolic.loaded_index import Indexed, Outside
from ...symbolic.queries import assume_at_most, assume_less
from ...symbolic.sizes import integer, is_integer
from ..parameters import Kind, Param
from ..shape_rules import (
    ARG,
    check_index,
    check_indexed,
    fail,
    int_attr,
    record_along_dim,
    source,
    view_of,
    with_integer_index,
    without,
)
from ..table import Call, Op, View
from . import embedding, scatters
from .index_range import in_range

_INDEX = Param("index", Kind.TENSOR)
_DIM = Param("dim", Kind.INT)


def _record_indexed(builder: Any, call: Call) -> Any:
    """``record_along_dim`` of an op with an index tensor; one of a floating dtype is cast."""
    return record_along_dim(builder, with_integer_index(builder, call))


def _indexed(call: Call, outside: Outside = Outside.CLAMPED) -> Indexed:
    """The dim that the indices of an op are for; as torch has it, few ops take negative ones."""
    extent = call.value("arg").tensor.sizes[int_attr(call, "dim")]
    return Indexed(extent, outside, call.op.name)


def _put(index: Index, place: int, item: Affine) -> Index:
    return (*index[:place], item, *index[place + 1 :])


# --- index_select, select --------------------------------------------------------------------


def _infer_index_select(call: Call) -> tuple[TensorType, ...]:
    arg, index, place = call.value("arg").tensor, check_index(call, "index"), int_attr(call, "dim")
    if index.rank > 1 or not arg.rank:
        raise fail(
            "index_select",
            "a tensor with dims and an index of rank 0 or 1",
            f"ranks {arg.rank} and {index.rank}",
        )
    check_indexed(call, arg, place, index.dims)
    picked = Dim(index.dims[0].size if index.rank else 1)
    return view_of(arg, [picked if d == place else dim for d, dim in enumerate(arg.dims)])


def _pull_index_select(call: Call, pull: Pull) -> tuple[Source, ...]:
    place, index = int_attr(call, "dim"), call.value("index")
    where = pull.index[place : place + 1] if index.tensor.rank else ()
    return source(call, _put(pull.index, place, pull.read(index, where, _indexed(call))))


def _index_select(arg: torch.Tensor, index: torch.Tensor, dim: int) -> torch.Tensor:
    index = in_range("index_select", index, arg, dim)
    return torch.index_select(arg, dim, index)


def _record_select(builder: Any, call: Call) -> Any:
    index = call.operand("index")
    if index.dtype.info.category.value > DataType.Int.info.category.value:
        raise fail("select", "an integer index", index.dtype)
    if not call.value("arg").tensor.rank:
        raise fail("select", "a tensor with dims", "a 0-dim tensor")
    return record_along_dim(builder, call)


def _infer_select(call: Call) -> tuple[TensorType, ...]:
    arg, place = call.value("arg").tensor, int_attr(call, "dim")
    check_indexed(call, arg, place, ())
    size, index = arg.dims[place].size, call.operand("index")
    if is_integer(size) and isinstance(index, Const):
        position = _constant_index(index)
        if not (assume_at_most(-size, position) and assume_less(position, size)):
            raise fail("select", f"an index from {-size} to {size - 1} in dim {place}", position)
    return view_of(arg, without(arg.dims, [place]))


def _constant_index(index: Const) -> int:
    assert not isinstance(index.value, complex)
    return integer(index.value)


def _selected(call: Call) -> int | None:
    """The constant index, counted from the front; None for one read at run time."""
    index, place = call.operand("index"), int_attr(call, "dim")
    if isinstance(index, Value):
        return None
    position = _constant_index(index)
    if assume_less(position, 0):
        position += call.value("arg").tensor.sizes[place]
    return position


def _pull_select(call: Call, pull: Pull) -> tuple[Source, ...]:
    place, position, index = int_attr(call, "dim"), _selected(call), call.operand("index")
    if position is not None:
        item = constant(position)
    else:
        assert isinstance(index, Value)
        item = pull.read(index, (), _indexed(call, Outside.WRAPPED))
    return source(call, (*pull.index[:place], item, *pull.index[place:]))


def _alias_select(call: Call, memory: Memory) -> Memory | None:
    place, position = int_attr(call, "dim"), _selected(call)
    if position is None:
        return None
    sizes, strides = list(memory.sizes), list(memory.strides)
    del sizes[place]
    step = strides.pop(place)
    return Memory(tuple(sizes), tuple(strides), memory.offset + position * step)


def _select(arg: torch.Tensor, index: int | torch.Tensor, dim: int) -> torch.Tensor:
    found = in_range("select", torch.as_tensor(index), arg, dim, -1)
    return torch.select(arg, dim, int(found))


# --- gather, take_along_axis -----------------------------------------------------------------


def _same_rank(call: Call) -> tuple[TensorType, TensorType, int]:
    arg, index = call.value("arg").tensor, check_index(call, "index")
    if arg.rank != index.rank:
        raise fail(call.op.name, f"an index of rank {arg.rank} as the tensor's", index.rank)
    return arg, index, int_attr(call, "dim")


def _infer_gather(call: Call) -> tuple[TensorType, ...]:
    arg, index, place = _same_rank(call)
    check_indexed(call, arg, place, index.dims)
    nothing = any(assume_extents_equal(dim.size, 0) for dim in index.dims)
    for d, (mine, other) in enumerate(zip(arg.dims, index.dims, strict=True)):
        if d == place or nothing:
            continue
        known = is_integer(mine.size) and is_integer(other.size)
        if known and assume_less(integer(mine.size), integer(other.size)):
            raise fail("gather", f"an index of at most {mine.size} in dim {d}", other.size)
    return view_of(arg, [Dim(dim.size) for dim in index.dims])


def _pull_gather(call: Call, pull: Pull) -> tuple[Source, ...]:
    if not pull.index:
        return source(call, ())
    found = pull.read(call.value("index"), pull.index, _indexed(call))
    return source(call, _put(pull.index, int_attr(call, "dim"), found))


def _gather(arg: torch.Tensor, index: torch.Tensor, dim: int) -> torch.Tensor:
    index = in_range("gather", index, arg, dim)
    return torch.gather(arg, dim, index.long())


def _infer_take_along_axis(call: Call) -> tuple[TensorType, ...]:
    arg, index, place = _same_rank(call)
    if not arg.rank:
        return view_of(arg, [])
    others = broadcast_dims([without(arg.dims, [place]), without(index.dims, [place])])
    dims: list[Dim] = []
    for dim in others:
        if not isinstance(dim, Dim):
            raise fail(
                "take_along_axis",
                f"sizes that broadcast outside of dim {place}",
                f"{list(arg.shape)} and {list(index.shape)}",
            )
        dims.append(dim)
    dims.insert(place, Dim(index.dims[place].size))
    check_indexed(call, arg, place, dims)
    return view_of(arg, dims)


def _pull_take_along_axis(call: Call, pull: Pull) -> tuple[Source, ...]:
    if not pull.index:
        return source(call, ())
    arg, index = call.value("arg"), call.value("index")
    dim = _indexed(call, Outside.WRAPPED)
    found = pull.read(index, broadcast_index(pull.index, index.tensor), dim)
    own = broadcast_index(pull.index, arg.tensor)
    return source(call, _put(own, int_attr(call, "dim"), found))


def _take_along_axis(arg: torch.Tensor, index: torch.Tensor, dim: int) -> torch.Tensor:
    # torch takes any index modulo the size, as far as it goes.
    index = in_range("take_along_axis", index, arg, dim, -1)
    return torch.take_along_dim(arg, index.long(), dim)


ROWS: tuple[Op, ...] = (
    Op(
        "index_select",
        (ARG, _INDEX, _DIM),
        "The slices of a dim at the positions in an index tensor; a 0-dim index keeps the dim.",
        "indexing",
        View(_pull_index_select, indices=("index",)),
        _infer_index_select,
        _index_select,
        _record_indexed,
    ),
    Op(
        "select",
        (
            ARG,
            Param("index", Kind.SCALAR, doc="The index to keep, negative ones from the end."),
            _DIM,
        ),
        "The slice of a dim at one position; removes the dim.",
        "indexing",
        View(_pull_select, _alias_select, indices=("index",)),
        _infer_select,
        _select,
        _record_select,
    ),
    Op(
        "gather",
        (ARG, _INDEX, _DIM),
        "For each element of index, the element of arg at that position along a dim.",
        "indexing",
        View(_pull_gather, indices=("index",)),
        _infer_gather,
        _gather,
        _record_indexed,
    ),
    Op(
        "take_along_axis",
        (ARG, _INDEX, _DIM),
        "Like gather; tensor and index are broadcast in the other dims.",
        "indexing",
        View(_pull_take_along_axis, indices=("index",)),
        _infer_take_along_axis,
        _take_along_axis,
        _record_indexed,
    ),
    *scatters.ROWS,
    *embedding.ROWS,
)
