"""Writes the body of a plan line by line: inputs, buffers, launches, calls into torch, results.

``function_text`` makes functions of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _python_dispatch

from ...device import DeviceProperties
from ...ir import Value
from ...lowering.lowered import Lowered
from ...lowering.segments.segment import Segment
from .buffers import BufferWriter
from .capture import to_cpu
from .copies import apart, put
from .function_text import Body
from .given_inputs import GivenInputs
from .kernel_operands import detached
from .launches import GpuLaunches, InterpreterLaunches, LaunchWriter
from .plan_lines import PlanLines
from .random_state import draw
from .results import kept_views, results_of
from .scope import gpu_functions
from .steps import Step
from .torch_calls import library_call, scalar_call
from .varying import Varying
from .view_text import ViewWriter


class PlanWriter:
    """Writes the body of one plan; ``body()`` is called once.

    Attributes
    ----------
    text : PlanLines
        The statements so far, their steps, and the objects that they use by name.
    varying : Varying
        Names for what depends on open sizes.
    """

    def __init__(
        self,
        lowered: Lowered,
        inputs: Sequence[Any],
        device: torch.device,
        properties: DeviceProperties,
    ) -> None:
        self.lowered = lowered
        self.fusion = lowered.segmented.fusion
        self.device = device
        self.properties = properties
        self.on_gpu = device.type != "cpu"
        self.text = PlanLines(_scope(device))
        self.varying = Varying(lowered.env)
        self._given = GivenInputs(lowered, inputs, self.on_gpu)
        self._buffers = BufferWriter(self.text, lowered, self._given, self.varying, self.on_gpu)
        # Tensors that the plan does not allocate.
        self._external = set(self.fusion.inputs)
        self._views = ViewWriter(
            self._given.name, self.fusion.given, self._external, self.varying.text
        )

    def body(self) -> Body:
        """The complete body."""
        self.text.add(*self._given.lines(self.text.scope))
        self.text.add(*kept_views(self.lowered, self._views).values())
        self._random()
        self._buffers.guard_in_place()
        launches = self._launches()
        pairs = zip(self.lowered.segmented.segments, self.lowered.sources, strict=True)
        for place, (segment, source) in enumerate(pairs):
            if segment.runs_torch:
                self._library(place, segment)
            else:
                self._buffers.allocate_before(place)
            if source is not None:
                launches.write(place, segment, source)
            self._buffers.free_after(place)
        return self._body()

    def _launches(self) -> LaunchWriter:
        shared = self.text, self._buffers, self.varying
        if not self.on_gpu:
            return InterpreterLaunches(*shared)
        return GpuLaunches(*shared, self.lowered, self.device, self.properties)

    def _body(self) -> Body:
        given, buffers = self._given, self._buffers
        written = set(buffers.in_place.values())
        results = results_of(self.lowered, self._views, buffers.allocated, self.on_gpu, written)
        resolved = (given.read | written) - given.copies.keys()
        uses_device = given.needs_device or bool(buffers.allocated or self.text.steps)
        return Body(
            inputs=given.listed,
            addressed=tuple(v for v in given.listed if buffers.is_addressed(v)),
            aligned=tuple(v for v in given.listed if v in buffers.must_be_aligned),
            resolved=tuple(v for v in given.listed if v in resolved),
            lines=tuple(self.text.lines),
            step_lines=tuple(self.text.step_lines),
            buffers=dict(buffers.allocated),
            results=results,
            device=self.device if self.on_gpu and uses_device else None,
        )

    def _random(self) -> None:
        """The lines that draw the seeds of random ops."""
        seeds = self.lowered.seeds
        if not seeds:
            return
        # In a captured graph ``held`` keeps the seed's memory alive until kernels have read it.
        self.text.add(f"seed, offset, held = draw(device, {len(seeds)})")
        for place, (seed, offset) in enumerate(seeds):
            self.text.add(f"{seed.name} = seed", f"{offset.name} = offset + {place}")

    def _library(self, place: int, segment: Segment) -> None:
        """A call into torch, on views of the buffers it reads."""
        (node,) = segment.nodes
        layouts = self.lowered.segmented.layouts
        strides = tuple(layouts[out] for out in node.outs)
        name = f"k{place}"
        self.text.scope[name] = self.varying.make(name, library_call, node, strides)
        views = iter(segment.operands)
        args = [
            self._views.for_torch(next(views)) if v.is_tensor else self._scalar(v)
            for v in node.operands()
        ]
        outs = ", ".join(out.name for out in node.outs)
        self.text.add_step(f"{outs}, = {name}({', '.join(args)})", Step(segment))
        self._buffers.mark_aligned(node.outs)
        self._external.update(node.outs)

    def _scalar(self, value: Value) -> str:
        """The variable of a scalar; a line that computes it is added where it is no input."""
        node = self.fusion.producers.get(value)
        name = f"make_{value.name}"
        if node is not None and name not in self.text.scope:
            args = [self._scalar(operand) for operand in node.operands()]
            self.text.scope[name] = self.varying.make(name, scalar_call, node)
            self.text.add(f"{value.name} = {name}({', '.join(args)})")
        return value.name


def _scope(device: torch.device) -> dict[str, Any]:
    """The names that every plan on a device may use."""
    return {
        "torch": torch,
        "draw": draw,
        "device": device,
        "to_cpu": to_cpu,
        "put": put,
        "apart": apart,
        "detached": detached,
        "dispatch": _python_dispatch,
        **(gpu_functions() if device.type != "cpu" else {}),
    }
