"""The compiled kernels of the process: one for each text, target and alignment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import torch

from ..errors import TritonFuserError, calling_line
from ..ir import Fusion
from ..lowering.backend.launcher_build import build_launcher, kinds
from ..lowering.build import CompiledKernel, PreparedLaunch, compile_kernel, interpret_kernel
from ..lowering.kernel_source import KernelSource
from ..lowering.lowered import Lowered
from .keys.kernel_key import kernel_key
from .keys.signature import is_aligned
from .lru import LRU

Wanted = tuple[KernelSource, tuple[bool, ...]]
"""A kernel, and for each of its arguments whether it is aligned to 16 bytes."""

_COMPILED: LRU[Any, CompiledKernel] = LRU(4096)
_INTERPRETED: LRU[Any, Callable[..., None]] = LRU(4096)
_LAUNCHERS: LRU[tuple[str, ...], bool] = LRU(4096)
_AHEAD: LRU[Any, float] = LRU(4096)
"""Seconds of kernels that were compiled for a plan before it is made."""


def wanted_kernels(fusion: Fusion, inputs: Sequence[Any], lowered: Lowered) -> list[Wanted]:
    """The kernels of a lowered fusion, with the alignment of their arguments."""
    pairs = zip(fusion.inputs, inputs, strict=True)
    aligned = {value.name: is_aligned(given) for value, given in pairs if value.is_tensor}
    for part in lowered.parts:
        aligned[part.value.name] = aligned.get(part.source.name, False)
    return [
        (source, tuple(aligned.get(arg.value.name, arg.is_tensor) for arg in source.args))
        for source in lowered.sources
        if source is not None
    ]


def interpreted(source: KernelSource) -> Callable[..., None]:
    """The kernel as a function on CPU tensors."""
    return _INTERPRETED.get_or_make(kernel_key(source), lambda: interpret_kernel(source))


def compiled(source: KernelSource, arch: str, aligned: tuple[bool, ...]) -> CompiledKernel:
    """The kernel's binary for an architecture."""
    key = (*kernel_key(source), arch, aligned)
    return _COMPILED.get_or_make(key, lambda: compile_kernel(source, arch, aligned))


def launcher_built(source: KernelSource) -> None:
    """Have the launcher of a kernel on disk, for this process and others; built once."""
    _LAUNCHERS.get_or_make(kinds(source), lambda: build_launcher(source))


class LoadedKernel(NamedTuple):
    """A kernel ready to launch, and the seconds it took to compile; 0.0 where it was cached."""

    kernel: PreparedLaunch
    seconds: float = 0.0


def loaded(wanted: Sequence[Wanted], arch: str, device: torch.device) -> list[LoadedKernel]:
    """Kernels on a device of this machine, compiled in parallel.

    Threads suffice: Triton's passes and ptxas release the GIL. They end before the return.

    Raises
    ------
    LoweringError
        Of the first kernel that fails, in the order of ``wanted``.
    """
    index = _index(device)
    took = compile_together(wanted, arch, index)
    return [
        LoadedKernel(
            compiled(source, arch, flags).launcher(index).prepare(),
            seconds or _taken_ahead((*kernel_key(source), arch, flags)),
        )
        for (source, flags), seconds in zip(wanted, took, strict=True)
    ]


def compiled_ahead(
    wanted: Sequence[Wanted], arch: str, device: torch.device | None = None
) -> list[CompiledKernel]:
    """Kernels before their plan is made, compiled in parallel; errors as ``loaded``.

    Where a device of this machine is given, they are loaded on it too.
    """
    took = compile_together(wanted, arch, None if device is None else _index(device))
    for (source, flags), seconds in zip(wanted, took, strict=True):
        if seconds and device is not None:
            _AHEAD.get_or_make((*kernel_key(source), arch, flags), partial(float, seconds))
    return [compiled(source, arch, flags) for source, flags in wanted]


def _taken_ahead(key: Any) -> float:
    """The seconds that a kernel took ahead, told once."""
    seconds = _AHEAD.peek(key) or 0.0
    _AHEAD.drop(key)
    return seconds


def _index(device: torch.device) -> int:
    return device.index if device.index is not None else torch.cuda.current_device()


def compile_together(
    wanted: Sequence[Wanted], arch: str, device_index: int | None = None
) -> list[float]:
    """Compile kernels for an architecture, and load them where a device is named.

    Returns
    -------
    list of float
        The seconds that each took.
    """
    keys = [(*kernel_key(source), arch, flags) for source, flags in wanted]
    missing = {key: one for key, one in zip(keys, wanted, strict=True) if key not in _COMPILED}
    took: dict[Any, float] = {}
    if missing:
        with ThreadPoolExecutor(usable_threads(), "tritonfuser compile") as pool:
            took = _all_done(_submitted(pool, missing, arch, device_index))
    return [took.pop(key, 0.0) for key in keys]


def _submitted(
    pool: ThreadPoolExecutor, missing: dict[Any, Wanted], arch: str, device_index: int | None
) -> dict[Any, Future[float]]:
    if device_index is not None:
        for source in {kinds(source): source for source, _ in missing.values()}.values():
            pool.submit(launcher_built, source)

    def make(source: KernelSource, flags: tuple[bool, ...]) -> float:
        started = time.perf_counter()
        kernel = compiled(source, arch, flags)
        if device_index is not None:
            launcher_built(source)
            kernel.launcher(device_index)
        return time.perf_counter() - started

    return {key: pool.submit(make, *one) for key, one in missing.items()}


def _all_done(futures: dict[Any, Future[float]]) -> dict[Any, float]:
    """Wait for all; raise the error of the first that failed.

    A thread of ours has no line of the user's program, so the error gets that of the call here.
    """
    errors = [future.exception() for future in futures.values()]
    for error in errors:
        if isinstance(error, TritonFuserError):
            raise error.located(calling_line()) from error.__cause__
        if error is not None:
            raise error
    return {key: future.result() for key, future in futures.items()}


def usable_threads() -> int:
    """One for each usable core, at least two: a thread may wait for ptxas."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    return max(2, len(usable) if usable else os.cpu_count() or 1)
