"""Lowered fusion in, ExecutionPlan out: allocations, launches and views as one generated function.

Nothing is left to decide in a call: sizes, strides, grids and argument orders are written into the
text, which ``TRITONFUSER_DUMP=plan`` prints.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..device import DeviceProperties
from ..dtypes import REDUCED_FLOATS
from ..ir import Fusion, Value
from ..lowering.kernel import KernelSource
from ..lowering.launch import SCRATCH
from ..lowering.pipeline import Lowered
from ..lowering.segments import Buffered, Segment
from ..options import dump
from .clocks import Clock
from .kernels import interpreted, loaded
from .library import library_call, scalar_call
from .parts import may_be_negated, resolve_neg, rounded, view_as_real
from .random_state import draw
from .signature import is_aligned
from .steps import Step

Run = Callable[[Sequence[Any]], list[torch.Tensor]]
TimedRun = Callable[[Sequence[Any], Clock], list[torch.Tensor]]


class ExecutionPlan:
    """A fusion bound to sizes, strides and a device: call it with the flat inputs.

    Attributes
    ----------
    lowered : Lowered
        Segments and kernels.
    device : torch.device
        Where it runs.
    properties : DeviceProperties
        What its kernels were made for.
    text : str
        The generated function.
    fusion_id : int
        The number that profiles call its definition by.
    steps : tuple of Step
        The kernels and the calls into torch, in order.
    plain : callable
        The function: ``list of inputs -> list of tensors``.
    run : callable
        What is called: ``plain``, or while a profiler is at work something around ``timed``.
    """

    def __init__(self, writer: _PlanWriter, fusion_id: int) -> None:
        self.fusion_id = fusion_id
        self.lowered = writer.lowered
        self.device = writer.device
        self.properties = writer.properties
        self.text = writer.text()
        self.steps = tuple(writer.steps)
        self.plain: Run = _made(self.text, writer.scope)
        self.run: Run = self.plain
        self._writer = writer
        self._timed: TimedRun | None = None

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        return self.run(inputs)

    @property
    def timed(self) -> TimedRun:
        """The function with a clock, ``clock.start(0)`` before its first step and so on."""
        if self._timed is None:
            self._timed = _made(self._writer.function(timed=True), dict(self._writer.scope))
        return self._timed


def _made(text: str, scope: dict[str, Any]) -> Any:
    exec(compile(text, "<tritonfuser plan>", "exec"), scope)
    return scope["run"]


def make_plan(
    lowered: Lowered,
    inputs: Sequence[Any],
    device: torch.device,
    properties: DeviceProperties,
    fusion_id: int = 0,
) -> ExecutionPlan:
    """Compile the kernels for inputs like these and write the function that runs them."""
    plan = ExecutionPlan(_PlanWriter(lowered, inputs, device, properties), fusion_id)
    dump("plan", plan.text)
    return plan


class _PlanWriter:
    """Writes the function line by line; objects it uses are in ``scope``."""

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
        self.scope: dict[str, Any] = {"torch": torch, "draw": draw, "device": device}
        self.aligned = {
            value: is_aligned(tensor)
            for value, tensor in zip(self.fusion.inputs, inputs, strict=False)
            if value.is_tensor
        }
        for part in lowered.parts:
            self.aligned[part.value] = self.aligned.get(part.source, False)
        # Tensors that start anywhere in their storage.
        self.not_ours = set(self.fusion.inputs)
        self.lines: list[str] = []
        self.steps: list[Step] = []
        self.step_lines: list[int] = []

    def text(self) -> str:
        """The function; to be asked for once."""
        self._inputs()
        self._random()
        segmented = self.lowered.segmented
        last = self._last_uses()
        made: set[Value] = set()
        for place, (piece, source) in enumerate(
            zip(segmented.segments, self.lowered.sources, strict=True)
        ):
            if piece.scheduler == "expr_eval":
                self._library(place, piece)
            else:
                for value in piece.outputs:
                    if value not in made:  # a scatter's result is written twice
                        self._allocate(value)
                made.update(piece.outputs)
            if source is not None:
                self._launch(place, piece, source)
            gone = [v.name for v, use in last.items() if use == place]
            if gone:
                self.lines.append(f"del {', '.join(gone)}")
        self._results()
        return self.function()

    def function(self, timed: bool = False) -> str:
        """The lines as a function; ``timed``: with a clock around each step."""
        given = "inputs, clock" if timed else "inputs"
        body = "\n".join(f"    {line}" for line in (self._timed() if timed else self.lines))
        if self.on_gpu:
            body = self._guarded(body, given)
        return f"def run({given}):\n{body}\n"

    def _timed(self) -> list[str]:
        lines = list(self.lines)
        for step, place in reversed(list(enumerate(self.step_lines))):
            lines[place : place + 1] = [f"clock.start({step})", lines[place], f"clock.stop({step})"]
        lines.insert(-1, "clock.finish()")
        return lines

    def _step(self, line: str, step: Step) -> None:
        self.step_lines.append(len(self.lines))
        self.lines.append(line)
        self.steps.append(step)

    def _guarded(self, body: str, given: str) -> str:
        """Make the plan's device the current one where it is not."""
        self.scope["get_device"] = torch.cuda.current_device
        self.scope["get_stream"] = torch._C._cuda_getCurrentRawStream
        index = self.device.index
        head = [
            f"    if get_device() != {index}:",
            "        with torch.cuda.device(device):",
            f"            return run({given})",
            f"    stream = get_stream({index})",
        ]
        return "\n".join([*head, body])

    # -- parts ---------------------------------------------------------------

    def _inputs(self) -> None:
        names = [v.name for v in self.fusion.inputs if v not in self._hidden()]
        if names:
            self.lines.append(f"{', '.join(names)}, = inputs")
        self._parts()
        for value in self.fusion.inputs:
            if not value.is_tensor and value.dtype in REDUCED_FLOATS:
                self.scope["rounded"] = rounded
                dtype = value.dtype.info.torch
                self.lines.append(f"{value.name} = rounded({value.name}, {dtype})")
        for value in self.fusion.inputs:
            copy = self._copy(value)
            if copy is not None:
                self.lines.append(f"{value.name}_given = {value.name}")
                self.lines.append(f"{value.name} = {copy}")

    def _hidden(self) -> set[Value]:
        seeds = (value for pair in self.lowered.seeds for value in pair)
        return {*seeds, *(part.value for part in self.lowered.parts)}

    def _parts(self) -> None:
        """Complex inputs as real ones."""
        for part in self.lowered.parts:
            source = part.source.name
            made = f"{source}.{part.how}"
            if part.value.is_tensor:
                self.scope[part.how] = view_as_real
                made = f"{part.how}({source})"
            self.lines.append(f"{part.value.name} = {made}")

    def _is_read(self, value: Value) -> bool:
        return any(value in piece.inputs for piece in self.lowered.segmented.segments)

    def _random(self) -> None:
        seeds = self.lowered.seeds
        if not seeds:
            return
        self.lines.append(f"seed, offset = draw(device, {len(seeds)})")
        for place, (seed, offset) in enumerate(seeds):
            self.lines.append(f"{seed.name} = seed")
            self.lines.append(f"{offset.name} = offset + {place}")

    def _last_uses(self) -> dict[Value, int]:
        """The last segment that uses each buffer which is no result."""
        kept = {r.root for r in self.lowered.segmented.results}
        found: dict[Value, int] = {}
        for place, piece in enumerate(self.lowered.segmented.segments):
            for value in (*piece.inputs, *piece.outputs):
                if value.is_tensor and value not in kept and value not in self.fusion.inputs:
                    found[value] = place
        return found

    def _allocate(self, value: Value) -> None:
        type_ = value.tensor
        strides = self.lowered.segmented.layouts[value]
        dtype = f"{type_.dtype.info.torch}"
        if self.on_gpu:
            # A quarter of the time of torch.empty_strided; what torch.compile's code calls too.
            self.scope["empty"] = getattr(torch._C._dynamo.guards, "_empty_strided_cuda")  # noqa: B009
            made = f"empty({type_.sizes!r}, {strides!r}, {dtype})"
        else:
            made = (
                f"torch.empty_strided({type_.sizes!r}, {strides!r}, dtype={dtype}, device=device)"
            )
        self.lines.append(f"{value.name} = {made}")
        self.aligned[value] = True

    def _library(self, place: int, piece: Segment) -> None:
        """A call into torch, on views of the buffers it reads."""
        (node,) = piece.nodes
        layouts = self.lowered.segmented.layouts
        self.scope[f"k{place}"] = library_call(node, tuple(layouts[out] for out in node.outs))
        views = iter(piece.operands)
        args = [
            self._view(next(views)) if v.is_tensor else self._scalar(v) for v in node.operands()
        ]
        outs = ", ".join(out.name for out in node.outs)
        self._step(f"{outs}, = k{place}({', '.join(args)})", Step(piece))
        self.aligned.update(dict.fromkeys(node.outs, True))
        self.not_ours.update(node.outs)

    def _scalar(self, value: Value) -> str:
        """A scalar as text: computed here, where it is no input."""
        node = self.fusion.producers.get(value)
        if node is not None and f"make_{value.name}" not in self.scope:
            args = [self._scalar(operand) for operand in node.operands()]
            self.scope[f"make_{value.name}"] = scalar_call(node)
            self.lines.append(f"{value.name} = make_{value.name}({', '.join(args)})")
        return value.name

    def _launch(self, place: int, piece: Segment, source: KernelSource) -> None:
        names = [arg.value.name for arg in source.args]
        started = time.perf_counter()
        if not self.on_gpu:
            self.scope[f"k{place}"] = interpreted(source)
            took = time.perf_counter() - started
            line = f"k{place}({', '.join(names)})"
            self._step(line, Step(piece, source, compile_seconds=took))
            return
        aligned = tuple(arg.is_tensor and self.aligned[arg.value] for arg in source.args)
        launch, head, tail, scratch = loaded(source, self.properties.arch, aligned, self.device)
        took = time.perf_counter() - started
        self.scope[f"k{place}"] = launch
        if scratch:
            size = math.prod(source.grid) * scratch
            self.lines.append(f"scratch = empty(({size},), (1,), torch.uint8)")
        heads = self._constants(f"k{place}_h", head)
        tails = self._constants(f"k{place}_t", tail)
        args = [
            f"{arg.value.name}.data_ptr()" if arg.is_tensor else arg.value.name
            for arg in source.args
        ]
        grid = [str(n) for n in source.grid]
        given = ", ".join([*grid, "stream", *heads, *args, *tails])
        self._step(f"k{place}({given})", Step(piece, source, aligned, took))

    def _constants(self, prefix: str, values: Sequence[object]) -> list[str]:
        names: list[str] = []
        for place, value in enumerate(values):
            if value is None or value is SCRATCH or isinstance(value, bool | int):
                names.append(repr(value))
                continue
            names.append(f"{prefix}{place}")
            self.scope[names[-1]] = value
        return names

    def _results(self) -> None:
        """Write aliased inputs, then hand out what is not hidden."""
        results = self.lowered.segmented.results
        shown: list[str] = []
        names: list[str] = []
        for place, result in enumerate(results):
            names.append(f"out{place}")
            self.lines.append(f"out{place} = {self._view(result)}")
        for place, output in enumerate(self.fusion.outputs):
            if output.alias_of is not None:
                target = self._name(output.alias_of)
                self.lines.append(f"{target}.copy_({names[place]})")
                names[place] = target
            if not output.hidden:
                shown.append(names[place])
        self.lines.append(f"return [{', '.join(shown)}]")

    def _view(self, result: Buffered) -> str:
        root = result.root
        name = self._name(root)
        if result.pairs:
            name = f"torch.view_as_complex({name})"
        if result.memory is None:
            return name
        memory = result.memory
        offset = str(memory.offset)
        if root in self.not_ours:
            offset = f"{name}.storage_offset() + {memory.offset}"
        return f"{name}.as_strided({memory.sizes!r}, {memory.strides!r}, {offset})"

    def _name(self, value: Value) -> str:
        """The tensor that was given, where kernels are given a copy."""
        return value.name if self._copy(value) is None else f"{value.name}_given"

    def _copy(self, value: Value) -> str | None:
        """What kernels read in the place of an input, if not its own memory."""
        if not value.is_tensor or value not in self.fusion.inputs or not self._is_read(value):
            return None
        if self.on_gpu and value.tensor.is_cpu:
            return f"{value.name}.to(device)"
        if may_be_negated(value.tensor):
            self.scope["resolve_neg"] = resolve_neg
            return f"resolve_neg({value.name})"
        return None
