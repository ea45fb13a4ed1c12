"""The device library on arrays: NumPy and torch versions of its functions, by name.

Triton's interpreter reduces by a custom combine function element by element. Here whole tiles are
computed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import triton.language as tl

from .arrays import Array, along, elementwise, through_torch, to_tensor, tree_sum, unwrapped
from .rounding_builder import as_torch


def _welford(mean: Any, m2: Any, count: Any, axis: Any) -> tuple[tl.tensor, ...]:
    means, squares, counts = (np.asarray(x.handle.data) for x in (mean, m2, count))
    axis = unwrapped(axis)
    total = tree_sum(counts, axis, keepdims=True)
    whole = tree_sum(means * counts, axis, keepdims=True) / np.where(total == 0, 1, total)
    apart = tree_sum(counts * (means - whole) ** 2, axis, keepdims=True)
    spread = tree_sum(squares, axis, keepdims=True) + apart
    found = (np.squeeze(part, axis).astype(means.dtype) for part in (whole, spread, total))
    return tuple(to_tensor(part, mean.dtype, part.ndim == 0) for part in found)


def _two_sums(x: tl.tensor, y: tl.tensor, axis: Any) -> tuple[tl.tensor, ...]:
    if x.shape != y.shape:
        raise ValueError(f"expected two blocks of one shape, got {x.shape} and {y.shape}")
    return tuple(along(tree_sum)(each, axis) for each in (x, y))


def _column_halves(x: tl.tensor) -> tuple[tl.tensor, ...]:
    halves = np.split(x.handle.data, 2, axis=1)
    return tuple(to_tensor(half, x.type.scalar, False) for half in halves)


def _int_pow(x: Array, y: Array) -> Array:
    if x.dtype.kind == "u":
        return np.power(x, y)
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, -1, 1), 0))
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0)))


def _decoded(dtype: torch.dtype) -> Callable[[tl.tensor], tl.tensor]:
    """Bytes of an 8-bit float type as float32."""

    def call(x: tl.tensor) -> tl.tensor:
        data = as_torch(x.handle.data).view(dtype).float().numpy()
        return to_tensor(data, tl.float32, not x.type.is_block())

    return call


def _encoded(dtype: torch.dtype) -> Callable[..., tl.tensor]:
    """Numbers as bytes of an 8-bit float type: this torch's, as a kernel's text says."""

    def call(x: tl.tensor, saturates: bool = False) -> tl.tensor:
        data = as_torch(x.handle.data).to(dtype).view(torch.uint8).numpy()
        return to_tensor(data, tl.uint8, not x.type.is_block())

    return call


def _philox_rounds(*words: Any) -> tuple[tl.tensor, ...]:
    """``philox_rounds`` of four words and two of a key."""
    scalar = not words[0].type.is_block()
    found = _philox_arrays(*(np.asarray(w.handle.data).astype(np.uint64) for w in words))
    return tuple(to_tensor(word.astype(np.uint32), tl.uint32, scalar) for word in found)


def _philox_arrays(
    c0: Array, c1: Array, c2: Array, c3: Array, k0: Array, k1: Array
) -> tuple[Array, ...]:
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = b >> shift ^ c1 ^ k0, b & mask, a >> shift ^ c3 ^ k1, a & mask
        k0, k1 = k0 + np.uint64(0x9E3779B9) & mask, k1 + np.uint64(0xBB67AE85) & mask
    return c0, c1, c2, c3


def _wait_for(words: tl.tensor, place: tl.tensor) -> tl.tensor:
    """The words as they are: a cooperative kernel is run twice, and then all are published."""
    return words.to(tl.float64 if words.dtype == tl.int64 else tl.float32, bitcast=True)


class IndexOutside(Exception):
    """An index that its dim does not have, found by an interpreted kernel."""

    def __init__(self, index: int, size: int) -> None:
        super().__init__(f"index {index} is out of range for a dim of {size} elements")


def _checked_index(
    index: tl.tensor, size: Any, mask: Any, same: Any = 1, *, wraps: bool = False
) -> tl.tensor:
    """The index, after a look whether the dim has it wherever the mask holds."""
    extent = _number(size)
    data = index.handle.data
    least = -extent if wraps else 0
    wrong = ((data < least) | (data >= extent)) & (
        mask.handle.data if isinstance(mask, tl.tensor) else bool(unwrapped(mask))
    )
    if np.any(wrong):
        raise IndexOutside(int(np.broadcast_to(data, wrong.shape)[wrong][0]), extent)
    # Where the mask does not hold there may be anything: nothing is read there, nor computed.
    found = np.where(data < 0, data + extent, data) if wraps else data
    return to_tensor(found.astype(data.dtype), index.dtype, not index.type.is_block())


def _number(value: Any) -> int:
    value = unwrapped(value)
    return int(value.handle.data[0]) if isinstance(value, tl.tensor) else int(value)


ARRAYS: dict[str, Callable[..., Any]] = {
    "checked_index": _checked_index,
    "clamped_index": _checked_index,
    "clamped_long_index": _checked_index,
    "wrapped_index": partial(_checked_index, wraps=True),
    "wrapped_long_index": partial(_checked_index, wraps=True),
    "e4m3_to_float": _decoded(torch.float8_e4m3fn),
    "e5m2_to_float": _decoded(torch.float8_e5m2),
    "float_to_e4m3": _encoded(torch.float8_e4m3fn),
    "float_to_e5m2": _encoded(torch.float8_e5m2),
    "wait_for": _wait_for,
    "launch_dependents": lambda: None,
    "wait_for_previous": lambda: None,
    "maximum": elementwise(np.maximum),
    "minimum": elementwise(np.minimum),
    "multiply": elementwise(np.multiply),
    "mul_rn": elementwise(np.multiply),
    "int_pow": elementwise(_int_pow),
    "pow_float": through_torch(torch.pow),
    "gcd": elementwise(lambda x, y: np.abs(np.gcd(x, y))),
    "exp_nonpositive": through_torch(torch.exp),
    "div_by_sum": elementwise(np.divide),
    "reciprocal": elementwise(np.reciprocal),
    "square_root": elementwise(np.sqrt),
    "tanh": through_torch(torch.tanh),
    "sine": through_torch(torch.sin),
    "cosine": through_torch(torch.cos),
    "coarse_exp": through_torch(torch.exp),
    "coarse_sigmoid": through_torch(torch.sigmoid),
    "one_plus_erf": through_torch(lambda x: torch.erfc(-x)),
    "one_plus_tanh": elementwise(lambda x: 2 / (1 + np.exp(-2 * x))),
    "sigmoid": through_torch(torch.sigmoid),
    "column_halves": _column_halves,
    "philox_rounds": _philox_rounds,
    "reduce_sum": along(tree_sum),
    "reduce_sums": _two_sums,
    "reduce_prod": along(np.prod),
    "reduce_max": along(np.max),
    "reduce_min": along(np.min),
    "reduce_any": along(np.any),
    "reduce_all": along(np.all),
    "reduce_welford": _welford,
    "scan_sum": along(np.cumsum, keeps=True),
    "scan_prod": along(np.cumprod, keeps=True),
    "scan_max": along(np.maximum.accumulate, keeps=True),
    "scan_min": along(np.minimum.accumulate, keeps=True),
}
"""What stands for a function of the library in an interpreted kernel."""
