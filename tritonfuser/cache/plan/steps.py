"""The steps of a plan that take time on its device, and what of the device each of them takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...device import DeviceProperties
from ...lowering.emit.kernel_module import kernel_name
from ...lowering.kernel_source import KernelSource
from ...lowering.segments import Segment
from ..kernels import compiled


@dataclass(frozen=True, eq=False)
class Step:
    """A kernel, or a call into torch.

    Attributes
    ----------
    segment : Segment
        What it computes.
    source : KernelSource or None
        The kernel; None where torch runs it.
    aligned : tuple of bool
        Which of the kernel's arguments it was compiled to take as aligned.
    compile_seconds : float
        What getting the kernel took when the plan was made: next to nothing where it was compiled
        before.
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
    """What a kernel takes of a GPU; zeros for the interpreter and for calls into torch.

    ``threads`` and ``shared_bytes`` are a program's, ``registers`` a thread's, ``cluster`` the
    programs that run as one.
    """

    threads: int = 0
    shared_bytes: int = 0
    registers: int = 0
    cluster: tuple[int, int, int] = (0, 0, 0)


def resources(step: Step, device: torch.device, properties: DeviceProperties) -> Resources:
    """Looked up in the binary of the kernel, which is loaded already."""
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
