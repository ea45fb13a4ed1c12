"""A kernel run on CPU tensors by Triton's interpreter: in this process, with no environment set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FunctionType
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

from ...dtypes import EIGHT_BIT_FLOATS, Category, DataType
from ...errors import IndexRangeError, InputError, LoweringError
from ..backend.module_loader import error_line, failure, file_name, plain_function, user_line
from ..backend.triton_lock import LANGUAGE
from ..kernel_source import Argument, KernelSource
from . import language
from .language_patch import Patch
from .library_arrays import IndexOutside

_Converter = Callable[[Any], Any]


def interpret_kernel(source: KernelSource) -> Callable[..., None]:
    """The kernel as a function of its run-time arguments, in order: CPU tensors and numbers.

    Constants and grid are those of ``source``; one that varies is given to each call. Calls from
    several threads run one after another.

    Raises
    ------
    LoweringError
        The text cannot be loaded, or a call of the kernel fails.
    """
    function = StandIn(plain_function(source))
    converters = tuple(_converter(source, arg) for arg in source.passed)
    constants = dict(source.constants)

    def run(*args: Any, grid: tuple[int, int, int] = source.grid) -> None:
        try:
            with torch.device("cpu"), ready(function):
                given = [convert(arg) for convert, arg in zip(converters, args, strict=True)]
                # Programs run one after another: what they wait for is there the second time.
                for _ in range(2 if source.workspace else 1):
                    function[grid](*given, **constants)
        except interpreter.InterpreterError as error:
            cause = error.__cause__ or error
            line = error_line(cause, file_name(source))
            if isinstance(cause, IndexOutside):
                raise _index_error(source, line, cause) from None
            what = f"in Triton's interpreter, {type(cause).__name__}: {cause}"
            raise failure(source, what, line) from cause

    return run


class StandIn(interpreter.InterpretedFunction):  # type: ignore[misc]
    """A kernel, by the function that was decorated, as Triton interprets it with our functions."""

    run = interpreter.InterpretedFunction.run
    """Triton's, whatever ``interpret_exported`` puts in its place."""

    def __init__(self, kernel: Callable[..., None]) -> None:
        function = _overlaid(kernel)
        function.__globals__["range"] = language.positions
        super().__init__(function)
        # An attribute of its own hides the class's, which keeps every kernel for ever.
        self.rewritten_fn: dict[Any, Any] = {}


@contextmanager
def ready(function: StandIn) -> Iterator[None]:
    """Triton's language as a kernel needs it while it runs; for one at a time."""
    with LANGUAGE.exclusive(), language.session(), _patch(function.fn):
        yield


def _index_error(source: KernelSource, line: int | None, found: IndexOutside) -> IndexRangeError:
    """The error about an index, by the op and the line that the kernel's line was made for."""
    op = dict(source.index_ops).get(line or 0, "indexing")
    return IndexRangeError(
        f"{op}: {found}",
        loc=user_line(source, line),
        hint="What the run was to write is partly written.",
    )


# --- arguments -----------------------------------------------------------------------------------


def _converter(source: KernelSource, arg: Argument) -> _Converter:
    """What turns an argument into the interpreter's value of its declared type.

    Left to itself the interpreter copies each tensor's storage, and makes every int an int32.
    """
    info = arg.dtype.info
    if info.torch is None or (info.category is Category.COMPLEX and not arg.is_tensor):
        raise LoweringError(f"kernel {source.name}: no argument {arg.name} of {arg.dtype}")
    element = getattr(tl, info.triton)
    return _pointer(arg, tl.pointer_type(element)) if arg.is_tensor else _scalar(arg.dtype, element)


def _value(data: Any, type_: Any) -> Any:
    return tl.tensor(interpreter.TensorHandle(data, type_), type_)


def _pointer(arg: Argument, type_: Any) -> _Converter:
    dtype = arg.dtype.info.torch

    def convert(tensor: torch.Tensor) -> Any:
        if tensor.dtype is not dtype or tensor.device.type != "cpu":
            raise InputError(
                f"kernel argument {arg.name}: expected a CPU tensor of {dtype}, "
                f"got {tensor.dtype} on {tensor.device}"
            )
        return _value(np.array([tensor.data_ptr()], dtype=np.uint64), type_)

    return convert


def _scalar(dtype: DataType, type_: Any) -> _Converter:
    dtype = DataType.Int if dtype is DataType.Index else dtype

    def convert(value: bool | int | float) -> Any:
        # By way of torch, which rounds to every type; numpy has no bfloat16, so its bits.
        bits = torch.tensor([value], dtype=dtype.info.torch)
        if dtype in _AS_BITS:
            bits = bits.view(_AS_BITS[dtype])
        return _value(bits.numpy(), type_)

    return convert


_AS_BITS = {
    DataType.BFloat16: torch.uint16,
    DataType.Float8_e8m0fnu: torch.uint8,
}


def typed_number(value: bool | int | float, type_: tl.dtype) -> Any:
    """A number as the interpreter's value of a parameter's type, such as ``tl.float64``."""
    held = (t for t in DataType if t.info.torch is not None and t not in EIGHT_BIT_FLOATS)
    dtype = next(t for t in held if getattr(tl, t.info.triton) == type_)
    return _scalar(dtype, type_)(value)


# --- functions -----------------------------------------------------------------------------------


def _overlaid(function: Any) -> FunctionType:
    """A copy of a function that finds the interpreter's stand-ins, and its own, in its globals.

    The original keeps its globals, which the compiler reads. ``tl.core`` must be among them for
    the interpreter to patch it: functions of Triton's library go through it.
    """
    names = {**function.__globals__, "tl": tl, "__core__": tl.core, **language.namespace()}
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copy.__annotations__ = dict(function.__annotations__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _call_plainly(self: Any, *args: Any, **kwargs: Any) -> Any:
    """``JITFunction.__call__`` while a kernel is interpreted: run the function it was made of.

    Without TRITON_INTERPRET the jitted functions, Triton's own (``tl.sum``) among them, are made
    for the compiler alone, and refuse to be called.
    """
    plain = self.__dict__.get("_tritonfuser_plain")
    if plain is None:
        plain = interpreter.FunctionRewriter(_overlaid(self.fn)).rewrite_ast()
        self.__dict__["_tritonfuser_plain"] = plain
    return plain(*args, **kwargs)


_recorded: list[Patch] = []


def _patch(function: Any) -> AbstractContextManager[None]:
    """The interpreter's changes; recorded at the first run, inside the first session."""
    if not _recorded:
        _recorded.append(Patch(function))
    return _recorded[0].in_place(_call_plainly)
