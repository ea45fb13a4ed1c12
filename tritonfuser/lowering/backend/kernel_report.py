"""Registers, spills, and widths of loads and stores, read from the code of a compiled kernel.

Works for any GPU on any machine, with the tools that Triton brings.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton.backends.nvidia.compiler import get_ptxas

from ... import options
from ...errors import LoweringError
from ..kernel_source import KernelSource
from .compile import CompiledKernel, Target, compile_kernel


@dataclass(frozen=True)
class KernelReport:
    """One kernel as compiled for one GPU.

    Attributes
    ----------
    name, scheduler : str
        The kernel, and the scheduler that made it.
    source : str
        The generated module.
    asm : dict
        "ptx" and "cubin", or "amdgcn" and "hsaco".
    registers : int
        32-bit registers of a thread.
    max_registers : int
        The limit on them that it was compiled with: for what it would spill with the compiler's
        choice, for one more program at a time, or because its params say so. 0 for the compiler's
        choice.
    spill_bytes : int
        Bytes of stores to and loads from local memory that a thread has in the code for want of
        registers.
    shared_bytes : int
        Shared memory of a program.
    max_load_bytes, max_store_bytes : int
        The widest access of a thread to global memory; 16 is the best of most GPUs.
    """

    name: str
    scheduler: str
    source: str = field(repr=False)
    asm: dict[str, Any] = field(repr=False)
    registers: int
    spill_bytes: int
    shared_bytes: int
    max_load_bytes: int
    max_store_bytes: int
    max_registers: int = 0


def report(
    source: KernelSource, scheduler: str, arch: Target, aligned: tuple[bool, ...]
) -> KernelReport:
    """Compile a kernel for ``arch`` and read its machine code.

    Raises
    ------
    LoweringError
        Triton or its assembler refuses the kernel.
    """
    return report_of(compile_kernel(source, arch, aligned), scheduler)


def report_of(kernel: CompiledKernel, scheduler: str) -> KernelReport:
    """The report of a kernel that is compiled already."""
    asm = kernel.asm
    nvidia = "ptx" in asm
    registers, spills = _ptxas_facts(kernel) if nvidia else amd_facts(asm["amdgcn"])
    loads, stores = ptx_widths(asm["ptx"]) if nvidia else amd_widths(asm["amdgcn"])
    return KernelReport(
        name=kernel.source.name,
        scheduler=scheduler,
        source=kernel.source.text,
        asm=asm,
        registers=registers,
        spill_bytes=spills,
        shared_bytes=kernel.shared_bytes,
        max_load_bytes=loads,
        max_store_bytes=stores,
        max_registers=kernel.source.max_registers,
    )


# --- NVIDIA --------------------------------------------------------------------------------------

_PTX_ACCESS = re.compile(r"\b(ld|st)(?:\.[\w:]+)*?\.global((?:[.:]+\w+)*)")
_PTX_ASYNC_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global[^;]*?\],\s*(0x[0-9a-f]+|\d+)")


def ptx_widths(ptx: str) -> tuple[int, int]:
    """Bytes of the widest load and the widest store: ``ld.global.v4.b32`` is 16."""
    widest = {"ld": 0, "st": 0}
    for kind, modifiers in _PTX_ACCESS.findall(ptx):
        vector = re.search(r"\.v(\d)\b", modifiers)
        bits = re.search(r"\.[bsuf](\d+)$", modifiers)
        if bits:
            count = int(vector[1]) if vector else 1
            widest[kind] = max(widest[kind], count * int(bits[1]) // 8)
    for size in _PTX_ASYNC_COPY.findall(ptx):
        widest["ld"] = max(widest["ld"], int(size, 0))
    return widest["ld"], widest["st"]


def _ptxas_facts(kernel: CompiledKernel) -> tuple[int, int]:
    """Registers and spilled bytes, as the assembler tells when it is asked again."""
    ptx = kernel.asm["ptx"]
    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    if target is None:
        raise LoweringError(f"kernel {kernel.source.name}: its PTX names no target")
    contraction = [] if options.current().fma else ["--fmad=false"]
    with tempfile.TemporaryDirectory(prefix="tritonfuser-") as folder:
        text = Path(folder, "kernel.ptx")
        text.write_text(ptx)
        command = [
            str(get_ptxas(kernel.target.arch).path),
            "-v",
            f"--gpu-name={target[1]}",
            *contraction,
        ]
        done = subprocess.run(
            [*command, str(text), "-o", str(Path(folder, "kernel.cubin"))],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise LoweringError(f"kernel {kernel.source.name}: ptxas refuses it:\n{done.stderr}")
    return ptxas_facts(done.stderr)


def ptxas_facts(log: str) -> tuple[int, int]:
    """Registers and spilled bytes of what ``ptxas -v`` prints."""
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", log)
    return max(registers, default=0), sum(map(int, spills))


# --- AMD -----------------------------------------------------------------------------------------

_AMD_ACCESS = re.compile(r"^\s*(?:global|buffer|flat)_(load|store)_(\w+)", re.MULTILINE)
_AMD_BYTES = (
    (re.compile(r"(?:lds_)?dwordx(\d)$"), 4),
    (re.compile(r"(?:lds_)?dword$"), 4),
    (re.compile(r"(?:lds_)?b(\d+)$"), 0),
    (re.compile(r".*(?:short|16)"), 2),
    (re.compile(r".*(?:byte|8)"), 1),
)


def amd_widths(amdgcn: str) -> tuple[int, int]:
    """Bytes of the widest load and the widest store: ``global_load_dwordx4`` is 16."""
    widest = {"load": 0, "store": 0}
    for kind, suffix in _AMD_ACCESS.findall(amdgcn):
        widest[kind] = max(widest[kind], _amd_bytes(suffix))
    return widest["load"], widest["store"]


def _amd_bytes(suffix: str) -> int:
    for pattern, unit in _AMD_BYTES:
        if found := pattern.match(suffix):
            if unit == 0:
                return int(found[1]) // 8
            return unit * (int(found[1]) if found.groups() else 1)
    return 0


def amd_facts(amdgcn: str) -> tuple[int, int]:
    """Registers and spilled bytes of the metadata at the end of the assembly."""
    return (
        _amd_number(amdgcn, "vgpr_count"),
        4 * _amd_number(amdgcn, "vgpr_spill_count"),
    )


def _amd_number(amdgcn: str, name: str) -> int:
    found = re.search(rf"^\s*\.{name}:\s*(\d+)", amdgcn, re.MULTILINE)
    return int(found[1]) if found else 0
