"""``triton.language`` for interpreted kernels: the names that differ on a CPU.

Triton's interpreter has no libdevice, cannot call jitted functions in one process with the
compiler, reduces by a custom combine function element by element, and rounds bfloat16 towards
zero. Here are NumPy and torch versions: ``namespace()`` for the kernel's globals, ``session()``
for the time a kernel runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton.language.semantic import TritonSemantic
from triton.runtime.interpreter import TensorHandle
from triton.runtime.jit import JITFunction

from ..device_lib import (
    cooperative_functions,
    division_functions,
    float8_functions,
    float_functions,
    functions,
    overlap_functions,
    power_functions,
    random_functions,
    rounded_functions,
    softmax_functions,
)
from .rounding_builder import Builder, as_torch

Array = Any  # np.ndarray of any shape and dtype


def namespace(*, plain: bool = False) -> dict[str, Any]:
    """The globals of an interpreted kernel: ``libdevice`` and every function of ``library``.

    Parameters
    ----------
    plain : bool
        The library functions as they are written, which tests want: slower than on arrays.
    """
    return dict(_namespace(plain))


@contextmanager
def session() -> Iterator[None]:
    """Triton's language ready for interpreted kernels; undone at the end. Not for two threads.

    The interpreter patches the builtins of ``tl`` itself. Added here are the jitted functions of
    ``tl``, a builder that casts as hardware does, and silence about nan and overflow.
    """
    with np.errstate(all="ignore"):
        builder, semantic = interpreter.interpreter_builder, interpreter.interpreter_semantic
        jitted = {name: getattr(tl, name) for name in _JITTED}
        interpreter.interpreter_builder = Builder()
        interpreter.interpreter_semantic = TritonSemantic(interpreter.interpreter_builder)
        for name, function in _JITTED.items():
            setattr(tl, name, function)
        try:
            yield
        finally:
            interpreter.interpreter_builder = builder
            interpreter.interpreter_semantic = semantic
            for name, function in jitted.items():
                setattr(tl, name, function)


# --- tensors of the interpreter and arrays ------------------------------------------------------


def to_tensor(data: Array, dtype: tl.dtype, scalar: bool) -> tl.tensor:
    """An array as a tile of the interpreter, or as a scalar, which holds an array of one."""
    data = np.atleast_1d(np.asarray(data))
    type_ = dtype if scalar else tl.block_type(dtype, list(data.shape))
    return tl.tensor(TensorHandle(data, dtype), type_)


def positions(*bounds: Any, **_: Any) -> Iterator[tl.tensor]:
    """The positions of a loop as the compiler has them: scalars of 32 bits where these hold all.

    The interpreter's own are numbers, which have no ``dtype`` and no ``to``.
    """
    found = range(*map(operator.index, bounds))
    wide = any(isinstance(x, tl.tensor) and x.dtype is tl.int64 for x in bounds)
    wide = wide or any(not -(2**31) <= x < 2**31 for x in (found.start, found.stop))
    held, dtype = (np.int64, tl.int64) if wide else (np.int32, tl.int32)
    return (to_tensor(held(position), dtype, True) for position in found)


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
        data, axis = x.handle.data, _unwrapped(axis)
        dtype = _unwrapped(options.get("dtype")) or x.dtype
        like = interpreter._get_np_dtype(dtype)
        extra = {} if keeps else {"keepdims": bool(_unwrapped(keep_dims))}
        if data.dtype != like:
            data = data.astype(like)
        found = np.asarray(function(data, axis=axis, **extra)).astype(like, copy=False)
        return to_tensor(found, dtype, found.ndim == 0)

    return call


def _unwrapped(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


# --- libdevice ------------------------------------------------------------------------------------

_SAME_NAME = (
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc erfinv exp exp2 "
    "expm1 floor hypot lgamma log log10 log1p log2 nextafter pow rsqrt sin sinh sqrt tan "
    "tanh trunc"
)

LIBDEVICE = SimpleNamespace(
    **{name: through_torch(getattr(torch, name)) for name in _SAME_NAME.split()},
    abs=through_torch(torch.abs),
    fmod=elementwise(np.fmod),  # torch's of many elements is nan where the quotient overflows
    nearbyint=through_torch(torch.round),
)


# --- library --------------------------------------------------------------------------------------


def _welford(mean: Any, m2: Any, count: Any, axis: Any) -> tuple[tl.tensor, ...]:
    means, squares, counts = (np.asarray(x.handle.data) for x in (mean, m2, count))
    axis = _unwrapped(axis)
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


class IndexOutside(Exception):
    """An index that its dim does not have, found by an interpreted kernel."""

    def __init__(self, index: int, size: int) -> None:
        super().__init__(f"index {index} is out of range for a dim of {size} elements")


def _checked_index(index: tl.tensor, size: Any, mask: Any, wraps: bool = False) -> tl.tensor:
    """The index, after a look whether the dim has it wherever the mask holds."""
    extent = _number(size)
    data = index.handle.data
    least = -extent if wraps else 0
    wrong = ((data < least) | (data >= extent)) & (
        mask.handle.data if isinstance(mask, tl.tensor) else bool(_unwrapped(mask))
    )
    if np.any(wrong):
        raise IndexOutside(int(np.broadcast_to(data, wrong.shape)[wrong][0]), extent)
    # Where the mask does not hold there may be anything: nothing is read there, nor computed.
    found = np.where(data < 0, data + extent, data) if wraps else data
    return to_tensor(found.astype(data.dtype), index.dtype, not index.type.is_block())


def _number(value: Any) -> int:
    value = _unwrapped(value)
    return int(value.handle.data[0]) if isinstance(value, tl.tensor) else int(value)


_ARRAYS: dict[str, Callable[..., Any]] = {
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


def _zeros(shape: Any, dtype: Any) -> tl.tensor:
    sizes = tuple(_unwrapped(size) for size in shape)
    return to_tensor(np.zeros(sizes, interpreter._get_np_dtype(dtype)), dtype, not sizes)


_JITTED: dict[str, Callable[..., Any]] = {
    "sum": along(tree_sum),
    "max": along(np.max),
    "min": along(np.min),
    "cumsum": along(np.cumsum, keeps=True),
    "cumprod": along(np.cumprod, keeps=True),
    "sigmoid": _ARRAYS["sigmoid"],
    "zeros": _zeros,
    "zeros_like": elementwise(np.zeros_like),
    "cdiv": elementwise(lambda a, b: -(-a // b)),
}
"""The jitted functions of ``tl`` that kernels use: the interpreter patches its builtins alone."""


_LIBRARIES = (
    division_functions,
    random_functions,
    float8_functions,
    float_functions,
    overlap_functions,
    power_functions,
    rounded_functions,
    cooperative_functions,
    softmax_functions,
    functions,
)


@cache
def _namespace(plain: bool) -> dict[str, Any]:
    """Library functions without an array version run as the Python functions they are."""
    names: dict[str, Any] = {"tl": tl, "libdevice": LIBDEVICE, "converts_float8": lambda: False}
    names["is_nvidia"] = lambda: False
    for module in _LIBRARIES:
        for name, member in vars(module).items():
            # With TRITON_INTERPRET set, Triton makes the second kind of all that it decorates.
            if not isinstance(member, JITFunction | interpreter.InterpretedFunction):
                continue
            written: Any = FunctionType(member.fn.__code__, names, name, member.fn.__defaults__)
            written.fn = written  # as tl.reduce wants its combine function
            names[name] = written
            if not plain and name in _ARRAYS:
                names[name] = _ARRAYS[name]
    return names
