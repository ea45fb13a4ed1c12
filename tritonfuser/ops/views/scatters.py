"""The row of scatter: a copy of a tensor, some elements replaced at indices read at run time."""

from __future__ import annotations

from typing import Any

import torch

from ...dtypes import Category, DataType, int_range, real_dtype
from ...ir import Const, Dim, TensorType, Value
from ...shapes.equal_extents import assume_extents_equal
from ...shapes.index_map import Guard, Pull, Target
from ...symbolic.loaded_index import Indexed, Outside
from ...symbolic.queries import assume_equal, assume_less
from ...symbolic.sizes import is_integer
from ..complex.pairs import each
from ..complex.terms import Pair
from ..parameters import Kind, Param
from ..shape_rules import (
    ARG,
    check_index,
    check_indexed,
    fail,
    int_attr,
    view_of,
    with_attrs,
    with_integer_index,
    wrap_dim,
)
from ..table import Call, Op, Scatter
from .index_range import in_range


def _infer(call: Call) -> tuple[TensorType, ...]:
    arg, index = call.value("arg").tensor, check_index(call, "index")
    if arg.rank != index.rank:
        raise fail("scatter", f"an index of rank {arg.rank} as the tensor's", index.rank)
    check_indexed(call, arg, int_attr(call, "dim"), index.dims)
    kept = [d for d in range(arg.rank) if d != int_attr(call, "dim")]
    _check_room(index, arg, "the tensor's", kept)
    src = call.operand("src")
    if isinstance(src, Value) and src.is_tensor:
        _check_source(src.tensor, arg)
        _check_room(index, src.tensor, "src's", range(arg.rank))
    elif arg.dtype.info.category is not Category.COMPLEX and _is_complex(src.dtype):
        raise fail("scatter", f"a src that {arg.dtype} holds", src.dtype)
    elif isinstance(src, Const) and not _holds(arg.dtype, src):
        raise fail("scatter", f"a src that {arg.dtype} holds", src.value)
    return view_of(arg, [Dim(dim.size) for dim in arg.dims])


def _holds(dtype: DataType, number: Const) -> bool:
    """Whether a constant is within the range of a dtype; floats are of any range, rounded."""
    if dtype.info.category is not Category.INT or isinstance(number.value, complex):
        return True
    numbers = int_range(dtype)
    return numbers[0] <= number.value <= numbers[-1]


def _is_complex(dtype: DataType) -> bool:
    return dtype.info.category is Category.COMPLEX


def _check_source(src: TensorType, arg: TensorType) -> None:
    if src.rank != arg.rank:
        raise fail("scatter", f"a src of rank {arg.rank} as the tensor's", src.rank)
    if src.dtype is not arg.dtype:
        raise fail("scatter", f"a src of {arg.dtype}, as the tensor", src.dtype, "Cast one first.")


def _check_room(index: TensorType, large: TensorType, whose: str, dims: Any) -> None:
    """That an index which has elements is nowhere larger, as far as the sizes are known."""
    if any(assume_extents_equal(dim.size, 0) for dim in index.dims):
        return
    for d in dims:
        size, room = index.dims[d].size, large.dims[d].size
        if is_integer(size) and is_integer(room) and assume_less(room, size):
            raise fail("scatter", f"an index of at most {whose} {room} in dim {d}", size)


def _record(builder: Any, call: Call) -> Any:
    """Append the node with its dim counted from the front."""
    call = with_integer_index(builder, call)
    rank = call.value("arg").tensor.rank
    return builder.append(with_attrs(call, dim=wrap_dim("scatter", int_attr(call, "dim"), rank)))


def _push(call: Call, pull: Pull) -> Target:
    """The element's own index, but in one dim; nowhere where that points outside."""
    sizes, place = call.value("arg").tensor.sizes, int_attr(call, "dim")
    found = pull.read(
        call.value("index"),
        pull.index,
        Indexed(sizes[place] if sizes else 1, Outside.GUARDED, "scatter"),
    )
    inside = Guard(found, 0, sizes[place] if sizes else 1)
    if not sizes:
        return Target((), (inside,))
    return Target((*pull.index[:place], found, *pull.index[place + 1 :]), (inside,))


def _scatter(arg: torch.Tensor, index: torch.Tensor, src: Any, dim: int) -> torch.Tensor:
    index = in_range("scatter", index, arg, dim)
    if arg.dtype.itemsize > 1 or not arg.is_floating_point():
        return torch.scatter(arg, dim, index.long(), src)
    # Floats of eight bits are bytes to torch.
    if not isinstance(src, torch.Tensor):
        src = torch.full_like(arg, src)
    moved = arg.view(torch.uint8).scatter(dim, index.long(), src.view(torch.uint8))
    return moved.view(arg.dtype)


# --- complex numbers -------------------------------------------------------------------------

_NOBODY = -1


def _by_winner(ops: Any, arg: Pair, index: Value, src: Any, dim: int) -> Pair:
    """Both parts of one element: where an index comes twice, no part may be another's.

    So the elements' numbers are put in place, and both parts are looked up by them.
    """
    if not isinstance(src, Pair):
        src = Pair(src, Const(0.0, real_dtype(arg.im.dtype)))
    if not (isinstance(src.re, Value) and src.re.is_tensor):
        parts: Pair = each("scatter")(ops, arg, index, src, dim=dim)
        return parts
    sizes, whole = list(index.tensor.sizes), list(arg.re.tensor.sizes)
    if assume_equal(index.tensor.numel, 0):
        return arg
    numbers = ops.reshape(ops.iota(index.tensor.numel, dtype=DataType.Int), sizes)
    winner = ops.scatter(ops.full(whole, _NOBODY, DataType.Int), index, numbers, dim)
    taken = ops.ge(winner, 0)
    flat = ops.reshape(ops.where(taken, winner, 0), [-1])

    def part(old: Value, new: Value) -> Any:
        used = ops.slice(new, [0] * len(sizes), sizes) if sizes else new
        picked = ops.index_select(ops.reshape(used, [-1]), flat, 0)
        return ops.where(taken, ops.reshape(picked, whole), old)

    return Pair(part(arg.re, src.re), part(arg.im, src.im))


ROWS: tuple[Op, ...] = (
    Op(
        "scatter",
        (
            ARG,
            Param("index", Kind.TENSOR),
            Param("src", Kind.VALUE),
            Param("dim", Kind.INT),
        ),
        "A copy of arg with src, a tensor or a number, at the positions in index along a dim.",
        "indexing",
        Scatter(_push),
        _infer,
        _scatter,
        _record,
        complex=_by_winner,
    ),
)
