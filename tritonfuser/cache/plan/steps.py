"""The steps of a plan, kernels and calls into torch, and the GPU resources of each."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...device import DeviceProperties
from ...lowering.emit.kernel_module import kernel_name
from ...lowering.kernel_source import KernelSource
from ...lowering.segments.segment import Segment
from ..kernels import compiled


@dataclass(frozen=True, eq=False)
class Step:
    """A kernel, or a call into torch.

    Attributes
    ----------
    segment : Segment
        The segment it computes.
    source : KernelSource or None
        The kernel; None where torch runs it.
    aligned : tuple of bool
        For each argument of the kernel whether it was compiled as aligned to 16 bytes.
    compile_seconds : float
        Seconds to get the kernel when the plan was made; near 0 where it was cached.
    """

    segment: Segment
    source: KernelSource | None = None
    aligned: tuple[bool, ...] = ()
    compile_seconds: float = 0.0

    @property
    def name(self) -> str:
        """The kernel's name, or one made alike."""
        return kernel_name(self.segment) if self.source is None else self.source.name


@dataclass(frozen=True)
class Resources:
    """The GPU resources of a kernel; zeros for the interpreter and for calls into torch.

    Attributes
    ----------
    threads : int
        Threads of a program.
    shared_bytes : int
        Shared memory of a program, in bytes.
    registers : int
        Registers of a thread.
    cluster : tuple of int
        Programs of a cluster along x, y and z.
    """

    threads: int = 0
    shared_bytes: int = 0
    registers: int = 0
    cluster: tuple[int, int, int] = (0, 0, 0)


def resources(step: Step, device: torch.device, properties: DeviceProperties) -> Resources:
    """The resources of a step, read from the loaded binary of its kernel."""
    if step.source is None or device.type == "cpu":
        return Resources()
    kernel = compiled(step.source, properties.arch, step.aligned)
    index = device.index if device.index is not None else torch.cuda.current_device()
    return Resources(
        threads=step.source.num_warps * properties.warp_size,
        shared_bytes=kernel.shared_bytes,
        registers=kernel.launcher(index).registers,
        cluster=tuple(getattr(kernel.binary.metadata, "cluster_dims", (1, 1, 1))),
    )
