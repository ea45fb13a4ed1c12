"""What Triton is told of a kernel beside its text: types, alignments and options."""

from __future__ import annotations

from typing import Any

from ... import options
from ...dtypes import Category
from ...errors import LoweringError
from ..kernel_source import Argument, KernelSource


def signature_of(source: KernelSource, arg: Argument) -> str:
    """An argument's type as Triton writes it: ``*bf16``, ``i64``."""
    info = arg.dtype.info
    if info.torch is None or (info.category is Category.COMPLEX and not arg.is_tensor):
        raise LoweringError(f"kernel {source.name}: no argument {arg.name} of {arg.dtype}")
    return f"*{info.signature}" if arg.is_tensor else info.signature


def signature(source: KernelSource) -> dict[str, str]:
    """The types of all parameters, by name."""
    types = {arg.name: signature_of(source, arg) for arg in source.passed}
    return {**types, **{name: "constexpr" for name, _ in source.constants}}


def attributes(
    source: KernelSource, aligned: tuple[bool, ...]
) -> dict[tuple[int], list[list[Any]]]:
    """What is known of arguments, by place: those that are multiples of 16."""
    flags = [
        arg.is_tensor and flag and arg.name not in source.unaligned
        for arg, flag in zip(source.args, aligned, strict=True)
    ]
    flags += [size.multiple % 16 == 0 for size in source.sizes]
    flags += [False for _ in source.inverses]
    flags += [True for memory in (source.workspace, source.arrivals) if memory is not None]
    return {(place,): [["tt.divisibility", 16]] for place, flag in enumerate(flags) if flag}


def compile_options(source: KernelSource) -> dict[str, Any]:
    """The options of ``triton.compile``."""
    return {
        "num_warps": source.num_warps,
        "num_stages": source.num_stages,
        "enable_fp_fusion": options.current().fma,
        **({"launch_pdl": True} if source.follows else {}),
        **({"launch_cooperative_grid": True} if source.workspace else {}),
        **({"maxnreg": source.max_registers} if source.max_registers else {}),
        # Integers wrap around as in torch: no assertions about that.
        **({"debug": True, "sanitize_overflow": False} if source.asserts else {}),
        # As torch's own kernels: log of 1e-40 is -92, not minus infinity. Costs no instructions.
        "enable_reflect_ftz": False,
    }
