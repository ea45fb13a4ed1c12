"""``BufferWriter``: the memory of a plan. Allocations, frees, addresses, alignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch

from ...ir import Value
from ...lowering.kernel_source import KernelSource
from ...lowering.lowered import Lowered
from ...lowering.segments.segment import Segment
from .given_inputs import GivenInputs
from .in_place import InPlaceGuard, replaced_inputs
from .plan_lines import PlanLines
from .varying import Varying


class BufferWriter:
    """Writes the lines that allocate and free buffers, and knows where each tensor lies.

    A tensor ``tv0`` whose address kernels take has it in the variable ``tv0_at``.

    Attributes
    ----------
    allocated : dict of Value to int
        The index of the line that allocates each buffer.
    in_place : dict of Value to Value
        The outputs that kernels may store into an input, each with that input.
    must_be_aligned : set of Value
        Inputs whose alignment kernels were compiled for.
    """

    def __init__(
        self, text: PlanLines, lowered: Lowered, given: GivenInputs, varying: Varying, on_gpu: bool
    ) -> None:
        self._text = text
        self._lowered = lowered
        self._fusion = lowered.segmented.fusion
        self._given = given
        self._varying = varying
        self._on_gpu = on_gpu
        sources = (source for source in lowered.sources if source is not None)
        self._uses = Counter(arg.value for s in sources for arg in s.args if arg.is_tensor)
        self._addressed = self._addressed_inputs() if on_gpu else set()
        self._aligned = dict(given.aligned)
        self._last_uses = self._found_last_uses()
        self.allocated: dict[Value, int] = {}
        self.in_place = replaced_inputs(lowered, given.writable, on_gpu)
        self.must_be_aligned: set[Value] = set()

    def _addressed_inputs(self) -> set[Value]:
        """The inputs that kernels read as they are."""
        copied = {*self._given.copies, *(part.value for part in self._lowered.parts)}
        return {v for v in self._fusion.inputs if v in self._uses and v not in copied}

    def _found_last_uses(self) -> dict[Value, int]:
        """The last segment that uses each buffer that no result needs."""
        kept = {r.root for r in self._lowered.segmented.results}
        found: dict[Value, int] = {}
        for place, segment in enumerate(self._lowered.segmented.segments):
            for value in (*segment.inputs, *segment.outputs):
                if value.is_tensor and value not in kept and value not in self._fusion.inputs:
                    found[value] = place
        return found

    # -- lines ---------------------------------------------------------------

    def guard_in_place(self) -> None:
        """Write the check that inputs which kernels may store into overlap no other."""
        if not self.in_place:
            return
        written = self.in_place.values()
        guard = InPlaceGuard(self._fusion, self._given.on_device, written)
        self._text.scope["overlap"] = guard.check(self._varying)
        self._text.scope["increment_version"] = torch.autograd.graph.increment_version
        self.require_aligned(written)
        if self._on_gpu:
            self._addressed.update(v for v in guard.tensors if v not in self._given.copies)
        self._text.add(*guard.lines(self._start))

    def allocate_before(self, place: int) -> None:
        """Write the allocations of the results of a segment that is launched next."""
        segments = self._allocated_before(place)
        for value in dict.fromkeys(out for segment in segments for out in segment.outputs):
            if value not in self.allocated:  # a scatter's result is written twice
                self._allocate(value)

    def free_after(self, place: int) -> None:
        """Write the end of the buffers that no segment behind this one uses."""
        gone = [v.name for v, use in self._last_uses.items() if use == place]
        if gone:
            self._text.add(f"del {', '.join(gone)}")

    def _allocated_before(self, place: int) -> Iterable[Segment]:
        """The segments whose results are allocated before a launch.

        They are those that it computes. Where it stores into an input, they are all that follow, so
        that no later allocation can fail.
        """
        segmented = self._lowered.segmented
        segment = segmented.segments[place]
        launched = (segment, *segmented.launched_with(segment))
        writes = any(out in self.in_place for each in launched for out in each.outputs)
        return segmented.segments[place:] if writes else launched

    def _allocate(self, value: Value) -> None:
        """The lines that allocate a buffer, and take its address where several kernels use it."""
        type_ = value.tensor
        strides = self._lowered.segmented.layouts[value]
        sizes, steps = self._varying.text(type_.sizes), self._varying.text(strides)
        dtype = f"{type_.dtype.info.torch}"
        if self._on_gpu:
            short = dtype.replace(".", "_")  # torch.bool is not to hide Python's
            self._text.scope[short] = type_.dtype.info.torch
            made = f"empty({sizes}, {steps}, {short})"
        else:
            made = f"torch.empty_strided({sizes}, {steps}, dtype={dtype}, device=device)"
        if value in self.in_place:
            made = f"{self.in_place[value].name} if is_apart else {made}"
        self.allocated[value] = len(self._text.lines)
        self._text.add(f"{value.name} = {made}")
        if self._on_gpu and self._uses[value] > 1:
            self._addressed.add(value)
            self._text.add(f"{value.name}_at = {value.name}.data_ptr()")
        self.mark_aligned((value,))

    # -- addresses -----------------------------------------------------------

    def address(self, value: Value) -> str:
        """The address of a tensor as an expression."""
        return f"{value.name}_at" if self.is_addressed(value) else f"{value.name}.data_ptr()"

    def is_addressed(self, value: Value) -> bool:
        """Whether a variable has the address of a tensor."""
        return value in self._addressed

    def _start(self, value: Value) -> str:
        """The address of the tensor that the caller gave, as an expression."""
        copied = value in self._given.copies
        return f"{self._given.name(value)}.data_ptr()" if copied else self.address(value)

    # -- alignment -----------------------------------------------------------

    def mark_aligned(self, values: Iterable[Value]) -> None:
        """Take a note of buffers that are aligned, since the run itself makes them."""
        self._aligned.update(dict.fromkeys(values, True))

    def aligned(self, source: KernelSource) -> tuple[bool, ...]:
        """Which arguments of a kernel are aligned to 16 bytes; buffers of the plan always are."""
        return tuple(a.is_tensor and self._aligned.get(a.value, True) for a in source.args)

    def require_aligned(self, values: Iterable[Value]) -> None:
        """Have guards check that inputs are aligned. Of a complex part, its source is checked."""
        sources = {part.value: part.source for part in self._lowered.parts}
        self.must_be_aligned.update(sources.get(value, value) for value in values)
