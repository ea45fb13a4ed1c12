"""Functions of NumPy arrays and torch tensors as functions of the interpreter's tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton.runtime.interpreter import TensorHandle

from .rounding_builder import as_torch

Array = Any  # np.ndarray of any shape and dtype


def to_tensor(data: Array, dtype: tl.dtype, scalar: bool) -> tl.tensor:
    """An array as a tile of the interpreter, or as a scalar, which holds an array of one."""
    data = np.atleast_1d(np.asarray(data))
    type_ = dtype if scalar else tl.block_type(dtype, list(data.shape))
    return tl.tensor(TensorHandle(data, dtype), type_)


def elementwise(function: Callable[..., Array]) -> Callable[..., Any]:
    """A function of arrays as one of the interpreter's tensors, in the first operand's dtype."""

    def call(*operands: Any) -> tl.tensor:
        tensors = [x for x in operands if isinstance(x, tl.tensor)]
        dtype = tensors[0].dtype
        like = interpreter._get_np_dtype(dtype)
        arrays = [x.handle.data if isinstance(x, tl.tensor) else x for x in operands]
        data = np.asarray(function(*arrays)).astype(like, copy=False)
        return to_tensor(data, dtype, not any(x.type.is_block() for x in tensors))

    return call


def through_torch(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """A function of torch tensors as one of the interpreter's."""
    return elementwise(lambda *arrays: function(*map(as_torch, arrays)).numpy())


def along(function: Callable[..., Array], keeps: bool = False) -> Callable[..., Any]:
    """A NumPy reduction, or a scan, which keeps the shape, as a function of (tile, axis)."""

    def call(x: tl.tensor, axis: Any = None, keep_dims: bool = False, **options: Any) -> tl.tensor:
        data, axis = x.handle.data, unwrapped(axis)
        dtype = unwrapped(options.get("dtype")) or x.dtype
        like = interpreter._get_np_dtype(dtype)
        extra = {} if keeps else {"keepdims": bool(unwrapped(keep_dims))}
        if data.dtype != like:
            data = data.astype(like)
        found = np.asarray(function(data, axis=axis, **extra)).astype(like, copy=False)
        return to_tensor(found, dtype, found.ndim == 0)

    return call


def unwrapped(value: Any) -> Any:
    """The value of a constant of Triton's; anything else as it is."""
    return value.value if isinstance(value, tl.constexpr) else value


def tree_sum(data: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """``np.sum``, floats by halves: ``[a, b, c, d] -> [a + c, b + d] -> [a + b + c + d]``.

    That rounds as much as the threads of a GPU, which add in pairs. NumPy adds rows one by one
    where the axis is not the innermost one in memory, and loses digits that a GPU keeps.
    """
    data = np.asarray(data)
    rows_last = axis is None or axis % max(data.ndim, 1) == data.ndim - 1
    if data.dtype.kind not in "fc" or (rows_last and data.flags.c_contiguous):
        return np.sum(data, axis=axis, keepdims=keepdims)  # pairwise as it is
    part = np.moveaxis(data, axis, 0) if axis is not None else data.reshape(-1)
    while len(part) > 1 and len(part) % 2 == 0:
        half = len(part) // 2
        part = part[:half] + part[half:]
    total = np.sum(part, axis=0)
    if not keepdims:
        return total
    return total.reshape((1,) * data.ndim) if axis is None else np.expand_dims(total, axis)
