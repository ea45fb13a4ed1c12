"""Which of two segmentations of a fusion takes less time.

One more kernel costs its launch, and may save bytes if reductions of the same data then share rows.
Bytes and launches are known exactly, so they decide, unless the cost model predicts that the other
segmentation is faster by more than the error of the model. The model also knows of too few programs
for the device, and of strided loads, which fetch a sector for each element.
"""

from __future__ import annotations

from ...device import LEAST_KERNEL_S, DeviceProperties
from ...heuristics.cost.model import KernelTime
from ..cost import ERROR, LEAST_S, launch_seconds, moved_bytes, segment_time
from ..segments.segmented_fusion import SegmentedFusion

UNCERTAIN = ("instructions",)
"""The resources whose times the model is least certain of: it counts sectors, cache lines and
programs, but estimates instructions."""


def faster_cut(
    one: SegmentedFusion, other: SegmentedFusion, device: DeviceProperties
) -> SegmentedFusion:
    """The faster of two segmentations of a fusion; ``one`` if both take the same time.

    Sizes that vary have the values of this run.
    """
    first, second = sorted((one, other), key=lambda each: bytes_and_launches(each, device))
    if device.is_cpu or moved_bytes(first) < LEAST_S * device.bandwidth_bytes_per_s:
        return first
    seconds = _certain_seconds(first)
    return second if seconds - _seconds(second) > ERROR * seconds else first


def bytes_and_launches(segmented: SegmentedFusion, device: DeviceProperties) -> float:
    """Seconds of the bytes that all segments read and write, and of their launches."""
    launches = sum(not piece.finishes for piece in segmented.segments)
    return moved_bytes(segmented) / device.bandwidth_bytes_per_s + launches * device.launch_s


def _seconds(segmented: SegmentedFusion) -> float:
    """The time of all kernels by the cost model, with one launch; without what torch runs."""
    return launch_seconds(segmented) + sum(float(time.seconds) for time in _times(segmented))


def _certain_seconds(segmented: SegmentedFusion) -> float:
    """``_seconds`` without the resources of which the model is least certain (``UNCERTAIN``).

    A segmentation is not given up for a predicted number of instructions.
    """
    known = (
        max(float(s) for name, s in time.resources.items() if name not in UNCERTAIN)
        for time in _times(segmented)
    )
    return launch_seconds(segmented) + sum(LEAST_KERNEL_S + seconds for seconds in known)


def _times(segmented: SegmentedFusion) -> list[KernelTime]:
    times = map(segment_time, segmented.segments)
    return [time for time in times if time is not None]
