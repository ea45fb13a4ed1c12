"""``SegmentedFusion``: a fusion as segments in execution order, with the buffers between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...heuristics.schedule import Rewrites
from ...ir import Fusion, Value
from ..access.aliases import BufferView
from .segment import Segment


@dataclass(frozen=True)
class SegmentedFusion:
    """A fusion cut into segments.

    Attributes
    ----------
    fusion : Fusion
        The fusion that the segments' nodes belong to. It has more nodes than the recorded one where
        a reduction is split into two steps.
    segments : tuple of Segment
        In execution order.
    results : tuple of BufferView
        Where the fusion's outputs lie, in their order.
    layouts : dict of Value to tuple of int
        The strides of each stored value's buffer, in elements.
    cuts : tuple of str
        Why kernels were started, and reductions split, in words.
    rewrites : Rewrites
        How ``fusion`` came from the simplified one.
    values : str
        The names of the recorded fusion's values, as a ``Schedule`` has them.
    """

    fusion: Fusion
    segments: tuple[Segment, ...]
    results: tuple[BufferView, ...]
    layouts: dict[Value, tuple[int, ...]]
    cuts: tuple[str, ...] = field(default=())
    rewrites: Rewrites = field(default=Rewrites())
    values: str = ""

    def launched_with(self, piece: Segment) -> tuple[Segment, ...]:
        """The other segments that the kernel of a segment computes."""
        return tuple(other for other in self.segments if other.launched_by == piece.name)

    def summary(self) -> str:
        """The segments on one line, and a line for each cut."""
        names = ", ".join(f"{s.name} {s.scheduler}" for s in self.segments) or "nothing to run"
        count = f"{len(self.segments)} segment{'' if len(self.segments) == 1 else 's'}"
        return "\n".join([f"{count}: {names}", *(f"  cut: {cut}" for cut in self.cuts)])

    def __str__(self) -> str:
        lines: list[str] = []
        for segment in self.segments:
            nest = " ".join(f"{a.name}:{a.extent}" for a in segment.parallel)
            inner = " ".join(f"{a.name}:{a.extent}" for a in segment.reduced)
            ins = ", ".join(v.name for v in segment.inputs)
            outs = ", ".join(v.name for v in segment.outputs)
            lines.append(f"{segment.name} {segment.scheduler} [{nest}; {inner}] {ins} -> {outs}")
            lines.append(f"   {segment.reason}")
            lines.append(f"   {segment.params}")
            lines += [f"   {', '.join(o.name for o in n.outs)} = {n.op}" for n in segment.nodes]
        return "\n".join([*lines, *(f"cut: {cut}" for cut in self.cuts)])
