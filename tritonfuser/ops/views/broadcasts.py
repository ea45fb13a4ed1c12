"""Rows of the views that add or stretch dims: broadcast, expand, broadcast_in_dim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...ir import DYNAMIC, Dim, TensorType, Value
from ...shapes.equal_extents import assume_dims_equal, assume_extents_equal
from ...shapes.view_maps import broadcast_alias, broadcast_pull, expand_alias, expand_pull
from ..forms import Composite
from ..parameters import Kind, Param
from ..shape_rules import (
    ARG,
    expanded,
    extents,
    fail,
    flags,
    result_sizes,
    source,
    view_of,
    wrap_dims,
)
from ..table import Call, Op, View

# --- broadcast ---------------------------------------------------------------------------------


def _new_dims(call: Call) -> tuple[bool, ...]:
    found = call.attrs["is_broadcast_dim"]
    assert isinstance(found, tuple)
    return tuple(bool(flag) for flag in found)


def _infer_broadcast(call: Call) -> tuple[TensorType, ...]:
    arg, new = call.value("arg").tensor, _new_dims(call)
    if new.count(False) != arg.rank:
        raise fail(
            "broadcast",
            f"{arg.rank} times False in is_broadcast_dim for a tensor of rank {arg.rank}",
            list(new),
            "True stands for a new dim of size 1, False for the tensor's next dim.",
        )
    old = iter(arg.dims)
    return view_of(arg, [Dim(1) if flag else next(old) for flag in new])


def _record_broadcast(builder: Any, call: Call) -> Any:
    call.op.infer(call)
    return builder.append(call) if any(_new_dims(call)) else call.value("arg")


def _unsqueezed(arg: torch.Tensor, is_broadcast_dim: Sequence[bool]) -> torch.Tensor:
    for place, new in enumerate(is_broadcast_dim):
        arg = arg.unsqueeze(place) if new else arg
    return arg


# --- expand, broadcast_in_dim --------------------------------------------------------------------


def _infer_expand(call: Call) -> tuple[TensorType, ...]:
    arg = call.value("arg").tensor
    return view_of(arg, expanded("expand", arg.dims, extents(call, "shape")))


def _record_expand(builder: Any, call: Call) -> Any:
    arg = call.value("arg")
    (out,) = _infer_expand(call)
    unchanged = all(
        any(assume_extents_equal(size, kept) for kept in (DYNAMIC, dim.size))
        for size, dim in zip(extents(call, "shape"), arg.tensor.dims, strict=False)
    )
    if out.rank == arg.tensor.rank and unchanged:
        return builder.call("set", arg)
    return builder.append(call)


def _places(call: Call, rank: int) -> tuple[int, ...]:
    arg = call.value("arg").tensor
    places = wrap_dims("broadcast_in_dim", call.dims("broadcast_dims"), rank)
    if len(places) != arg.rank or list(places) != sorted(places):
        raise fail(
            "broadcast_in_dim",
            f"{arg.rank} ascending broadcast_dims, one for each dim of the tensor",
            list(places),
        )
    return places


def _infer_broadcast_in_dim(call: Call) -> tuple[TensorType, ...]:
    arg, sizes = call.value("arg").tensor, extents(call, "shape")
    places = _places(call, len(sizes))
    old = iter(arg.dims)
    dims = [next(old) if place in places else Dim(1) for place in range(len(sizes))]
    return view_of(arg, expanded("broadcast_in_dim", dims, sizes))


def _record_broadcast_in_dim(builder: Any, call: Call) -> Any:
    """``broadcast_in_dim(x, shape, dims)`` -> ``expand(broadcast(x, flags), shape)``."""
    arg, shape = call.value("arg"), call.arg("shape")
    assert isinstance(shape, tuple)
    (out,) = _infer_broadcast_in_dim(call)
    places = _places(call, len(shape))
    new = tuple(not old for old in flags(places, len(shape)))
    spread = builder.call("broadcast", arg, new)
    if spread is not arg and assume_dims_equal(out.dims, spread.tensor.dims):
        return spread
    return builder.call("expand", spread, shape)


def _expand_broadcast_in_dim(
    ops: Any, arg: Value, shape: Any, broadcast_dims: Sequence[int]
) -> Any:
    return ops.broadcast_in_dim(arg, shape, broadcast_dims)


def _broadcast_in_dim(
    arg: torch.Tensor, shape: Sequence[int], broadcast_dims: Sequence[int]
) -> torch.Tensor:
    places = {d % len(shape) for d in broadcast_dims}
    new = [place not in places for place in range(len(shape))]
    return _unsqueezed(arg, new).expand(tuple(shape))


_SHAPE = Param("shape", Kind.EXTENTS, doc="The sizes of the result; -1 keeps a size.")

ROWS: tuple[Op, ...] = (
    Op(
        "broadcast",
        (ARG, Param("is_broadcast_dim", Kind.BOOLS)),
        "Inserts a dim of size 1 wherever is_broadcast_dim is true.",
        "view",
        View(
            lambda call, pull: source(call, broadcast_pull(pull.index, _new_dims(call))),
            lambda call, memory: broadcast_alias(memory, _new_dims(call)),
        ),
        _infer_broadcast,
        _unsqueezed,
        _record_broadcast,
        expression="BroadcastOp",
    ),
    Op(
        "broadcast_in_dim",
        (ARG, _SHAPE, Param("broadcast_dims", Kind.INTS)),
        "Expands to shape, with dim i of the tensor at dim broadcast_dims[i] of the result.",
        "view",
        Composite(_expand_broadcast_in_dim),
        _infer_broadcast_in_dim,
        _broadcast_in_dim,
        _record_broadcast_in_dim,
    ),
    Op(
        "expand",
        (ARG, _SHAPE),
        "Expands dims of size 1 to shape; -1 keeps a size, and leading dims may be new.",
        "view",
        View(
            lambda call, pull: source(call, expand_pull(pull.index, call.value("arg").tensor)),
            lambda call, memory: expand_alias(memory, result_sizes(call)),
        ),
        _infer_expand,
        lambda arg, shape: arg.expand(tuple(shape)),
        _record_expand,
    ),
)
