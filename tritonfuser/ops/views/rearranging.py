"""Rows of the views that keep every element: reshape, permute, squeeze, stride_order, size and

shape; and, joined in, those that repeat, pick and join elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ...dtypes import DataType
from ...ir import DYNAMIC, Const, Dim, Extent, ScalarType, TensorType, Value
from ...shapes.equal_extents import assume_extents_equal, assume_extents_fit
from ...shapes.index_map import Pull, Source
from ...shapes.memory import strides_for_order
from ...shapes.view_maps import (
    permute_alias,
    permute_pull,
    reshape_alias,
    reshape_pull,
    squeeze_alias,
    squeeze_pull,
)
from ...symbolic.extents import quotient
from ...symbolic.queries import assume_less, assume_multiple
from ...symbolic.sizes import is_integer
from ..forms import Composite, HostScalar
from ..parameters import Kind, Param
from ..shape_rules import (
    ARG,
    extents,
    fail,
    int_attr,
    permutation,
    result_sizes,
    source,
    view_of,
    with_attrs,
    with_operands,
    without,
    wrap_dim,
    wrap_dims,
)
from ..table import Call, Op, View
from . import broadcasts, indexing, joins, slices

# --- reshape ---------------------------------------------------------------------------------


def _infer_reshape(call: Call) -> tuple[TensorType, ...]:
    arg = call.value("arg").tensor
    sizes = list(extents(call, "new_shape"))
    old: Extent = math.prod(arg.shape)
    asked = [place for place, s in enumerate(sizes) if assume_extents_equal(s, DYNAMIC)]
    known: Extent = math.prod(s for place, s in enumerate(sizes) if place not in asked)
    if any(is_integer(s) and assume_less(s, DYNAMIC) for s in sizes) or len(asked) > 1:
        raise fail("reshape", "sizes of 0 and more, and -1 once at most", sizes)
    if asked:
        sizes[asked[0]] = _quotient(old, known, sizes)
    elif not assume_extents_fit(old, known):
        raise fail("reshape", f"a shape of {old} elements, as {_text(arg.shape)} has", sizes)
    return view_of(arg, [Dim(size) for size in sizes])


def _quotient(old: Extent, known: Extent, sizes: list[Extent]) -> Extent:
    """The extent that -1 stands for."""
    if assume_extents_equal(known, 0):
        raise fail("reshape", "no -1 beside a size of 0: it could be anything", sizes)
    if not (is_integer(old) and is_integer(known)):
        return quotient(old, known)
    if not assume_multiple(old, known):
        raise fail("reshape", f"sizes that divide the {old} elements of the tensor", sizes)
    return old // known


def _text(shape: Sequence[Extent]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"


def _record_reshape(builder: Any, call: Call) -> Any:
    """Append the node, its -1 written out where the size is known."""
    (out,) = _infer_reshape(call)
    asked = call.arg("new_shape")
    assert isinstance(asked, tuple)
    shape = tuple(
        Const.of(size) if is_integer(size) else given
        for size, given in zip(out.shape, asked, strict=True)
    )
    return builder.append(with_operands(call, new_shape=shape))


def _pull_reshape(call: Call, pull: Pull) -> tuple[Source, ...]:
    operand = call.value("arg").tensor.sizes
    return source(call, reshape_pull(pull.index, result_sizes(call), operand))


# --- squeeze ---------------------------------------------------------------------------------


_TOO_MANY = "The dims to squeeze must be <= the number of dims of the input tensor"
_OUTSIDE = "Squeeze dim is outside of Tensor size!"
"""nvFuser's phrases for dims that the tensor does not have."""


def _infer_squeeze(call: Call) -> tuple[TensorType, ...]:
    arg = call.value("arg").tensor
    for place in call.dims():
        dim = arg.dims[place]
        if dim.expanded and not any(assume_extents_equal(dim.size, n) for n in (0, 1)):
            if not call.attrs["squeeze_expanded"]:
                raise fail(
                    "squeeze",
                    f"squeeze_expanded=True to squeeze the expanded dim {place}",
                    "False",
                )
        elif not assume_extents_fit(dim.size, 1):
            raise fail(
                "squeeze",
                f"size 1 in dim {place}",
                dim.size,
                "Only dims of size 1 can be squeezed; unlike torch, others are not skipped.",
            )
    return view_of(arg, without(arg.dims, call.dims()))


def _record_squeeze(builder: Any, call: Call) -> Any:
    arg = call.value("arg")
    if len(call.dims()) > arg.tensor.rank:
        raise fail(f"squeeze: {_TOO_MANY}", f"at most {arg.tensor.rank} dims", list(call.dims()))
    dims = wrap_dims("squeeze", call.dims(), arg.tensor.rank, _OUTSIDE)
    if not dims:
        return builder.call("set", arg)
    return builder.append(with_attrs(call, dims=tuple(sorted(dims))))


def _pull_squeeze(call: Call, pull: Pull) -> tuple[Source, ...]:
    rank = call.value("arg").tensor.rank
    return source(call, squeeze_pull(pull.index, call.dims(), rank))


