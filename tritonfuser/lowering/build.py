"""The interface of ``backend`` and ``interpreter`` to the rooms above: kernel text -> launch.

``load_module`` and ``interpret_kernel`` run it here, ``compile_kernel`` makes a binary for a GPU,
``CompiledKernel.launcher`` puts that on a device, ``report`` tells what the binary is like.
"""

from __future__ import annotations

from .backend.compile import (
    CompiledKernel,
    Target,
    compile_kernel,
    hash_triton,
    hash_triton_ahead,
    target_of,
)
from .backend.kernel_report import KernelReport, report, report_of
from .backend.launch import Launcher, PreparedLaunch
from .backend.module_loader import load_module
from .interpreter.interpret import interpret_kernel

__all__ = [
    "CompiledKernel",
    "KernelReport",
    "Launcher",
    "PreparedLaunch",
    "Target",
    "compile_kernel",
    "hash_triton",
    "hash_triton_ahead",
    "interpret_kernel",
    "load_module",
    "report",
    "report_of",
    "target_of",
]
