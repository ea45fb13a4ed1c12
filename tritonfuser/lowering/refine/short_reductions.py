"""Reductions of a few elements along memory, which are unrolled where their kernels are slow.

A tile has a row for each of them. What is computed of positions along such a row is computed for
each element, a shifted neighbour once more, and rows of another length are another kernel's.
Unrolled they are elementwise ops of one kernel, whose positions along the row are numbers.
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
    ways: Callable[[], tuple[SegmentedFusion, ...]],
) -> SegmentedFusion:
    """The kernels; those without short reductions where the cost model says that they are faster.

    Parameters
    ----------
    first : SegmentedFusion
        The kernels, at sizes that do not vary.
    short : collection of str
        The names of the reductions that can be unrolled.
    ways : callable
        Cuts the fusion with all of them unrolled, in several ways.
    """
    if device.is_cpu or not _computes(first, short):
        return first
    now = timed_kernels(first, device)
    if not is_slow(now) or not any(_reduces(each.piece, short) for each in now.excesses):
        return first
    found = [timed_kernels(other, device) for other in ways()]
    fastest = min(found, key=lambda each: each.seconds)
    return fastest.segmented if fastest.is_faster(now, 1 - SAVED) else first


def _computes(segmented: SegmentedFusion, names: Collection[str]) -> bool:
    return any(_reduces(piece, names) for piece in segmented.segments)


def _reduces(piece: Segment, names: Collection[str]) -> bool:
    return any(member.node.out.name in names for member in piece.members)