def _squeeze(
    arg: torch.Tensor, dims: Sequence[int], squeeze_expanded: bool = False
) -> torch.Tensor:
    for place in sorted((d % arg.dim() for d in dims), reverse=True):
        arg = arg.select(place, 0)
    return arg


# --- permute, stride_order -------------------------------------------------------------------


def _infer_permute(call: Call) -> tuple[TensorType, ...]:
    arg = call.value("arg").tensor
    return view_of(arg, [arg.dims[d] for d in call.dims()])


def _record_permute(builder: Any, call: Call) -> Any:
    dims = permutation("permute", call.dims(), call.value("arg").tensor.rank)
    return builder.append(with_attrs(call, dims=dims))


def _record_stride_order(builder: Any, call: Call) -> Any:
    arg = call.value("arg")
    asked = call.dims("stride_order")
    if not asked:
        return builder.call("set", arg)
    order = permutation("stride_order", asked, arg.tensor.rank)
    return builder.append(with_attrs(call, stride_order=order))


def _stride_order(arg: torch.Tensor, stride_order: Sequence[int]) -> torch.Tensor:
    if not stride_order:
        return arg.clone()
    order = [place % arg.dim() for place in stride_order]
    strides = strides_for_order(arg.shape, order)
    out = torch.empty_strided(arg.shape, strides, dtype=arg.dtype, device=arg.device)
    return out.copy_(arg)


# --- size, shape -----------------------------------------------------------------------------


def _record_size(builder: Any, call: Call) -> Any:
    arg = call.value("arg").tensor
    if not arg.rank:
        raise fail("size", "a tensor with dims", "a 0-dim tensor")
    dim = wrap_dim("size", int_attr(call, "dim"), arg.rank)
    found = arg.dims[dim].size
    if is_integer(found):
        return Const.of(found)
    return builder.append(with_attrs(call, dim=dim))


def _record_shape(builder: Any, call: Call) -> Any:
    arg = call.value("arg")
    return [builder.call("size", arg, dim) for dim in range(arg.tensor.rank)]


def _expand_shape(ops: Any, arg: Value) -> tuple[Any, ...]:
    return tuple(ops.size(arg, dim) for dim in range(arg.tensor.rank))


ROWS: tuple[Op, ...] = (
    *broadcasts.ROWS,
    Op(
        "reshape",
        (ARG, Param("new_shape", Kind.EXTENTS)),
        "The same elements, in row-major order, in a new shape; one size may be -1.",
        "view",
        View(
            _pull_reshape,
            lambda call, memory: reshape_alias(memory, result_sizes(call)),
            regroups=True,
        ),
        _infer_reshape,
        lambda arg, new_shape: arg.reshape(tuple(new_shape)),
        _record_reshape,
        expression="ReshapeOp",
    ),
    Op(
        "permute",
        (
            ARG,
            Param(
                "dims",
                Kind.INTS,
                doc="For each dim of the result the dim of the tensor that it is.",
            ),
        ),
        "Reorders dims: dim i of the result is dim dims[i] of the operand.",
        "view",
        View(
            lambda call, pull: source(call, permute_pull(pull.index, call.dims())),
            lambda call, memory: permute_alias(memory, call.dims()),
        ),
        _infer_permute,
        lambda arg, dims: arg.permute(tuple(dims)),
        _record_permute,
    ),
    Op(
        "squeeze",
        (
            ARG,
            Param("dims", Kind.DIMS, doc="The dims of size 1 to take away."),
            Param("squeeze_expanded", Kind.BOOL, False),
        ),
        "Removes dims of size 1; also expanded dims, if squeeze_expanded.",
        "view",
        View(
            _pull_squeeze,
            lambda call, memory: squeeze_alias(memory, call.dims()),
        ),
        _infer_squeeze,
        _squeeze,
        _record_squeeze,
        expression="SqueezeOp",
    ),
    Op(
        "stride_order",
        (ARG, Param("stride_order", Kind.INTS)),
        "The same values in a memory order: dim i has the stride_order[i]-th smallest stride.",
        "view",
        View(lambda call, pull: source(call, pull.index)),
        lambda call: view_of(call.value("arg").tensor, call.value("arg").tensor.dims),
        _stride_order,
        _record_stride_order,
    ),
    Op(
        "size",
        (ARG, Param("dim", Kind.INT, doc="The dim asked for.")),
        "The extent of one dim.",
        "view",
        HostScalar(),
        lambda call: (ScalarType(DataType.Int),),
        lambda arg, dim: arg.size(dim),
        _record_size,
    ),
    Op(
        "shape",
        (ARG,),
        "The extents of all dims, as a list.",
        "view",
        Composite(_expand_shape),
        lambda call: (ScalarType(DataType.Int),) * call.value("arg").tensor.rank,
        lambda arg: tuple(arg.shape),
        _record_shape,
    ),
    *slices.ROWS,
    *joins.ROWS,
    *indexing.ROWS,
)
