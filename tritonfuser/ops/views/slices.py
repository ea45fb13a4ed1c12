"""The row of slice: elements cut out by start and end, which run over the sizes or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...errors import DefinitionError
from ...ir import Arg, Const, Dim, Extent, TensorType
from ...shapes.memory import Memory
from ...shapes.view_maps import slice_alias, slice_bounds, slice_pull
from ...symbolic.extents import symbol
from ...symbolic.queries import assume_equal, assume_less, assume_same_shape
from ...symbolic.sizes import integer, is_integer
from ..parameters import Kind, Param
from ..shape_rules import (
    ARG,
    extents,
    resized,
    result_sizes,
    source,
    view_of,
    with_attrs,
    with_operands,
)
from ..table import Call, Op, View

_LIMITS = ("start_indices", "end_indices", "strides")


def _record_slice(builder: Any, call: Call) -> Any:
    """Append the node with bounds clamped where they are known, ``set`` where all is kept."""
    starts, ends, strides = (call.arg(name) for name in _LIMITS)
    assert isinstance(starts, tuple) and isinstance(ends, tuple)
    if strides is None:
        strides = (Const.of(1),) * len(starts)
    assert isinstance(strides, tuple)
    arg = call.value("arg").tensor
    _check_slice(arg.rank, starts, ends, strides)
    call = with_operands(call, strides=strides)
    bounds = [
        _known_bounds(dim, start, end)
        for dim, start, end in zip(arg.dims, starts, ends, strict=True)
    ]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return builder.append(call)
    whole = ((0, integer(dim.size)) for dim in arg.dims)
    if all(assume_same_shape(bound, all_) for bound, all_ in zip(known, whole, strict=True)):
        return builder.call("set", call.value("arg"))
    clamped = with_operands(
        call,
        start_indices=tuple(Const.of(low) for low, _ in known),
        end_indices=tuple(Const.of(high) for _, high in known),
    )
    return builder.append(with_attrs(clamped, manual_normalization=True))


def _check_slice(
    rank: int, starts: Sequence[Arg], ends: Sequence[Arg], strides: Sequence[Arg]
) -> None:
    """Raise what nvFuser raises, in its order."""
    for wrong, text in _lengths(rank, starts, ends, strides):
        if wrong:
            raise DefinitionError(text, hint=_given(rank, starts, ends, strides))
    for start, end, stride in zip(starts, ends, strides, strict=True):
        for wrong, text in _bounds(_number(start), _number(end), _number(stride)):
            if wrong:
                raise DefinitionError(text, hint=_given(rank, starts, ends, strides))


def _lengths(rank: int, *limits: Sequence[Arg]) -> list[tuple[bool, str]]:
    starts, ends, strides = (len(limit) for limit in limits)
    return [
        (starts != strides, "Slice start_indices and strides don't match!"),
        (starts != rank, "Number of tensor dimensions does not match slice dimensions!"),
        (starts != ends, "Slice indexing attribute dimensions don't match!"),
    ]


def _bounds(low: int | None, high: int | None, stride: int | None) -> list[tuple[bool, str]]:
    early = low is not None and assume_less(low, 0)
    crossed = low is not None and high is not None and assume_less(high, low)
    return [
        (early, "Slice operation start_indices must be greater than or equal to 0."),
        (
            crossed,
            "Slice operation end_indices must be greater than or equal to start_indices.",
        ),
        (
            stride is None or not assume_equal(stride, 1),
            "nvFuser Limitation: All slice operation strides must be of const size 1.",
        ),
    ]


def _given(rank: int, *limits: Sequence[Arg]) -> str:
    texts = (f"{name}: {list(limit)}" for name, limit in zip(_LIMITS, limits, strict=True))
    return f"The tensor has {rank} dims; {', '.join(texts)}."


def _number(size: Arg) -> int | None:
    if not isinstance(size, Const) or isinstance(size.value, complex):
        return None
    return integer(size.value)


def _known_bounds(dim: Dim, start: Arg, end: Arg) -> tuple[int, int] | None:
    low, high = _number(start), _number(end)
    if low is None or high is None or not is_integer(dim.size):
        return None
    return slice_bounds(dim.size, low, high)


def _infer_slice(call: Call) -> tuple[TensorType, ...]:
    arg = call.value("arg").tensor
    limits = zip(
        arg.dims, extents(call, "start_indices"), extents(call, "end_indices"), strict=True
    )
    return view_of(arg, [resized(dim, _length(dim.size, *ends)) for dim, *ends in limits])


def _length(size: Extent, start: Extent, end: Extent) -> Extent:
    """How many elements a slice keeps; a symbol of its own where bounds are not known.

    At a run all three are numbers, and the length is exact.
    """
    if is_integer(size) and is_integer(start) and is_integer(end):
        low, high = slice_bounds(size, start, end)
        return high - low
    return symbol(f"slice({size}, {start}, {end})")


def _starts(call: Call) -> tuple[int, ...]:
    """The first index that each dim of a concretized slice keeps."""
    sizes = call.value("arg").tensor.sizes
    limits = zip(sizes, extents(call, "start_indices"), extents(call, "end_indices"), strict=True)
    return tuple(slice_bounds(size, integer(low), integer(high))[0] for size, low, high in limits)


def _alias_slice(call: Call, memory: Memory) -> Memory:
    return slice_alias(memory, _starts(call), result_sizes(call))


def _slice(
    arg: torch.Tensor,
    start_indices: Sequence[int],
    end_indices: Sequence[int],
    strides: Sequence[int] | None = None,
    manual_normalization: bool = False,
) -> torch.Tensor:
    return arg[tuple(slice(a, b) for a, b in zip(start_indices, end_indices, strict=True))]


ROWS: tuple[Op, ...] = (
    Op(
        "slice",
        (
            ARG,
            Param("start_indices", Kind.EXTENTS),
            Param("end_indices", Kind.EXTENTS),
            Param("strides", Kind.EXTENTS, None),
            Param("manual_normalization", Kind.BOOL, False),
        ),
        "The elements from start_indices up to end_indices; these are clamped to the sizes.",
        "view",
        View(
            lambda call, pull: source(call, slice_pull(pull.index, _starts(call))),
            _alias_slice,
        ),
        _infer_slice,
        _slice,
        _record_slice,
    ),
)
