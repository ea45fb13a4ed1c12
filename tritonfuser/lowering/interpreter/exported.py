"""Kernels launched by their own text under ``TRITON_INTERPRET=1``, as ``fd.run`` interprets them.

Triton's own interpreter has no libdevice, none of our functions, and gets bfloat16 wrong. A text
that needs them imports tritonfuser or a function of it, and is run here.
"""

from __future__ import annotations

import sys
from typing import Any

import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from ..device_lib import functions
from ..kernel_source import WORKSPACE
from .interpret import StandIn, ready, typed_number

_run_alone = InterpretedFunction.run


def interpret_exported() -> None:
    """Run kernels that import this package here where Triton interprets, and no others."""
    InterpretedFunction.run = _run


def _run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    """``InterpretedFunction.run``."""
    if warmup or not _imports_package(self.fn):
        return _run_alone(self, *args, grid=grid, warmup=warmup, **kwargs)
    function = self.__dict__.get("_tritonfuser_stand_in")
    if function is None:
        function = self.__dict__["_tritonfuser_stand_in"] = StandIn(self.fn)
    types = self.fn.__annotations__
    given = [_typed(arg, types.get(name)) for name, arg in zip(self.arg_names, args, strict=False)]
    with ready(function):
        # Programs run one after another: what they wait for is there the second time.
        for _ in range(2 if WORKSPACE in self.arg_names else 1):
            function.run(*given, grid=grid, warmup=False, **kwargs)
    return None


def _imports_package(function: Any) -> bool:
    """Whether a kernel's module imports this package, or what it uses from the library.

    Also what the functions use that it calls, as a kernel does whose programs are divided among
    several segments.
    """
    library, names = vars(functions), function.__globals__
    package = sys.modules[__name__.partition(".")[0]]
    if names.get(package.__name__) is package:
        return True
    for name in function.__code__.co_names:
        found = names.get(name)
        if name in ("tl", "triton"):
            continue
        if name in library and found is library[name]:
            return True
        if isinstance(found, InterpretedFunction) and _imports_package(found.fn):
            return True
    return False


def _typed(arg: Any, type_: Any) -> Any:
    """A number as its parameter's type says; Triton makes a small one an int32, and no float."""
    is_number = isinstance(arg, bool | int | float)
    return typed_number(arg, type_) if is_number and isinstance(type_, tl.dtype) else arg
