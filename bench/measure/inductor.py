"""torch.compile for the benchmarks: separate compilations, autotuned on an otherwise idle GPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from types import FunctionType
from typing import Any

import torch

BENCHMARKING = "torch._inductor.runtime.benchmarking"
"""Imported only by processes that compile with torch: the import takes seconds."""


def compiled(function: Callable[..., Any], mode: str | None) -> Callable[..., Any]:
    """Compile a function with ``torch.compile`` for fixed sizes, as one graph.

    A copy of the function's code is compiled, so that compilations for other sizes neither count
    towards dynamo's recompile limit nor add guards to a call.
    """
    return torch.compile(_copied(function), dynamic=False, fullgraph=True, mode=mode)


def _copied(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*inputs: Any) -> Any:
        return function(*inputs)

    code = call.__code__.replace(co_filename=__file__)
    return FunctionType(code, call.__globals__, call.__name__, None, call.__closure__)


def tune_exclusively(gpu_lock: AbstractContextManager[Any]) -> None:
    """Hold a lock in this process whenever inductor times a kernel on the GPU.

    The lock must be reentrant. Versions of torch without a hook for this get every method of the
    benchmarker wrapped.
    """
    benchmarking = importlib.import_module(BENCHMARKING)
    hook = getattr(benchmarking, "set_gpu_benchmark_lock_context", None)
    if hook is not None:
        hook(lambda: gpu_lock)
        return
    benchmarker = getattr(benchmarking, "benchmarker", None)
    for name in dir(type(benchmarker)):
        # Attributes of the object itself are methods that this function wrapped before.
        if name.startswith("benchmark") and name not in vars(benchmarker):
            setattr(benchmarker, name, _holding(gpu_lock, getattr(benchmarker, name)))


def _holding(
    gpu_lock: AbstractContextManager[Any], method: Callable[..., Any]
) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with gpu_lock:
            return method(*args, **kwargs)

    return call
