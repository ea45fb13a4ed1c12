"""Writes the launches of kernels into a plan: by Triton's C launcher, or by the interpreter."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch

from ...device import DeviceProperties
from ...lowering.kernel_source import ArrivalCounters, KernelSource
from ...lowering.lowered import Lowered
from ...lowering.segments.segment import Segment
from ...symbolic.evaluation import has_sizes
from ..kernels import LoadedKernel, interpreted, loaded
from .buffers import BufferWriter
from .counters import counters_on
from .plan_lines import PlanLines
from .scope import constants
from .steps import Step
from .varying import Varying


class _Call(NamedTuple):
    """The launch of a kernel: its place among the steps, and what is passed behind its tensors."""

    place: int
    segment: Segment
    source: KernelSource
    sizes: list[str]
    counters: list[str]


class LaunchWriter(ABC):
    """Writes the lines of launches."""

    def __init__(self, text: PlanLines, buffers: BufferWriter, varying: Varying) -> None:
        self._text = text
        self._buffers = buffers
        self._varying = varying

    def write(self, place: int, segment: Segment, source: KernelSource) -> None:
        """Write the lines of a launch: its workspace and counters, then the call."""
        sizes = [self._varying.atom(size.name) for size in source.sizes]
        sizes += map(self._varying.inverse, source.inverses)
        if source.workspace is not None:
            self._text.add(f"workspace = {source.workspace.made.format('device')}")
        counters = []
        if source.arrivals is not None:
            self._write_counters(source.arrivals)
            counters = ["arrivals"]
        self._write_call(_Call(place, segment, source, sizes, counters))

    @abstractmethod
    def _write_counters(self, arrivals: ArrivalCounters) -> None:
        """Write the line that sets the variable ``arrivals``, a kernel's counters."""

    @abstractmethod
    def _write_call(self, call: _Call) -> None:
        """Write the call of a kernel."""


class InterpreterLaunches(LaunchWriter):
    """Launches by the interpreter, which takes tensors."""

    def _write_counters(self, arrivals: ArrivalCounters) -> None:
        # The interpreter may be left in the middle of a kernel: each call has its own.
        count = self._varying.text(arrivals.count)
        self._text.add(f"arrivals = torch.zeros({count}, dtype=torch.int32, device=device)")

    def _write_call(self, call: _Call) -> None:
        place, segment, source, sizes, counters = call
        started = time.perf_counter()
        self._text.scope[f"k{place}"] = interpreted(source)
        took = time.perf_counter() - started
        workspace = ["workspace"] if source.workspace is not None else []
        names = [*(arg.value.name for arg in source.args), *sizes, *workspace, *counters]
        if has_sizes(source.grid):
            names.append(f"grid={self._varying.text(source.grid)}")
        self._text.add_step(
            f"k{place}({', '.join(names)})", Step(segment, source, compile_seconds=took)
        )


class GpuLaunches(LaunchWriter):
    """Launches by Triton's C launcher, which takes addresses. All kernels are compiled first."""

    def __init__(
        self,
        text: PlanLines,
        buffers: BufferWriter,
        varying: Varying,
        lowered: Lowered,
        device: torch.device,
        properties: DeviceProperties,
    ) -> None:
        super().__init__(text, buffers, varying)
        self._device = device
        self._loaded = self._compiled(lowered, properties)

    def _compiled(self, lowered: Lowered, properties: DeviceProperties) -> dict[int, LoadedKernel]:
        """All kernels by their places, compiled and loaded in parallel."""
        found = {n: s for n, s in enumerate(lowered.sources) if s is not None}
        wanted = [(source, self._buffers.aligned(source)) for source in found.values()]
        ready = loaded(wanted, properties.arch, self._device)
        return dict(zip(found, ready, strict=True))

    def _write_counters(self, arrivals: ArrivalCounters) -> None:
        count = self._varying.text(arrivals.count)
        self._text.scope["arrivals_on"] = counters_on(self._device)
        self._text.add(f"arrivals, held = arrivals_on(stream, {count})")

    def _write_call(self, call: _Call) -> None:
        place, segment, source, sizes, counters = call
        aligned = self._buffers.aligned(source)
        pairs = zip(source.args, aligned, strict=True)
        self._buffers.require_aligned(arg.value for arg, is_aligned in pairs if is_aligned)
        (launch, head, tail, scratch), took = self._loaded[place]
        scope = self._text.scope
        scope[f"k{place}"] = launch
        if scratch:
            size = self._varying.text(math.prod(source.grid) * scratch)
            self._text.add(f"scratch = empty(({size},), (1,), torch.uint8)")
        heads = constants(scope, f"k{place}_h", head)
        tails = constants(scope, f"k{place}_t", tail)
        args = [
            self._buffers.address(arg.value) if arg.is_tensor else arg.value.name
            for arg in source.args
        ]
        grid = [self._varying.text(n) for n in source.grid]
        workspace = ["workspace.data_ptr()"] if source.workspace is not None else []
        given = [*grid, "stream", *heads, *args, *sizes, *workspace, *counters, *tails]
        self._text.add_step(f"k{place}({', '.join(given)})", Step(segment, source, aligned, took))
