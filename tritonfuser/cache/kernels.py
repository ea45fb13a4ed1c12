"""Compiled kernels of the process: one for each text, target and alignment, whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import options
from ..lowering.build import CompiledKernel, Prepared, compile_kernel, interpret_kernel
from ..lowering.kernel import KernelSource
from .lru import LRU

_COMPILED: LRU[Any, CompiledKernel] = LRU(4096)
_INTERPRETED: LRU[Any, Callable[..., None]] = LRU(4096)


def _key(source: KernelSource) -> tuple[Any, ...]:
    return (
        source.text,
        source.args,
        source.constants,
        source.grid,
        source.num_warps,
        source.num_stages,
        options.codegen_options(),
    )


def interpreted(source: KernelSource) -> Callable[..., None]:
    """The kernel as a function on CPU tensors."""
    return _INTERPRETED.get_or_make(_key(source), lambda: interpret_kernel(source))


def compiled(source: KernelSource, arch: str, aligned: tuple[bool, ...]) -> CompiledKernel:
    """The kernel's binary for an architecture."""
    key = (*_key(source), arch, aligned)
    return _COMPILED.get_or_make(key, lambda: compile_kernel(source, arch, aligned))


def loaded(
    source: KernelSource, arch: str, aligned: tuple[bool, ...], device: torch.device
) -> Prepared:
    """The kernel on a device of this machine, ready to launch."""
    index = device.index if device.index is not None else torch.cuda.current_device()
    return compiled(source, arch, aligned).launcher(index).prepare()
