"""Rows of the views that put tensors side by side or add a border: pad, cat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...dtypes import Category
from ...errors import DefinitionError
from ...ir import Const, Dim, Extent, TensorType, Value
from ...shapes.equal_extents import assume_extents_equal, assume_extents_fit
from ...shapes.index_map import Pull, Source
from ...shapes.pieced_maps import cat_sources, pad_sources
from ...symbolic.queries import assume_less
from ...symbolic.sizes import integer, is_integer
from ..parameters import Kind, Param
from ..shape_rules import (
    ARG,
    extents,
    fail,
    int_attr,
    view_of,
    with_attrs,
    with_operands,
    wrap_dim,
)
from ..table import Call, Op, View

# --- pad ---------------------------------------------------------------------------------------


def _widths(call: Call) -> list[tuple[Extent, Extent]]:
    """(before, after) for each dim, outermost first."""
    rank, given = call.value("arg").tensor.rank, extents(call, "pad_widths")
    if len(given) % 2 or len(given) > 2 * rank:
        raise fail(
            "pad",
            f"two widths for each padded dim of a tensor of rank {rank}, innermost dim first",
            list(given),
        )
    pairs = list(zip(given[::2], given[1::2], strict=True))
    pairs += [(0, 0)] * (rank - len(pairs))
    return pairs[::-1]


def _adds_none(before: Extent, after: Extent) -> bool:
    return all(assume_extents_equal(width, 0) for width in (before, after))


def _infer_pad(call: Call) -> tuple[TensorType, ...]:
    arg = call.value("arg").tensor
    dims = []
    for place, (dim, (before, after)) in enumerate(zip(arg.dims, _widths(call), strict=True)):
        size = dim.size + before + after
        if is_integer(size) and assume_less(size, 0):
            raise fail(
                "pad",
                f"widths that leave 0 and more of the {dim.size} elements in dim {place}",
                [before, after],
            )
        dims.append(dim if _adds_none(before, after) else Dim(size))
    return view_of(arg, dims)


def _record_pad(builder: Any, call: Call) -> Any:
    arg, value = call.value("arg"), call.arg("value")
    _infer_pad(call)
    if all(_adds_none(*pair) for pair in _widths(call)):
        return builder.call("set", arg)
    if isinstance(value, Value | Const):
        if value.dtype.info.category is not arg.dtype.info.category:
            raise DefinitionError(
                "pad: Tensor arg and pad value must have the same dtype.",
                hint=f"The tensor is of {arg.dtype}, the value of {value.dtype}.",
            )
        if isinstance(value, Value) and value.dtype is not arg.dtype:
            value = builder.call("cast", value, arg.dtype)
    return builder.append(with_operands(call, value=value))


def _pull_pad(call: Call, pull: Pull) -> tuple[Source, ...]:
    before = tuple(integer(low) for low, _ in _widths(call))
    fill = call.arg("value")
    assert not isinstance(fill, tuple)
    return pad_sources(pull.index, call.value("arg"), before, fill)


def _pad(arg: torch.Tensor, pad_widths: Sequence[int], value: float | None = None) -> torch.Tensor:
    fill = 0 if value is None else value
    if isinstance(fill, complex):  # which torch's pad does not take
        parts = zip((arg.real, arg.imag), (fill.real, fill.imag), strict=True)
        return torch.complex(*(_pad(part, pad_widths, number) for part, number in parts))
    # torch cuts first, which it refuses where only the padding is long enough for it.
    padded = torch.nn.functional.pad(arg, [max(width, 0) for width in pad_widths], value=fill)
    return torch.nn.functional.pad(padded, [min(width, 0) for width in pad_widths])


# --- cat ---------------------------------------------------------------------------------------


def _tensors(call: Call) -> tuple[Value, ...]:
    found = call.arg("tensors")
    assert isinstance(found, tuple)
    return tuple(item for item in found if isinstance(item, Value))


def _infer_cat(call: Call) -> tuple[TensorType, ...]:
    tensors, place = _tensors(call), int_attr(call, "dim")
    dims = _joined([t.tensor for t in tensors], but=place)
    total = sum((t.tensor.dims[place].size for t in tensors), start=0)
    dims[place] = Dim(total)
    return view_of(tensors[0].tensor, dims)


def _joined(types: Sequence[TensorType], but: int) -> list[Dim]:
    """The dims all tensors share; dim ``but`` may differ."""
    dims = list(types[0].dims)
    for number, type_ in enumerate(types[1:], start=1):
        for place, (mine, other) in enumerate(zip(dims, type_.dims, strict=True)):
            if place == but:
                continue
            if not assume_extents_fit(mine.size, other.size):
                raise fail("cat", f"size {mine.size} in dim {place} of tensor {number}", other.size)
            size = mine.size if is_integer(mine.size) else other.size
            dims[place] = Dim(size, mine.expanded and other.expanded)
    return dims


def _record_cat(builder: Any, call: Call) -> Any:
    tensors = _tensors(call)
    if not tensors:
        raise fail("cat", "one tensor and more", "none")
    first = tensors[0]
    for number, other in enumerate(tensors):
        if other.dtype is not first.dtype:
            raise fail("cat", f"tensors of one dtype, {first.dtype}", f"{other.dtype} ({number})")
        if other.tensor.rank != first.tensor.rank or not other.tensor.rank:
            raise fail("cat", "tensors of one rank, 1 and more", f"{other.tensor.rank} ({number})")
    place = wrap_dim("cat", int_attr(call, "dim"), first.tensor.rank)
    if len(tensors) == 1:
        return builder.call("set", first)
    if call.attrs["manual_padding"]:
        return _overlaid(builder, tensors)
    return builder.append(with_attrs(call, dim=place))


def _overlaid(builder: Any, tensors: Sequence[Value]) -> Any:
    """Tensors that are padded with zeros to the size of the result already: their sum."""
    dtype = tensors[0].dtype
    _joined([t.tensor for t in tensors], but=-1)
    name = "bitwise_or" if dtype.info.category is Category.BOOL else "add"
    total = tensors[0]
    for other in tensors[1:]:
        total = builder.call(name, total, other)
    return total if total.dtype is dtype else builder.call("cast", total, dtype)


def _pull_cat(call: Call, pull: Pull) -> tuple[Source, ...]:
    return cat_sources(pull.index, _tensors(call), int_attr(call, "dim"))


def _cat(
    tensors: Sequence[torch.Tensor], dim: int = 0, manual_padding: bool = False
) -> torch.Tensor:
    return torch.cat(list(tensors), dim)


ROWS: tuple[Op, ...] = (
    Op(
        "pad",
        (
            ARG,
            Param("pad_widths", Kind.EXTENTS),
            Param("value", Kind.SCALAR, None, doc="What the new elements are; 0 where not given."),
        ),
        "Pads with value, by default 0; widths are (before, after) pairs, innermost dim first.",
        "view",
        View(_pull_pad, pieces=True),
        _infer_pad,
        _pad,
        _record_pad,
    ),
    Op(
        "cat",
        (
            Param("tensors", Kind.TENSORS),
            Param("dim", Kind.INT, 0),
            Param("manual_padding", Kind.BOOL, False),
        ),
        "Concatenates tensors along a dim.",
        "view",
        View(_pull_cat, pieces=True),
        _infer_cat,
        _cat,
        _record_cat,
    ),
)
