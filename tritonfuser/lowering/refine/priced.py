"""Segments in, what they take by the cost model out, beside the time of their bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...device import LEAST_KERNEL_S, DeviceProperties
from ...dtypes import Category
from ...heuristics.cost.constants import constants_of
from ...heuristics.cost.model import KernelTime
from ...heuristics.problem import Stream
from ...ir import Node
from ...ops.builder import as_call
from ...ops.table import View
from ...symbolic.sizes import hint
from ..cost import segment_time
from ..segments import Segment, SegmentedFusion

SMALL = 16
"""Tensors of less than this part of the largest one's bytes are small."""

SLOW = 1.5
"""Kernels of less than so many times the time of their bytes are left as they are."""


@dataclass(frozen=True, slots=True)
class Excess:
    """The time of a kernel's loads and stores beyond that of its bytes.

    Attributes
    ----------
    piece : Segment
        Its segment.
    seconds : float
        The time; above 0.
    """

    piece: Segment
    seconds: float

    @property
    def values(self) -> frozenset[str]:
        """The names of what it loads and computes."""
        made = (out.name for node in self.piece.nodes for out in node.outs)
        return frozenset((*made, *(value.name for value in self.piece.inputs)))

    @property
    def largest(self) -> int:
        """Bytes of the largest tensor that it loads or stores."""
        return _largest(self.piece)


@dataclass(frozen=True, slots=True)
class Priced:
    """Kernels and their time.

    Attributes
    ----------
    segmented : SegmentedFusion
        The kernels.
    seconds : float
        Of all of them, without what torch runs.
    excesses : tuple of Excess
        Of the kernels that take much longer than their bytes.
    """

    segmented: SegmentedFusion
    seconds: float
    excesses: tuple[Excess, ...]

    @property
    def excess(self) -> float:
        """Seconds beyond the time of all kernels' bytes."""
        return sum(each.seconds for each in self.excesses)


def priced(segmented: SegmentedFusion, device: DeviceProperties) -> Priced:
    """Kernels with their time at the sizes of this run. Not for the interpreter."""
    total, found = constants_of(device).launch_s, []
    for piece in segmented.segments:
        time = segment_time(_without_small(piece))
        if time is not None:
            seconds, least = _access(time), _least(piece, time, device)
            total += float(time.seconds)
            if seconds > SLOW * least:
                found.append(Excess(piece, seconds - least))
    return Priced(segmented, total, tuple(found))


def _without_small(piece: Segment) -> Segment:
    """A segment without the small tensors that lie along neither of its axes, as one of statistics.

    They stay in caches, and neighbours often share an element: the model counts a sector for each.
    """
    problem = piece.problem
    if problem is None or any(map(_indexes, piece.nodes)):
        return piece
    most = _largest(piece)

    def counts(stream: Stream) -> bool:
        along = 1 in (stream.x_stride, stream.r_stride)
        return along or SMALL * hint(stream.total_bytes) >= most

    streams = tuple(stream for stream in problem.streams if counts(stream))
    return replace(piece, problem=replace(problem, streams=streams))


def _largest(piece: Segment) -> int:
    streams = () if piece.problem is None else piece.problem.streams
    return max((hint(stream.total_bytes) for stream in streams), default=0)


def _indexes(node: Node) -> bool:
    """Whether an op reads at indices from memory: no neighbours share an element."""
    given = (v for v in node.operands() if v.is_tensor)
    return isinstance(as_call(node).op.form, View) and any(
        v.dtype.info.category is Category.INT for v in given
    )


def _access(time: KernelTime) -> float:
    """Seconds that loads and stores take, in memory or in a cache; 0 for those of a product."""
    found = (time.resources.get(name, 0.0) for name in ("memory", "L2 cache", "L1 cache"))
    return float(max(found))


def _least(piece: Segment, time: KernelTime, device: DeviceProperties) -> float:
    """Seconds of a kernel's bytes, or of what its programs wait if that is more.

    Programs wait as long for other bytes.
    """
    waits = LEAST_KERNEL_S + float(time.resources.get("latency", 0.0))
    return max(moved_bytes(piece) / device.bandwidth_bytes_per_s, waits)


def moved_bytes(piece: Segment) -> int:
    """Bytes that a kernel reads and writes in this run."""
    return hint(piece.bytes_read + piece.bytes_written)
