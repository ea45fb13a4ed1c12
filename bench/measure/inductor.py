"""torch.compile for the suite: each function compiled on its own, and tuned on a quiet GPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from types import FunctionType
from typing import Any

import torch

BENCHMARKING = "torch._inductor.runtime.benchmarking"
"""Its import takes seconds, so it is left to processes that compile with torch."""


def compiled(function: Callable[..., Any], mode: str | None) -> Callable[..., Any]:
    """``torch.compile`` of a function for fixed sizes, as one graph.

    The code compiled is a copy of its own: what was compiled before for other sizes neither counts
    towards the limit of recompilations nor is looked through in a call.
    """
    return torch.compile(_copied(function), dynamic=False, fullgraph=True, mode=mode)


def _copied(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*inputs: Any) -> Any:
        return function(*inputs)

    code = call.__code__.replace(co_filename=__file__)
    return FunctionType(code, call.__globals__, call.__name__, None, call.__closure__)


def tune_alone(alone: AbstractContextManager[Any]) -> None:
    """Hold ``alone`` in this process whenever the compiler times a kernel on the GPU.

    ``alone`` is entered again by who holds it already. Versions of torch differ in what they time
    by: all of the benchmarker's methods are wrapped where there is no hook for it.
    """
    benchmarking = importlib.import_module(BENCHMARKING)
    hook = getattr(benchmarking, "set_gpu_benchmark_lock_context", None)
    if hook is not None:
        hook(lambda: alone)
        return
    benchmarker = getattr(benchmarking, "benchmarker", None)
    for name in dir(type(benchmarker)):
        # What this function has set is the object's own; the rest is its class's.
        if name.startswith("benchmark") and name not in vars(benchmarker):
            setattr(benchmarker, name, _holding(alone, getattr(benchmarker, name)))


def _holding(alone: AbstractContextManager[Any], method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with alone:
            return method(*args, **kwargs)

    return call
