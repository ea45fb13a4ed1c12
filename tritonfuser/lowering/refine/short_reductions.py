"""Unrolls reductions of a few contiguous elements, if their kernels are slow.

As a reduction, each has a row of a tile: functions of positions along the row are computed for each
element, shifted neighbours are computed again, and rows of other lengths need another kernel.
Unrolled, they are elementwise ops of one kernel, in which positions along the row are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ...device import DeviceProperties
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion
from .kernel_times import timed_kernels
from .search import SAVED, is_slow


def with_short_unrolled(
    first: SegmentedFusion,
    short: Collection[str],
    device: DeviceProperties,
    segmentations: Callable[[], tuple[SegmentedFusion, ...]],
) -> SegmentedFusion:
    """The kernels, or those with short reductions unrolled, if these are predicted to be faster.

    Parameters
    ----------
    first : SegmentedFusion
        The kernels, at sizes that do not vary.
    short : collection of str
        The names of the reductions that can be unrolled.
    segmentations : callable
        Segmentations of the fusion with all of them unrolled.
    """
    if device.is_cpu or not _computes(first, short):
        return first
    now = timed_kernels(first, device)
    if not is_slow(now) or not any(_reduces(each.segment, short) for each in now.excesses):
        return first
    found = [timed_kernels(other, device) for other in segmentations()]
    fastest = min(found, key=lambda each: each.seconds)
    return fastest.segmented if fastest.is_faster(now, 1 - SAVED) else first


def _computes(segmented: SegmentedFusion, names: Collection[str]) -> bool:
    """Whether some kernel has one of these reductions."""
    return any(_reduces(segment, names) for segment in segmented.segments)


def _reduces(segment: Segment, names: Collection[str]) -> bool:
    return any(member.node.out.name in names for member in segment.members)
