"""Predicted times of kernels, and those that take much longer than the bytes they move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose

from ...device import LEAST_KERNEL_S, DeviceProperties
from ...heuristics.cost.constants import constants_of
from ...heuristics.cost.model import KernelTime, memory_rate
from ...ir import Value
from ...symbolic.sizes import hint
from ..access.bytes_moved import held_bytes
from ..cost import segment_time
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion

CUT_RESOURCES = ("memory", "L2 cache", "L2 stores", "L1 cache", "instructions")
"""Resources that another cut may leave less to do: sectors that are read for a few of their bytes,
values that are computed for each of their uses."""

LIGHT = 0.57
"""Share of the instructions that the model counts that kernels take at least: of 530 kernels as
compiled for sm_90 nine tenths have as much or more of their count, by the median kernel's share."""

SAME = 1e-3
"""Part of two times by which they may differ and count as the same."""

SLOW = 1.18
"""A kernel is looked at where it takes at least this many times the time of its bytes."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A kernel that takes longer than its bytes need, and how much a change could save.

    Attributes
    ----------
    piece : Segment
        Its segment.
    seconds : float
        Its time beyond that of its bytes. A change can save this much at most.
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
        streams = () if self.piece.problem is None else self.piece.problem.streams
        return max((hint(stream.total_bytes) for stream in streams), default=0)

    def innermost_axes(self, least: float) -> int:
        """Axes of the kernel that a tensor of so many bytes is contiguous along, one or another."""
        problem = self.piece.problem
        large = [s for s in problem.streams if hint(s.total_bytes) >= least] if problem else []
        return len({t.axis for s in large for t in s.stride_terms if t.div == t.step == 1})


@dataclass(frozen=True, slots=True)
class TimedKernels:
    """Kernels and their time.

    Attributes
    ----------
    segmented : SegmentedFusion
        The kernels.
    seconds : float
        Of all of them, without what torch runs.
    light : float
        The same with ``LIGHT`` of the instructions.
    excesses : tuple of Excess
        Of the kernels that take much longer than their share of all bytes.
    beyond_bytes : float
        Seconds of all kernels beyond those of their bytes.
    """

    segmented: SegmentedFusion
    seconds: float
    light: float
    excesses: tuple[Excess, ...]
    beyond_bytes: float

    def is_faster(self, other: TimedKernels, share: float) -> bool:
        """Whether they take less than a share of the time of others, and no longer if instructions
        take much less than predicted."""
        return self.seconds < share * other.seconds and self.light < other.light

    @property
    def excess(self) -> float:
        """Seconds that changes could save in all kernels, at most."""
        return sum(each.seconds for each in self.excesses)

    def is_like(self, other: TimedKernels) -> bool:
        """Whether other kernels have the same times, but for a small value in memory: they are cut
        alike, and what changes would save is the same."""
        pairs = (self.seconds, other.seconds), (self.excess, other.excess)
        return all(isclose(*pair, rel_tol=SAME) for pair in pairs)


def timed_kernels(segmented: SegmentedFusion, device: DeviceProperties) -> TimedKernels:
    """Kernels with their time at the sizes of this run. Not for the interpreter."""
    total = light = constants_of(device).launch_s
    beyond, found = 0.0, []
    shared = shared_bytes(segmented)
    for piece in segmented.segments:
        time = segment_time(piece)
        if time is not None:
            moved = _bytes_seconds(piece, shared, device)
            seconds, least = _throughput(time), max(moved, _waits(time))
            total += float(time.seconds)
            beyond += max(float(time.seconds) - moved, 0.0)
            light += float(time.with_instructions(LIGHT).seconds)
            if seconds > SLOW * least:
                found.append(Excess(piece, max(float(time.seconds), seconds) - least))
    return TimedKernels(segmented, total, light, tuple(found), beyond)


def _throughput(time: KernelTime) -> float:
    """Seconds of the busiest of the resources that a cut changes; 0 for a product."""
    return float(max(time.resources.get(name, 0.0) for name in CUT_RESOURCES))


def _bytes_seconds(
    piece: Segment, shared: Mapping[Value, float], device: DeviceProperties
) -> float:
    """The time of a kernel's bytes. Its reads of values that other kernels read too do not count:
    one kernel could read them once."""
    again = sum(shared[value] for value in piece.inputs if value in shared)
    moved = max(hint(piece.bytes_read) - again, 0.0) + hint(piece.bytes_written)
    return moved / memory_rate(device, constants_of(device))


def _waits(time: KernelTime) -> float:
    """The latency of a kernel: programs would wait as long for other bytes. The instructions of
    programs that run one after another, which are part of it, may become fewer."""
    found = time.resources
    waits = float(found.get("latency", 0.0)) - float(found.get("instructions", 0.0))
    return LEAST_KERNEL_S + max(waits, 0.0)


def shared_bytes(segmented: SegmentedFusion) -> dict[Value, float]:
    """For each value read by several kernels, the bytes of a read that one kernel would save."""
    readers = Counter(v for piece in segmented.segments for v in piece.inputs if v.is_tensor)
    return {
        value: hint(held_bytes(segmented.fusion, value)) * (1 - 1 / count)
        for value, count in readers.items()
        if count > 1
    }
