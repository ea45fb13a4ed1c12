"""``triton.language`` for interpreted kernels: the names that differ on a CPU.

Triton's interpreter has no libdevice, cannot call jitted functions in one process with the
compiler, and rounds bfloat16 towards zero. Here are NumPy and torch versions: ``namespace()`` for
the kernel's globals, ``session()`` for the time a kernel runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton.language.semantic import TritonSemantic
from triton.runtime.jit import JITFunction

from ..device_lib import (
    cooperative_functions,
    division_functions,
    extra_float_functions,
    float8_functions,
    float_functions,
    functions,
    index_functions,
    integer_functions,
    number_power_functions,
    overlap_functions,
    philox_functions,
    power_functions,
    random_functions,
    reduction_functions,
    rounded_functions,
    softmax_functions,
    tile_functions,
)
from .arrays import along, elementwise, through_torch, to_tensor, tree_sum, unwrapped
from .library_arrays import ARRAYS
from .rounding_builder import Builder


def namespace(*, plain: bool = False) -> dict[str, Any]:
    """The globals of an interpreted kernel: ``libdevice`` and every function of the device library.

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


def positions(*bounds: Any, **_: Any) -> Iterator[tl.tensor]:
    """The positions of a loop as the compiler has them: scalars of 32 bits where these hold all.

    The interpreter's own are numbers, which have no ``dtype`` and no ``to``.
    """
    found = range(*map(operator.index, bounds))
    wide = any(isinstance(x, tl.tensor) and x.dtype is tl.int64 for x in bounds)
    wide = wide or any(not -(2**31) <= x < 2**31 for x in (found.start, found.stop))
    held, dtype = (np.int64, tl.int64) if wide else (np.int32, tl.int32)
    return (to_tensor(held(position), dtype, True) for position in found)


# --- libdevice ------------------------------------------------------------------------------------

_SAME_NAME = (
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos erf erfc erfinv exp exp2 "
    "expm1 floor hypot lgamma log log10 log1p log2 nextafter pow rsqrt sin sqrt tan "
    "tanh trunc"
)


def _in_double(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """A function of torch that overflows too early in float32 where it takes many elements."""
    return through_torch(lambda x: function(x.double()).to(x.dtype))


LIBDEVICE = SimpleNamespace(
    **{name: through_torch(getattr(torch, name)) for name in _SAME_NAME.split()},
    abs=through_torch(torch.abs),
    cosh=_in_double(torch.cosh),
    sinh=_in_double(torch.sinh),
    erfcx=through_torch(torch.special.erfcx),
    fmod=elementwise(np.fmod),  # torch's of many elements is nan where the quotient overflows
    nearbyint=through_torch(torch.round),
)


# --- functions of tl and of the device library --------------------------------------------------


def _zeros(shape: Any, dtype: Any) -> tl.tensor:
    sizes = tuple(unwrapped(size) for size in shape)
    return to_tensor(np.zeros(sizes, interpreter._get_np_dtype(dtype)), dtype, not sizes)


_JITTED: dict[str, Callable[..., Any]] = {
    "sum": along(tree_sum),
    "max": along(np.max),
    "min": along(np.min),
    "cumsum": along(np.cumsum, keeps=True),
    "cumprod": along(np.cumprod, keeps=True),
    "sigmoid": ARRAYS["sigmoid"],
    "zeros": _zeros,
    "zeros_like": elementwise(np.zeros_like),
    "cdiv": elementwise(lambda a, b: -(-a // b)),
}
"""The jitted functions of ``tl`` that kernels use: the interpreter patches its builtins alone."""


_LIBRARIES = (
    division_functions,
    philox_functions,
    random_functions,
    float8_functions,
    float_functions,
    overlap_functions,
    power_functions,
    rounded_functions,
    cooperative_functions,
    softmax_functions,
    extra_float_functions,
    index_functions,
    integer_functions,
    number_power_functions,
    reduction_functions,
    tile_functions,
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
            if not plain and name in ARRAYS:
                names[name] = ARRAYS[name]
    return names
