"""Arguments of ``define_tensor``, checked as nvFuser does -> ``TensorType``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dtypes import DTYPE_TEXT, DataType, data_type, dtype_advice
from ...errors import ArgumentError, DefinitionError
from ...ir import DYNAMIC, Dim, Layout, TensorType
from ...symbolic.extents import SymbolicExtent
from ..vocabulary.argument_types import LISTED, expect

INT64_MAX = 2**63 - 1
MOST_DIMS = 64
"""Dims of a tensor of torch at most."""
Symbols = Callable[[], SymbolicExtent]
"""Makes the symbol of the next extent that is known only at run time."""

_SHAPE = ("shape", "contiguity", "dtype", "is_cpu", "stride_order")
_STRIDES = ("sizes", "strides", "dtype", "static_sizes", "is_cpu")
_LEGACY = ("symbolic_sizes", "contiguous", "dtype", "is_cpu", "stride_order")
_RANK = ("ndims", "dtype")
FORMS = (_SHAPE, _STRIDES, _LEGACY, _RANK)


def define_tensor_type(args: Sequence[Any], kwargs: Mapping[str, Any], new: Symbols) -> TensorType:
    """The type that ``define_tensor(*args, **kwargs)`` describes.

    Raises
    ------
    ArgumentError
        An argument of the wrong Python type, unknown, missing, or beyond int64.
    DefinitionError
        Values that describe no tensor.
    """
    form = _form_of(args, kwargs)
    given = _named(form, args, kwargs)
    dtype = _dtype(given.get("dtype", DataType.Float))
    is_cpu = _flag(given.get("is_cpu", False), "is_cpu")
    if form is _RANK:
        rank = _size(given["ndims"], "ndims")
        if not 0 <= rank <= MOST_DIMS:
            raise DefinitionError(
                f"define_tensor: expected a number of dims from 0 to {MOST_DIMS}, got {rank}"
            )
        sizes = [DYNAMIC] * rank
        return tensor_type(sizes, False, dtype, is_cpu, (), new)
    if form is _STRIDES:
        static = _flag(given.get("static_sizes", False), "static_sizes")
        sizes = as_sizes(given["sizes"], "sizes")
        strides = as_sizes(given["strides"], "strides")
        contiguity, order = compute_tensor_descriptor(sizes, strides)
        shown = sizes if static else [1 if size == 1 else DYNAMIC for size in sizes]
        return tensor_type(shown, contiguity, dtype, is_cpu, order, new)
    if form is _LEGACY:
        sizes = as_sizes(given["symbolic_sizes"], "symbolic_sizes")
        order = as_sizes(given.get("stride_order", ()), "stride_order")
        flags = _legacy_contiguity(sizes, given.get("contiguous", False), order)
        return tensor_type(sizes, flags, dtype, is_cpu, order, new)
    sizes = as_sizes(given["shape"], "shape")
    order = as_sizes(given.get("stride_order", ()), "stride_order")
    return tensor_type(sizes, given.get("contiguity", False), dtype, is_cpu, order, new)


def _form_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    if kwargs.keys() & {"sizes", "strides", "static_sizes"} or (
        len(args) > 1 and _is_int_list(args[1])
    ):
        return _STRIDES
    if kwargs.keys() & {"symbolic_sizes", "contiguous"}:
        return _LEGACY
    if "ndims" in kwargs or (args and _is_int(args[0])):
        return _RANK
    return _SHAPE


def _is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_int_list(value: Any) -> bool:
    """Strides are ints, a contiguity list holds bools and None."""
    return isinstance(value, list | tuple) and bool(value) and all(_is_int(v) for v in value)


def _named(form: tuple[str, ...], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    signature = " or ".join(f"({', '.join(names)})" for names in FORMS)
    if len(args) > len(form):
        raise _incompatible(f"{len(args)} positional arguments", f"Forms: {signature}")
    given = dict(zip(form, args, strict=False))
    for key, value in kwargs.items():
        # The first frontend had two names for it.
        name = "contiguous" if form is _LEGACY and key == "contiguity" else key
        if name not in form or name in given:
            what = "given twice" if name in given else "not an argument of this form"
            raise _incompatible(f"{name!r} is {what}", f"Forms: {signature}")
        given[name] = value
    needed = form[:2] if form is _STRIDES else form[:1]
    for name in needed:
        if name not in given:
            raise _incompatible(f"{name!r} is missing", f"Forms: {signature}")
    return given


def _incompatible(what: str, hint: str = "") -> ArgumentError:
    return ArgumentError(f"define_tensor(): incompatible function arguments: {what}", hint=hint)


def _dtype(given: Any) -> DataType:
    found = data_type(given)
    if found is None:
        raise _incompatible(f"dtype must be {DTYPE_TEXT}, got {given!r}", dtype_advice(given))
    return found


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise _incompatible(f"{name} must be True or False, got {value!r}")
    return value


def _size(value: Any, name: str) -> int:
    if not isinstance(value, int | np.integer):
        raise _incompatible(f"{name} must hold ints, got {value!r} of type {type(value).__name__}")
    number = int(value)
    if not -INT64_MAX - 1 <= number <= INT64_MAX:
        raise _incompatible(f"{name} holds {number}, which is beyond int64")
    return number


def as_sizes(values: Any, name: str) -> list[int]:
    """A list, tuple or torch.Size of ints as a list."""
    if not isinstance(values, list | tuple):
        raise _incompatible(f"{name} must be a list or a tuple of ints, got {values!r}")
    return [_size(value, name) for value in values]


def tensor_type(
    sizes: Sequence[int],
    contiguity: bool | Sequence[bool | None],
    dtype: DataType,
    is_cpu: bool,
    stride_order: Sequence[int],
    new: Symbols,
) -> TensorType:
    """A tensor input; ``contiguity`` is in memory order, ``-1`` gets a symbol of its own."""
    for place, size in enumerate(sizes):
        if size < DYNAMIC:
            raise DefinitionError(
                f"define_tensor: The value {size} at index {place} was neither symbolic(-1), "
                "zero_element(0), broadcast(1), or static(>1).",
                hint="Write -1 for a size that is known only at run time.",
            )
    if is_cpu and sizes:
        raise DefinitionError(
            "define_tensor: CPU non-scalar tensor is not supported!",
            hint="is_cpu marks 0-dim tensors that stay on the CPU next to CUDA ones.",
        )
    if dtype is DataType.Null:
        raise DefinitionError("define_tensor: a tensor cannot be of DataType.Null")
    order = _stride_order(stride_order, len(sizes))
    flags = _contiguity(sizes, contiguity, order)
    dims = tuple(
        _dim(size, flags[len(sizes) - 1 - place], new)
        for size, place in zip(sizes, order, strict=True)
    )
    return TensorType(dims, dtype, is_cpu, Layout(flags, order), weak=not dims)


def _dim(size: int, contiguity: bool | None, new: Symbols) -> Dim:
    # None on an extent other than 1 is a dim stretched by expand: stride 0.
    if size == DYNAMIC:
        return Dim(new(), expanded=contiguity is None)
    return Dim(size, expanded=contiguity is None and size > 1)


def _stride_order(order: Sequence[int], rank: int) -> tuple[int, ...]:
    if not order:
        return tuple(reversed(range(rank)))
    if len(order) != rank:
        raise DefinitionError(
            f"define_tensor: stride_order has {len(order)} entries for a tensor of rank {rank}"
        )
    wrong = [place for place in order if not -rank <= place < rank]
    if wrong:
        raise DefinitionError(
            f"define_tensor: stride_order entry {wrong[0]} is out of range for rank {rank}"
        )
    wrapped = tuple(place % rank for place in order)
    if len(set(wrapped)) != rank:
        raise DefinitionError(f"define_tensor: stride_order has duplicates: {list(order)}")
    return wrapped


def _contiguity(
    sizes: Sequence[int], contiguity: bool | Sequence[bool | None], order: tuple[int, ...]
) -> tuple[bool | None, ...]:
    rank = len(sizes)
    in_memory = _in_memory(sizes, order)
    if isinstance(contiguity, bool):
        return tuple(None if size == 1 else contiguity for size in in_memory)
    if not isinstance(contiguity, list | tuple):
        raise _incompatible(f"contiguity must be a bool or a list, got {contiguity!r}")
    for flag in contiguity:
        if flag is not None and not isinstance(flag, bool):
            raise _incompatible(f"contiguity must hold True, False and None, got {flag!r}")
    if len(contiguity) != rank:
        raise DefinitionError(
            f"define_tensor: contiguity has {len(contiguity)} entries for a tensor of rank {rank}"
        )
    for place, (size, flag) in enumerate(zip(in_memory, contiguity, strict=True)):
        if size == 1 and flag is not None:
            raise DefinitionError(
                "define_tensor: The contiguity of a broadcast dimension must be None. "
                "The contiguity of a non-broadcast dimension must be true/false",
                hint=f"contiguity[{place}] (memory order) is {flag}, the size there is 1.",
            )
    return tuple(contiguity)


def _legacy_contiguity(sizes: Sequence[int], flags: Any, order: Sequence[int]) -> Any:
    """The old frontend wrote True at dims of size 1 too."""
    if isinstance(flags, bool) or not isinstance(flags, list | tuple) or len(flags) != len(sizes):
        return flags
    in_memory = _in_memory(sizes, _stride_order(order, len(sizes)))
    return [None if size == 1 else flag for size, flag in zip(in_memory, flags, strict=True)]


def _in_memory(sizes: Sequence[int], order: tuple[int, ...]) -> list[int]:
    """The sizes outermost first as they lie in memory."""
    arranged = [0] * len(sizes)
    for size, place in zip(sizes, order, strict=True):
        arranged[len(sizes) - 1 - place] = size
    return arranged


def compute_tensor_descriptor(
    sizes: Sequence[int], strides: Sequence[int]
) -> tuple[list[bool | None], list[int]]:
    """Contiguity in memory order, and the stride order, of a tensor of these sizes and strides.

    Dims of stride 0 keep their place, the others are sorted by stride. Size-1 and stride-0 dims
    have contiguity None.
    """
    expect("compute_tensor_descriptor", LISTED, sizes)
    expect("compute_tensor_descriptor", LISTED, strides)
    for number in (*sizes, *strides):
        expect("compute_tensor_descriptor", (int, np.integer), number)
    if len(sizes) != len(strides):
        raise DefinitionError(
            f"compute_tensor_descriptor: {len(sizes)} sizes and {len(strides)} strides"
        )
    if any(stride < 0 for stride in strides):
        raise DefinitionError("compute_tensor_descriptor: negative strides are not supported")
    rank = len(sizes)
    moving = sorted((d for d in range(rank) if strides[d]), key=lambda d: -strides[d])
    for dim in range(rank):
        if not strides[dim]:
            moving.insert(dim, dim)
    contiguity: list[bool | None] = [None] * rank
    expected = 1
    for place in reversed(range(rank)):
        dim = moving[place]
        if strides[dim] and sizes[dim] != 1:
            contiguity[place] = strides[dim] == expected
            expected = strides[dim] * max(sizes[dim], 1)
    order = [0] * rank
    for place, dim in enumerate(moving):
        order[dim] = rank - 1 - place
    return contiguity, order
