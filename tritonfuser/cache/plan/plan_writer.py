"""Writes the body of a plan line by line: allocations, launches, frees, results.

``function_text`` makes functions of it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils import _python_dispatch

from ...device import DeviceProperties
from ...ir import Fusion, Value
from ...lowering.kernel_source import KernelSource
from ...lowering.pipeline import Lowered
from ...lowering.segments.segment import Segment
from ...symbolic.evaluation import has_sizes
from ..kernels import Loaded, interpreted, loaded
from .capture import to_cpu
from .copies import apart, put
from .counters import counters_on
from .function_text import Body
from .given_inputs import GivenInputs
from .in_place import InPlaceGuard, replaced_inputs
from .kernel_operands import detached
from .random_state import draw
from .results import results_of
from .scope import constants, gpu_functions
from .steps import Step
from .torch_calls import library_call, scalar_call
from .varying import Varying
from .view_text import ViewWriter


class _Call(NamedTuple):
    """The launch of a kernel: its place among the steps, and what is passed behind its tensors."""

    place: int
    piece: Segment
    source: KernelSource
    sizes: list[str]
    counters: list[str]


class PlanWriter:
    """Writes the body of one plan; ``body()`` is called once.

    A tensor ``tv0`` whose address kernels take has it in the variable ``tv0_at``.

    Attributes
    ----------
    scope : dict
        Objects that the lines use by name.
    lines : list of str
        The statements so far.
    steps : list of Step
        Kernels and calls into torch so far.
    aligned : dict of Value to bool
        Whether each tensor starts at a multiple of 16 bytes.
    external : set of Value
        Tensors that the plan does not allocate, whose storage offset may differ from 0.
    """

    def __init__(
        self,
        lowered: Lowered,
        inputs: Sequence[Any],
        device: torch.device,
        properties: DeviceProperties,
    ) -> None:
        self.lowered = lowered
        self.fusion: Fusion = lowered.segmented.fusion
        self.device = device
        self.properties = properties
        self.on_gpu = device.type != "cpu"
        self.scope = _scope(device)
        self.given = GivenInputs(lowered, inputs, self.on_gpu)
        self.aligned = dict(self.given.aligned)
        sources = (source for source in lowered.sources if source is not None)
        self._uses = Counter(arg.value for s in sources for arg in s.args if arg.is_tensor)
        copied = {*self.given.copies, *(part.value for part in lowered.parts)}
        given = (v for v in self.fusion.inputs if v in self._uses and v not in copied)
        # Values whose address is in a variable.
        self._addressed = set(given) if self.on_gpu else set()
        self.external = set(self.fusion.inputs)
        self.varying = Varying(lowered.env)
        self._views = ViewWriter(
            self.given.name, self.fusion.given, self.external, self.varying.text
        )
        self.lines: list[str] = []
        self.steps: list[Step] = []
        self.step_lines: list[int] = []
        self._loaded: dict[int, Loaded] = {}
        self._buffers: dict[Value, int] = {}
        self._must_be_aligned: set[Value] = set()
        self._needs_device = self.given.needs_device
        self._in_place = replaced_inputs(lowered, self.given.writable, self.on_gpu)

    def body(self) -> Body:
        """The complete body."""
        self.lines += self.given.lines(self.scope)
        self._random()
        self._guard_in_place()
        segmented = self.lowered.segmented
        self._compile()
        last = self._last_uses()
        for place, (piece, source) in enumerate(
            zip(segmented.segments, self.lowered.sources, strict=True)
        ):
            if piece.runs_torch:
                self._library(place, piece)
            else:
                self._allocate_all(self._allocated_before(place))
            if source is not None:
                self._launch(place, piece, source)
            gone = [v.name for v, use in last.items() if use == place]
            if gone:
                self.lines.append(f"del {', '.join(gone)}")
        return self._body()

    def _body(self) -> Body:
        given = self.given
        written = set(self._in_place.values())
        results = results_of(self.lowered, self._views, self._buffers, self.on_gpu, written)
        resolved = (given.read | written) - given.copies.keys()
        return Body(
            inputs=given.listed,
            addressed=tuple(v for v in given.listed if v in self._addressed),
            aligned=tuple(v for v in given.listed if v in self._must_be_aligned),
            resolved=tuple(v for v in given.listed if v in resolved),
            lines=tuple(self.lines),
            step_lines=tuple(self.step_lines),
            buffers=dict(self._buffers),
            results=results,
            device=self.device if self.on_gpu and self._needs_device else None,
        )

    def _step(self, line: str, step: Step) -> None:
        self.step_lines.append(len(self.lines))
        self.lines.append(line)
        self.steps.append(step)
        self._needs_device = True

    # -- before the first kernel ---------------------------------------------

    def _random(self) -> None:
        """The lines that draw the seeds of random ops."""
        seeds = self.lowered.seeds
        if not seeds:
            return
        # In a captured graph ``held`` keeps the seed's memory alive until kernels have read it.
        self.lines.append(f"seed, offset, held = draw(device, {len(seeds)})")
        for place, (seed, offset) in enumerate(seeds):
            self.lines.append(f"{seed.name} = seed")
            self.lines.append(f"{offset.name} = offset + {place}")

    def _guard_in_place(self) -> None:
        """The lines that check whether inputs that kernels may store into overlap no other."""
        if not self._in_place:
            return
        written = self._in_place.values()
        guard = InPlaceGuard(self.fusion, self.given.on_device, written)
        self.scope["overlap"] = guard.check(self.varying)
        self.scope["increment_version"] = torch.autograd.graph.increment_version
        self._require_aligned(written)
        if self.on_gpu:
            self._addressed.update(v for v in guard.tensors if v not in self.given.copies)
        self.lines += guard.lines(self._start)

    def _start(self, value: Value) -> str:
        """The address of the tensor that the caller gave, as an expression."""
        copied = value in self.given.copies
        return f"{self.given.name(value)}.data_ptr()" if copied else self._address(value)

    # -- buffers -------------------------------------------------------------

    def _last_uses(self) -> dict[Value, int]:
        """The last segment that uses each buffer that no result needs."""
        kept = {r.root for r in self.lowered.segmented.results}
        found: dict[Value, int] = {}
        for place, piece in enumerate(self.lowered.segmented.segments):
            for value in (*piece.inputs, *piece.outputs):
                if value.is_tensor and value not in kept and value not in self.fusion.inputs:
                    found[value] = place
        return found

    def _allocate_all(self, pieces: Iterable[Segment]) -> None:
        """Allocate the results of segments."""
        for value in dict.fromkeys(out for piece in pieces for out in piece.outputs):
            if value not in self._buffers:  # a scatter's result is written twice
                self._allocate(value)

    def _allocated_before(self, place: int) -> Iterable[Segment]:
        """The segments whose results are allocated before a launch.

        They are those that it computes. Where it stores into an input, they are all that follow, so
        that no later allocation can fail.
        """
        segmented = self.lowered.segmented
        piece = segmented.segments[place]
        launched = (piece, *segmented.launched_with(piece))
        writes = any(out in self._in_place for each in launched for out in each.outputs)
        return segmented.segments[place:] if writes else launched

    def _allocate(self, value: Value) -> None:
        """The lines that allocate a buffer, and take its address where several kernels use it."""
        type_ = value.tensor
        strides = self.lowered.segmented.layouts[value]
        sizes, steps = self.varying.text(type_.sizes), self.varying.text(strides)
        dtype = f"{type_.dtype.info.torch}"
        if self.on_gpu:
            short = dtype.replace(".", "_")  # torch.bool is not to hide Python's
            self.scope[short] = type_.dtype.info.torch
            made = f"empty({sizes}, {steps}, {short})"
        else:
            made = f"torch.empty_strided({sizes}, {steps}, dtype={dtype}, device=device)"
        if value in self._in_place:
            made = f"{self._in_place[value].name} if is_apart else {made}"
        self._buffers[value] = len(self.lines)
        self.lines.append(f"{value.name} = {made}")
        if self.on_gpu and self._uses[value] > 1:
            self._addressed.add(value)
            self.lines.append(f"{value.name}_at = {value.name}.data_ptr()")
        self.aligned[value] = True
        self._needs_device = True

    # -- steps ---------------------------------------------------------------

    def _library(self, place: int, piece: Segment) -> None:
        """A call into torch, on views of the buffers it reads."""
        (node,) = piece.nodes
        layouts = self.lowered.segmented.layouts
        strides = tuple(layouts[out] for out in node.outs)
        self.scope[f"k{place}"] = self.varying.make(f"k{place}", library_call, node, strides)
        views = iter(piece.operands)
        args = [
            self._views.for_torch(next(views)) if v.is_tensor else self._scalar(v)
            for v in node.operands()
        ]
        outs = ", ".join(out.name for out in node.outs)
        self._step(f"{outs}, = k{place}({', '.join(args)})", Step(piece))
        self.aligned.update(dict.fromkeys(node.outs, True))
        self.external.update(node.outs)

    def _scalar(self, value: Value) -> str:
        """The variable of a scalar; a line that computes it is added where it is no input."""
        node = self.fusion.producers.get(value)
        if node is not None and f"make_{value.name}" not in self.scope:
            args = [self._scalar(operand) for operand in node.operands()]
            name = f"make_{value.name}"
            self.scope[name] = self.varying.make(name, scalar_call, node)
            self.lines.append(f"{value.name} = make_{value.name}({', '.join(args)})")
        return value.name

    def _launch(self, place: int, piece: Segment, source: KernelSource) -> None:
        """The lines of a launch: its workspace and counters, then the call."""
        sizes = [self.varying.atom(size.name) for size in source.sizes]
        sizes += map(self.varying.inverse, source.inverses)
        if source.workspace is not None:
            self.lines.append(f"workspace = {source.workspace.made.format('device')}")
        counters = self._counters(source)
        call = _Call(place, piece, source, sizes, counters)
        if self.on_gpu:
            self._launch_on_gpu(call)
        else:
            self._interpret(call)

    def _interpret(self, call: _Call) -> None:
        """The call of a kernel by the interpreter, which takes tensors."""
        place, piece, source, sizes, counters = call
        started = time.perf_counter()
        self.scope[f"k{place}"] = interpreted(source)
        took = time.perf_counter() - started
        workspace = ["workspace"] if source.workspace is not None else []
        names = [*(arg.value.name for arg in source.args), *sizes, *workspace, *counters]
        if has_sizes(source.grid):
            names.append(f"grid={self.varying.text(source.grid)}")
        self._step(f"k{place}({', '.join(names)})", Step(piece, source, compile_seconds=took))

    def _launch_on_gpu(self, call: _Call) -> None:
        """The call of Triton's C launcher, which takes addresses, and its scratch memory."""
        place, piece, source, sizes, counters = call
        aligned = self._aligned(source)
        pairs = zip(source.args, aligned, strict=True)
        self._require_aligned(arg.value for arg, is_aligned in pairs if is_aligned)
        (launch, head, tail, scratch), took = self._loaded[place]
        self.scope[f"k{place}"] = launch
        if scratch:
            size = self.varying.text(math.prod(source.grid) * scratch)
            self.lines.append(f"scratch = empty(({size},), (1,), torch.uint8)")
        heads = constants(self.scope, f"k{place}_h", head)
        tails = constants(self.scope, f"k{place}_t", tail)
        args = [
            self._address(arg.value) if arg.is_tensor else arg.value.name for arg in source.args
        ]
        grid = [self.varying.text(n) for n in source.grid]
        workspace = ["workspace.data_ptr()"] if source.workspace is not None else []
        given = [*grid, "stream", *heads, *args, *sizes, *workspace, *counters, *tails]
        self._step(f"k{place}({', '.join(given)})", Step(piece, source, aligned, took))

    def _counters(self, source: KernelSource) -> list[str]:
        """The variable of a kernel's counters, if it has any: an address on a GPU."""
        if source.arrivals is None:
            return []
        count = self.varying.text(source.arrivals.count)
        if not self.on_gpu:
            # The interpreter may be left in the middle of a kernel: each call has its own.
            self.lines.append(f"arrivals = torch.zeros({count}, dtype=torch.int32, device=device)")
            return ["arrivals"]
        self.scope["arrivals_on"] = counters_on(self.device)
        self.lines.append(f"arrivals, held = arrivals_on(stream, {count})")
        return ["arrivals"]

    def _compile(self) -> None:
        """Compile and load all kernels, in parallel."""
        if self.on_gpu:
            found = {n: s for n, s in enumerate(self.lowered.sources) if s is not None}
            wanted = [(source, self._aligned(source)) for source in found.values()]
            ready = loaded(wanted, self.properties.arch, self.device)
            self._loaded.update(zip(found, ready, strict=True))

    def _aligned(self, source: KernelSource) -> tuple[bool, ...]:
        """Which arguments are aligned; buffers of the plan always are."""
        return tuple(a.is_tensor and self.aligned.get(a.value, True) for a in source.args)

    def _address(self, value: Value) -> str:
        return f"{value.name}_at" if value in self._addressed else f"{value.name}.data_ptr()"

    def _require_aligned(self, values: Iterable[Value]) -> None:
        """Have guards check that inputs are aligned. Of a complex part, its source is checked."""
        sources = {part.value: part.source for part in self.lowered.parts}
        self._must_be_aligned.update(sources.get(value, value) for value in values)


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
