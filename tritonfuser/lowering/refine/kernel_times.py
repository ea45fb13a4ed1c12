"""Predicted times of kernels, and their excess over the time of the bytes that they have to
move."""

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
"""Resources of which another segmentation may use less: sectors that are read for a few of their
bytes, values that are computed for each of their uses."""

LIGHT = 0.57
"""Lower bound of the instructions of a kernel, as a share of those that the model counts: of 530
kernels as compiled for sm_90, nine tenths have at least this share of their count, relative to the
median kernel's share."""

SAME = 1e-3
"""Relative difference up to which two times count as the same."""

SLOW = 1.18
"""A kernel has an excess if it takes at least this many times the time of its bytes."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A kernel that takes longer than its bytes need.

    Attributes
    ----------
    segment : Segment
        Its segment.
    seconds : float
        Its excess: the predicted time beyond that of its bytes, which a change can save at most.
    """

    segment: Segment
    seconds: float

    @property
    def values(self) -> frozenset[str]:
        """The names of the values that it loads and computes."""
        made = (out.name for node in self.segment.nodes for out in node.outs)
        return frozenset((*made, *(value.name for value in self.segment.inputs)))

    @property
    def largest(self) -> int:
        """Bytes of the largest tensor that it loads or stores."""
        streams = () if self.segment.problem is None else self.segment.problem.streams
        return max((hint(stream.total_bytes) for stream in streams), default=0)

    def innermost_axes(self, least: float) -> int:
        """Number of axes that any tensor of at least so many bytes is contiguous along."""
        problem = self.segment.problem
        large = [s for s in problem.streams if hint(s.total_bytes) >= least] if problem else []
        return len({t.axis for s in large for t in s.stride_terms if t.div == t.step == 1})


@dataclass(frozen=True, slots=True)
class TimedKernels:
    """A segmentation and its predicted time.

    Attributes
    ----------
    segmented : SegmentedFusion
        The kernels.
    seconds : float
        Of all kernels together, without ops that torch runs.
    light : float
        The same if the kernels had ``LIGHT`` of the predicted instructions.
    excesses : tuple of Excess
        The kernels that take much longer than their bytes need.
    beyond_bytes : float
        Seconds of all kernels beyond those of their bytes.
    """

    segmented: SegmentedFusion
    seconds: float
    light: float
    excesses: tuple[Excess, ...]
    beyond_bytes: float

    def is_faster(self, other: TimedKernels, share: float) -> bool:
        """Whether these kernels take less than a share of the time of others, and are still faster
        if instructions take much less time than predicted."""
        return self.seconds < share * other.seconds and self.light < other.light

    @property
    def excess(self) -> float:
        """The excess of all kernels: the most that changes can save."""
        return sum(each.seconds for each in self.excesses)

    def is_like(self, other: TimedKernels) -> bool:
        """Whether other kernels have the same time and excess. They then differ in a small value in
        memory at most, and the same changes would save the same."""
        pairs = (self.seconds, other.seconds), (self.excess, other.excess)
        return all(isclose(*pair, rel_tol=SAME) for pair in pairs)


def timed_kernels(segmented: SegmentedFusion, device: DeviceProperties) -> TimedKernels:
    """A segmentation with its times at the sizes of this run. Not for the interpreter."""
    total = light = constants_of(device).launch_s
    beyond, found = 0.0, []
    shared = shared_bytes(segmented)
    for segment in segmented.segments:
        time = segment_time(segment)
        if time is not None:
            moved = _bytes_seconds(segment, shared, device)
            seconds, least = _throughput(time), max(moved, _latency(time))
            total += float(time.seconds)
            beyond += max(float(time.seconds) - moved, 0.0)
            light += float(time.with_instructions(LIGHT).seconds)
            if seconds > SLOW * least:
                found.append(Excess(segment, max(float(time.seconds), seconds) - least))
    return TimedKernels(segmented, total, light, tuple(found), beyond)


def _throughput(time: KernelTime) -> float:
    """Seconds of the busiest of ``CUT_RESOURCES``; 0 for a matrix product."""
    return float(max(time.resources.get(name, 0.0) for name in CUT_RESOURCES))


def _bytes_seconds(
    segment: Segment, shared: Mapping[Value, float], device: DeviceProperties
) -> float:
    """The time of the bytes that a kernel has to move. Values that several kernels read count once,
    divided among them: one kernel could read them for all."""
    repeated = sum(shared[value] for value in segment.inputs if value in shared)
    moved = max(hint(segment.bytes_read) - repeated, 0.0) + hint(segment.bytes_written)
    return moved / memory_rate(device, constants_of(device))


def _latency(time: KernelTime) -> float:
    """Seconds of a kernel's start and latency, which no change saves. Instructions of successive
    programs are part of the predicted latency; they may become fewer."""
    found = time.resources
    latency = float(found.get("latency", 0.0)) - float(found.get("instructions", 0.0))
    return LEAST_KERNEL_S + max(latency, 0.0)


def shared_bytes(segmented: SegmentedFusion) -> dict[Value, float]:
    """For each value read by several kernels, the bytes of a read that one kernel would save."""
    readers = Counter(v for segment in segmented.segments for v in segment.inputs if v.is_tensor)
    return {
        value: hint(held_bytes(segmented.fusion, value)) * (1 - 1 / count)
        for value, count in readers.items()
        if count > 1
    }
