"""Builds Triton's C launcher of a kernel, while the kernel itself is still being compiled.

It depends on the kinds of a kernel's arguments alone, and takes as long as the kernel itself.
"""

from __future__ import annotations

from triton.compiler import ASTSource
from triton.runtime import driver

from ... import options
from ..kernel_source import KernelSource
from .module_loader import jit_function
from .triton_arguments import signature_of


class _AnyMetadata:
    """A stand-in for a compiled kernel's metadata, on which the C source does not depend."""

    tensordesc_meta = None

    def __getattr__(self, name: str) -> int:
        return 0


def kinds(source: KernelSource) -> tuple[str, ...]:
    """What the C source of a launcher depends on: pointer or scalar type of each argument."""
    given = [signature_of(source, arg) for arg in source.passed]
    pointers = ["*" if kind.startswith("*") else kind for kind in given]
    return (*pointers, *("constexpr" for _ in source.constants))


def build_launcher(source: KernelSource) -> bool:
    """Have Triton build the launcher of a kernel, which loading the kernel then finds on disk.

    Returns
    -------
    bool
        Whether it is there. Where it is not, loading the kernel will fail as well, and say why.
    """
    names = [arg.name for arg in source.passed] + [name for name, _ in source.constants]
    signature = dict(zip(names, kinds(source), strict=True))
    try:
        made = ASTSource(jit_function(source), signature, dict(source.constants))
        driver.active.launcher_cls(made, _AnyMetadata())
    except Exception as error:
        options.log("compile", f"no launcher ahead of {source.name}: {error}")
        return False
    return True
