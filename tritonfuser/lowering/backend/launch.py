"""Launching a compiled kernel with as little Python in the way as Triton allows."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton
from triton.runtime import _allocation
from triton.runtime.errors import OutOfResources

from ...device import DeviceProperties
from ...devices import of
from ...errors import LoweringError
from ..kernel_source import KernelSource
from .triton_cache import directory_error, retry_if_removed


class PreparedLaunch(NamedTuple):
    """A launch with everything fixed that does not change between calls.

    It is made by ``launch(x, y, z, stream, *head, *args, *tail)``: ``x, y, z`` the grid,
    ``stream`` the raw handle, ``args`` the kernel's run-time arguments in order, pointers as
    ``data_ptr()`` integers, scalars as Python numbers. The device must be torch's current one.
    ``SCRATCH`` in ``head`` stands for a tensor of ``scratch`` bytes of each program, which may be
    anything before and after.
    """

    launch: Callable[..., object]
    head: tuple[object, ...]
    tail: tuple[object, ...]
    scratch: int = 0


class _Scratch:
    """Marks the place of the scratch pointer among the arguments."""

    def __repr__(self) -> str:
        return "scratch"


SCRATCH = _Scratch()


@dataclass(frozen=True, eq=False)
class Launcher:
    """A kernel loaded on one GPU.

    Attributes
    ----------
    source : KernelSource
        What was loaded.
    device_index : int
        Where.
    prepared : PreparedLaunch
        For callers that put the arguments together themselves.
    registers, spills : int
        What the driver reports of a thread of the loaded kernel.
    """

    source: KernelSource
    device_index: int
    prepared: PreparedLaunch
    registers: int
    spills: int

    def prepare(self) -> PreparedLaunch:
        """The C function to call, and the arguments around the kernel's own."""
        return self.prepared

    def __call__(self, *args: torch.Tensor | bool | int | float) -> None:
        """Launch on the device's current stream; tensors and numbers in the arguments' order."""
        launch, head, tail, scratch = self.prepared
        device = torch.device("cuda", self.device_index)
        if scratch:
            size = math.prod(self.source.grid) * scratch
            made = torch.empty(size, dtype=torch.uint8, device=device)
            head = tuple(made if item is SCRATCH else item for item in head)
        workspace = self.source.workspace
        if workspace is not None:
            made = torch.full(
                (workspace.count,), -1, dtype=workspace.dtype.info.torch, device=device
            )
            args = (*args, made)
        arrivals = self.source.arrivals
        if arrivals is not None:
            args = (*args, torch.zeros(arrivals.count, dtype=torch.int32, device=device))
        given = [arg.data_ptr() if isinstance(arg, torch.Tensor) else arg for arg in args]
        with torch.cuda.device(self.device_index):
            stream = torch.cuda.current_stream(self.device_index).cuda_stream
            launch(*self.source.grid, stream, *head, *given, *tail)


def load(source: KernelSource, binary: Any, device_index: int) -> Launcher:
    """Put a compiled kernel on a device.

    Parameters
    ----------
    binary : triton.compiler.CompiledKernel
        Never loaded itself: each device gets a copy, since Triton's object belongs to one.

    Raises
    ------
    LoweringError
        It asks for more shared memory or threads than the device has.
    CacheDirectoryError
        Its launcher cannot be written to Triton's cache.
    """
    binary = copy.copy(binary)
    with torch.cuda.device(device_index):
        try:
            retry_if_removed(binary._init_handles)
        except OutOfResources as error:
            raise LoweringError(f"kernel {source.name}: {error}") from error
        except OSError as error:
            # The launcher is built here, unless it was ahead of the kernel.
            raise directory_error(error) or error from None
    if source.workspace is not None:
        _check_resident(source, binary, of(torch.device("cuda", device_index)))
    prepared = prepare(binary, len(source.constants))
    return Launcher(source, device_index, prepared, binary.n_regs, binary.n_spills)


def _check_resident(source: KernelSource, binary: Any, device: DeviceProperties) -> None:
    """Raise where the programs of a cooperative launch do not all fit on the device."""
    warps, registers = source.num_warps, -(-binary.n_regs // 8) * 8
    fitting = min(
        device.registers_per_sm // (registers * device.warp_size * warps),
        device.max_threads_per_sm // (device.warp_size * warps),
        device.shared_bytes_per_sm // (binary.metadata.shared + _RESERVED_SHARED),
    )
    programs = math.prod(source.grid)
    if programs > fitting * device.sm_count:
        raise LoweringError(
            f"kernel {source.name}: its {programs} programs wait for one another, and only "
            f"{fitting * device.sm_count} fit on {device.name} at a time",
            hint="Use params with fewer parts, or with max_registers or num_stages lower.",
        )


_RESERVED_SHARED = 1024
"""Shared memory that CUDA takes of each program for itself."""


def prepare(binary: Any, constants: int) -> PreparedLaunch:
    """How to launch a loaded kernel that has this many ``tl.constexpr`` arguments at its end.

    They are in the binary, but Triton's launcher counts their places.
    """
    tail = (None,) * constants
    return _direct(binary, tail) or _general(binary, tail)


def _general(binary: Any, tail: tuple[None, ...]) -> PreparedLaunch:
    """A launch by Triton's launcher object, whose signature is the same since Triton 3.0.

    From 3.9 on a kernel unloads itself when nobody has it any more, so its launcher keeps it.
    """
    run = binary.run
    run.kernel = binary
    launch = _with_memory(run) if getattr(run, "global_scratch_size", 0) else run
    return PreparedLaunch(launch, (binary.function, binary.packed_metadata, None, None, None), tail)


def _with_memory(run: Callable[..., object]) -> Callable[..., object]:
    """A launch during which Triton's allocator for scratch memory is torch's."""

    def launch(*args: object) -> None:
        before = _allocation._allocator.get()
        triton.set_allocator(_working_memory)
        try:
            run(*args)
        finally:
            triton.set_allocator(before)

    return launch


def _working_memory(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device="cuda")


# What the generated C function takes is no interface: only versions that were read are trusted.
_DIRECT_VERSIONS = ("3.6.",)


def _direct(binary: Any, tail: tuple[None, ...]) -> PreparedLaunch | None:
    """A launch by the C function behind Triton's launcher object."""
    run = binary.run
    known = (
        triton.__version__.startswith(_DIRECT_VERSIONS)
        and type(run).__name__ == "CudaLauncher"
        and run.profile_scratch_size == 0
    )
    if not known:
        return None
    head = (
        binary.function,
        run.launch_cooperative_grid,
        run.launch_pdl,
        SCRATCH if run.global_scratch_size else None,
        None,  # profile scratch
        binary.packed_metadata,
        None,  # launch metadata
        None,  # hook before
        None,  # hook after
    )
    scratch = run.global_scratch_size * run.num_ctas if run.global_scratch_size else 0
    return PreparedLaunch(run.launch, head, tail, scratch)
