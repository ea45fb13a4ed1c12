"""A kernel compiled by Triton for a GPU, which need not be in this machine."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Union

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.errors import CompilationError
from triton.runtime import cache as triton_cache

from ... import options
from ...device import AMD_WAVEFRONT_SIZE, NVIDIA_WARP_SIZE
from ...errors import LoweringError, OptionError, UnsupportedDeviceError
from ...forks import Lock
from ...lazy import cached_property
from ..kernel_source import KernelSource
from .launch import Launcher, load
from .module_loader import failure, jit_function
from .parser_races import causes, retry_parser_races
from .register_limits import limit_against_spills, limit_for_one_more, most_spilled
from .spills import registers_of, spilled_bytes
from .triton_arguments import attributes, compile_options, signature
from .triton_cache import directory_error, renew_if_broken
from .triton_lock import LANGUAGE

Target = Union[str, GPUTarget]

_WHOLE = {"cuda": ("ptx", "cubin"), "hip": ("amdgcn", "hsaco")}
"""The assembly and the binary of a compiled kernel, by Triton's backend."""


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """The binary of a kernel for one kind of GPU.

    Attributes
    ----------
    source : KernelSource
        What was compiled: with another limit on its registers where it spilled.
    target : GPUTarget
        What for.
    aligned : tuple of bool
        For each argument of ``source.args``: whether it is a pointer to a multiple of 16 bytes.
    binary : triton.compiler.CompiledKernel
        Triton's own object; not loaded on a device.
    """

    source: KernelSource
    target: GPUTarget
    aligned: tuple[bool, ...]
    binary: Any
    _launchers: dict[int, Launcher] = field(default_factory=dict, repr=False)

    def launcher(self, device_index: int) -> Launcher:
        """The kernel loaded on a device of this machine; loaded once.

        Raises
        ------
        LoweringError
            It asks for more shared memory or threads than the device has.
        """
        found = self._launchers.get(device_index)
        if found is None:
            made = load(self.source, self.binary, device_index)
            found = self._launchers.setdefault(device_index, made)
        return found

    @property
    def asm(self) -> dict[str, Any]:
        """Text and binary by kind: "ptx" and "cubin", or "amdgcn" and "hsaco"."""
        return {kind: self.binary.asm[kind] for kind in _KINDS if kind in self.binary.asm}

    @cached_property
    def registers(self) -> int:
        """Registers of a thread. 0 where that is not known."""
        return registers_of(self.asm["cubin"]) if "cubin" in self.asm else 0

    @cached_property
    def spilled_bytes(self) -> int:
        """Bytes that a thread keeps in memory, since registers do not hold them. 0 where that is
        not known."""
        return spilled_bytes(self.asm["ptx"], self.asm["cubin"]) if "cubin" in self.asm else 0

    @property
    def spilled(self) -> bool:
        """Whether a thread keeps in memory what registers do not hold."""
        return self.spilled_bytes > 0

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a program."""
        return int(self.binary.metadata.shared)


_KINDS = ("ptx", "cubin", "amdgcn", "hsaco")


def target_of(arch: Target) -> GPUTarget:
    """``"sm_90"`` or ``"gfx942"`` as Triton's target.

    Raises
    ------
    UnsupportedDeviceError
        ``arch`` names no GPU.
    """
    if isinstance(arch, GPUTarget):
        return arch
    if isinstance(arch, str):
        if nvidia := re.fullmatch(r"sm_(\d+)", arch):
            return GPUTarget("cuda", int(nvidia[1]), NVIDIA_WARP_SIZE)
        if re.fullmatch(r"gfx[0-9a-f]+", arch):
            # CDNA and older GPUs have wavefronts of 64 threads, RDNA (gfx10 and up) of 32.
            return GPUTarget("hip", arch, AMD_WAVEFRONT_SIZE if arch.startswith("gfx9") else 32)
    raise UnsupportedDeviceError(
        f"{arch!r} is no GPU architecture", hint="For example: sm_80, sm_90, sm_100, gfx942."
    )


def compile_kernel(
    source: KernelSource, target: Target, aligned: tuple[bool, ...]
) -> CompiledKernel:
    """Compile a kernel for ``target``; several threads may do so at once.

    The assembler may choose fewer registers than a kernel wants, so that more programs have room
    than the grid has, and spill. Then the kernel is compiled once more with all that there is room
    for, and taken so where it does not spill. With a limit it begins as many loads as that holds,
    and may spill what it computes meanwhile: then the kernel is taken without, unless all of its
    programs have to run at a time.

    It may also choose so many that fewer programs run at a time than expected. Then the kernel is
    compiled once more with as many as leave room for one more program, and taken so where it spills
    little for that or nothing.

    Parameters
    ----------
    aligned : tuple of bool
        One for each argument of ``source.args``: whether the pointer is a multiple of 16, which
        lets Triton load 16 bytes at a time. Of no meaning for scalars.

    Raises
    ------
    LoweringError
        Triton refuses the kernel; with the kernel's line and the user's.
    OptionError
        The same where TRITON_INTERPRET is set.
    CacheDirectoryError
        Compiled kernels cannot be written to Triton's cache.
    """
    gpu = target_of(target)
    first = _compiled(source, gpu, aligned)
    other = (
        limit_against_spills(source, first) if first.spilled else limit_for_one_more(source, first)
    )
    if other is None:
        return first
    again = _compiled(other, gpu, aligned)
    most = 0 if first.spilled else most_spilled(other)
    return again if again.spilled_bytes <= most else first


def _compiled(source: KernelSource, gpu: GPUTarget, aligned: tuple[bool, ...]) -> CompiledKernel:
    if len(aligned) != len(source.args):
        raise ValueError(f"{len(source.args)} arguments, but {len(aligned)} alignments")
    started = time.perf_counter()
    hash_triton()
    with LANGUAGE.shared():
        function = jit_function(source)
        try:
            text = ASTSource(
                function, signature(source), dict(source.constants), attributes(source, aligned)
            )
            binary = renew_if_broken(
                lambda: retry_parser_races(
                    lambda: triton.compile(text, target=gpu, options=compile_options(source))
                ),
                _WHOLE[gpu.backend],
            )
        except Exception as error:
            if knobs.runtime.interpret:
                raise _interpreted(source, gpu) from error
            raise directory_error(error) or _refused(source, gpu, error) from error
    took = time.perf_counter() - started
    options.log("compile", f"{source.name} for {gpu.backend} {gpu.arch} in {took:.2f} s")
    compiled = CompiledKernel(source, gpu, aligned, binary)
    for kind in ("ptx", "amdgcn"):
        if kind in compiled.asm:
            options.dump("ptx", compiled.asm[kind])
    return compiled


@cache
def hash_triton_ahead() -> None:
    """Start, on a thread, what the first compilation needs and does not depend on a kernel."""
    threading.Thread(target=hash_triton, name="tritonfuser hash", daemon=True).start()


_hashing = Lock()


def hash_triton() -> None:
    """Let Triton hash its own files for the keys of its cache, which takes a third of a second.

    Triton keeps the answer, but every thread that asks before it is there would do it too.
    """
    key = getattr(triton_cache, "triton_key", None)
    if key is not None:
        with _hashing:
            key()


def _interpreted(source: KernelSource, gpu: GPUTarget) -> OptionError:
    """With TRITON_INTERPRET set, the functions that kernels call have no code to compile."""
    return OptionError(
        f"kernel {source.name} cannot be compiled for {gpu.backend} {gpu.arch}: "
        "TRITON_INTERPRET is set, and Triton interprets all functions of this process",
        hint="Unset TRITON_INTERPRET: kernels on CPU tensors are interpreted without it.",
    )


def _refused(source: KernelSource, gpu: GPUTarget, error: Exception) -> LoweringError:
    """Triton's error with the innermost line of this kernel's text that it tells of."""
    line = None
    what = f"{type(error).__name__}: {error}"
    for cause in causes(error):
        if isinstance(cause, CompilationError):
            what = str(cause.error_message or what)
            line = _line_of(source, cause) or line
    return failure(source, f"Triton cannot compile it for {gpu.backend} {gpu.arch}: {what}", line)


def _line_of(source: KernelSource, error: CompilationError) -> int | None:
    """The line in the whole text of an error that counts from its function's first line."""
    start = source.text.find(error.src) if error.src else -1
    if start < 0 or not hasattr(error.node, "lineno"):
        return None
    return source.text.count("\n", 0, start) + int(error.node.lineno)
