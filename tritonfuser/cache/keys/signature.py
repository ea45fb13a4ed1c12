"""The key of a call: the properties of its inputs that decide which compiled kernels serve it.

- Of a tensor: sizes, strides, dtype, device, alignment of the pointer, negative bit.
- Of a scalar: its Python type, whether its dtype holds it, its value where a shape depends on it.
- torch's current device, for definitions without tensors.

The function that makes the key is generated for each definition. A call reads these attributes and
does nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch

from ... import options
from ...dtypes import Category, DataType, from_torch, int_range
from ...ir import Fusion, Number, Value
from ...lowering.passes.concretize import (
    InputSignature,
    InputSpec,
    ScalarSpec,
    TensorSpec,
    shape_scalars,
)
from ...lowering.passes.constant_folding import as_number
from .run_device import default_device
from .storage import PLAIN_CLASSES, check_class, check_reach, empty_address, is_abstract

Key = Hashable
KeyMaker = Callable[[Sequence[Any]], Key]

ALIGNMENT = 16
"""Bytes a pointer must be a multiple of for the widest loads of a GPU."""


MISFIT_ERRORS = (AttributeError, TypeError, ValueError, RuntimeError)
"""Errors of a key maker or a guard for inputs of a wrong number or kind, or without memory."""

KEY_PARTS = 6
"""Entries of a key for each tensor, the first its sizes and the second its strides."""


def key_maker(fusion: Fusion, *, abstract: bool = False) -> KeyMaker:
    """Generate the function that makes the key of flat inputs.

    Parameters
    ----------
    fusion : Fusion
        The definition.
    abstract : bool
        Whether the function takes fake and meta tensors too.

    Returns
    -------
    callable
        Raises one of ``MISFIT_ERRORS`` for inputs of a wrong number or kind, and for tensors
        without memory. ``explain_mismatch`` then says what does not fit.
    """
    scope: dict[str, Any] = {
        "where": default_device,
        "PLAIN_CLASSES": PLAIN_CLASSES,
        "check_class": check_class,
        "check_reach": check_reach,
        "empty_address": empty_address,
        "integers": _integers,
        "is_aligned": is_aligned,
    }
    exec(_key_text(fusion, abstract), scope)
    maker: KeyMaker = scope["key"]
    return maker


def _key_text(fusion: Fusion, abstract: bool) -> str:
    """The text of the function ``key(inputs)``."""
    in_shapes = shape_scalars(fusion)
    names = [f"i{place}" for place in range(len(fusion.inputs))]
    parts: list[str] = []
    for name, value in zip(names, fusion.inputs, strict=True):
        parts.extend(_key_parts(name, value, value in in_shapes, abstract))
    if not any(value.is_tensor for value in fusion.inputs):
        parts.append("where()")
    on_cpu = "" if "storage" in options.current().check else "{}.is_cpu and "
    checks = [
        f"    type({name}) in PLAIN_CLASSES or check_class({name})\n"
        f"    {on_cpu.format(name)}check_reach({name})\n"
        for name, value in zip(names, fusion.inputs, strict=True)
        if value.is_tensor and not abstract
    ]
    return (
        f"def key(inputs):\n"
        f"    [{', '.join(names)}] = inputs\n"  # an empty list takes no inputs, and says so
        f"{''.join(checks)}"
        f"    return ({', '.join(parts)},)\n"
    )


def key_names(fusion: Fusion) -> list[str]:
    """The name of each entry of a key, such as ``tv0's dtype``."""
    in_shapes = shape_scalars(fusion)
    found: list[str] = []
    for value in fusion.inputs:
        parts = ["rank", "rank", "dtype", "device", "alignment to 16 bytes", "sign"]
        if not value.is_tensor:
            parts = ["type", "value", "fit"] if value in in_shapes else ["type", "fit"]
        found += [f"{value.name}'s {part}" for part in parts]
    return found if any(v.is_tensor for v in fusion.inputs) else [*found, "torch's device"]


def _key_parts(name: str, value: Value, in_shape: bool, abstract: bool) -> list[str]:
    if value.is_tensor:
        sizes, strides = f"{name}.shape", f"{name}.stride()"
        aligned = f"({name}.data_ptr() or empty_address({name})) & {ALIGNMENT - 1} == 0"
        if abstract:
            sizes, strides = f"integers({sizes})", f"integers({strides})"
            aligned = f"is_aligned({name})"
        return [sizes, strides, f"{name}.dtype", f"{name}.device", aligned, f"{name}.is_neg()"]
    parts = [f"type({name})", name] if in_shape else [f"type({name})"]
    held = int_range(value.dtype)
    return [*parts, f"not isinstance({name}, int) or {held.start} <= {name} < {held.stop}"]


def signature(fusion: Fusion, inputs: Sequence[Any], device: torch.device) -> InputSignature:
    """The properties of inputs that lowering depends on. The inputs must fit the definition."""
    in_shapes = shape_scalars(fusion)
    return tuple(
        _spec(value, given, value in in_shapes, device)
        for value, given in zip(fusion.inputs, inputs, strict=True)
    )


def _spec(value: Value, given: Any, in_shape: bool, device: torch.device) -> InputSpec:
    if not value.is_tensor:
        return ScalarSpec(value.dtype, _number(given, value.dtype) if in_shape else None)
    dtype = DataType.Index if value.dtype is DataType.Index else from_torch(given.dtype)
    return TensorSpec(
        _integers(given.shape),
        _integers(given.stride()),
        dtype,
        is_aligned(given),
        given.device.type == "cpu" and device.type != "cpu",
    )


def _integers(numbers: Sequence[int]) -> tuple[int, ...]:
    """Sizes or strides as ints; symbolic ones of a fake tensor by their hints."""
    return tuple(map(int, numbers))


def _number(given: Any, dtype: DataType) -> Number:
    """A given number as a scalar of ``dtype`` holds it."""
    return int(given) if dtype.info.category is Category.INT else as_number(given, dtype)


def is_aligned(tensor: torch.Tensor) -> bool:
    """Whether the data starts at a multiple of 16 bytes. Abstract storages are taken as aligned."""
    if is_abstract(tensor):
        return (int(tensor.storage_offset()) * tensor.element_size()) % ALIGNMENT == 0
    return tensor.data_ptr() % ALIGNMENT == 0
