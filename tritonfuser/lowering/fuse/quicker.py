"""Two ways to cut a fusion in, the one that takes less time out.

A kernel more costs its launch, and saves bytes where reductions of the same data share rows. That
much is sure of any device, and decides, unless the cost model says that the other way takes less
time by more than it errs. It sees what bytes do not say: programs that are too few, or that read a
sector for each element.
"""

from __future__ import annotations

from ...device import LEAST_KERNEL_S, DeviceProperties
from ...heuristics.cost.model import KernelTime
from ...heuristics.search.choice import ROUGH
from ..cost import ERROR, LEAST_S, launch_seconds, moved_bytes, segment_time
from ..segments import SegmentedFusion


def quicker(
    one: SegmentedFusion, other: SegmentedFusion, device: DeviceProperties
) -> SegmentedFusion:
    """The one of two ways to cut a fusion that takes less time; the first where both take as much.

    Sizes that vary are those of this run.
    """
    first, second = sorted((one, other), key=lambda way: bytes_and_launches(way, device))
    if device.is_cpu or moved_bytes(first) < LEAST_S * device.bandwidth_bytes_per_s:
        return first
    seconds = _surely(first)
    return second if seconds - _seconds(second) > ERROR * seconds else first


def bytes_and_launches(way: SegmentedFusion, device: DeviceProperties) -> float:
    """Seconds of the bytes that all segments read and write, and of their launches."""
    launches = sum(not piece.finishes for piece in way.segments)
    return moved_bytes(way) / device.bandwidth_bytes_per_s + launches * device.launch_s


def _seconds(way: SegmentedFusion) -> float:
    """The time of all kernels by the cost model, and a launch, without what torch runs."""
    return launch_seconds(way) + sum(float(time.seconds) for time in _times(way))


def _surely(way: SegmentedFusion) -> float:
    """The same without what the model knows least: a way is not given up for its instructions."""
    known = (
        max(float(s) for name, s in time.resources.items() if name not in ROUGH)
        for time in _times(way)
    )
    return launch_seconds(way) + sum(LEAST_KERNEL_S + seconds for seconds in known)


def _times(way: SegmentedFusion) -> list[KernelTime]:
    times = map(segment_time, way.segments)
    return [time for time in times if time is not None]
