"""Lowered fusion in, ExecutionPlan out: allocations, launches and views as one generated function.

Nothing is left to decide in a call: sizes, strides, grids and argument orders are written into the
text, which ``TRITONFUSER_DUMP=plan`` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..device import DeviceProperties
from ..ir import Fusion, Value
from ..lowering.kernel import KernelSource
from ..lowering.pipeline import Lowered
from ..lowering.segments import Buffered, Segment
from ..options import dump
from .kernels import interpreted, loaded
from .library import library_call, scalar_call
from .parts import may_be_negated, resolve_neg, view_as_real
from .random_state import draw
from .signature import is_aligned


@dataclass(frozen=True, eq=False)
class ExecutionPlan:
    """A fusion bound to sizes, strides and a device: call it with the flat inputs.

    Attributes
    ----------
    lowered : Lowered
        Segments and kernels.
    device : torch.device
        Where it runs.
    text : str
        The generated function.
    run : callable
        ``list of inputs -> list of tensors``.
    """

    lowered: Lowered
    device: torch.device
    text: str
    run: Callable[[Sequence[Any]], list[torch.Tensor]]

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        return self.run(inputs)


def make_plan(
    lowered: Lowered,
    inputs: Sequence[Any],
    device: torch.device,
    properties: DeviceProperties,
) -> ExecutionPlan:
    """Compile the kernels for inputs like these and write the function that runs them."""
    writer = _PlanWriter(lowered, inputs, device, properties)
    text = writer.text()
    dump("plan", text)
    exec(compile(text, "<tritonfuser plan>", "exec"), writer.scope)
    return ExecutionPlan(lowered, device, text, writer.scope["run"])


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

    def text(self) -> str:
        self._inputs()
        self._random()
        segmented = self.lowered.segmented
        last = self._last_uses()
        for place, (piece, source) in enumerate(
            zip(segmented.segments, self.lowered.sources, strict=True)
        ):
            if piece.scheduler == "expr_eval":
                self._library(place, piece)
            else:
                for value in piece.outputs:
                    self._allocate(value)
            if source is not None:
                self._launch(place, source)
            gone = [v.name for v, use in last.items() if use == place]
            if gone:
                self.lines.append(f"del {', '.join(gone)}")
        self._results()
        body = "\n".join(f"    {line}" for line in self.lines)
        if self.on_gpu:
            body = self._guarded(body)
        return f"def run(inputs):\n{body}\n"

    def _guarded(self, body: str) -> str:
        """Make the plan's device the current one where it is not."""
        self.scope["get_device"] = torch.cuda.current_device
        self.scope["get_stream"] = torch._C._cuda_getCurrentRawStream
        index = self.device.index
        head = [
            f"    if get_device() != {index}:",
            "        with torch.cuda.device(device):",
            "            return run(inputs)",
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
        self.lines.append(f"{outs}, = k{place}({', '.join(args)})")
        self.aligned.update(dict.fromkeys(node.outs, False))
        self.not_ours.update(node.outs)

    def _scalar(self, value: Value) -> str:
        """A scalar as text: computed here, where it is no input."""
        node = self.fusion.producers.get(value)
        if node is not None and f"make_{value.name}" not in self.scope:
            args = [self._scalar(operand) for operand in node.operands()]
            self.scope[f"make_{value.name}"] = scalar_call(node)
            self.lines.append(f"{value.name} = make_{value.name}({', '.join(args)})")
        return value.name

    def _launch(self, place: int, source: KernelSource) -> None:
        names = [arg.value.name for arg in source.args]
        if not self.on_gpu:
            self.scope[f"k{place}"] = interpreted(source)
            self.lines.append(f"k{place}({', '.join(names)})")
            return
        aligned = tuple(arg.is_tensor and self.aligned[arg.value] for arg in source.args)
        launch, head, tail = loaded(source, self.properties.arch, aligned, self.device)
        self.scope[f"k{place}"] = launch
        heads = self._constants(f"k{place}_h", head)
        tails = self._constants(f"k{place}_t", tail)
        args = [
            f"{arg.value.name}.data_ptr()" if arg.is_tensor else arg.value.name
            for arg in source.args
        ]
        grid = [str(n) for n in source.grid]
        given = ", ".join([*grid, "stream", *heads, *args, *tails])
        self.lines.append(f"k{place}({given})")

    def _constants(self, prefix: str, values: Sequence[object]) -> list[str]:
        names: list[str] = []
        for place, value in enumerate(values):
            if value is None or isinstance(value, bool | int):
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
