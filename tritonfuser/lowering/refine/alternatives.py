"""Segmentations that a tuner may time, whether or not the cost model finds them much faster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...device import DeviceProperties
from ...ir import Fusion
from ..fuse.segmentation import HEURISTIC, Choice, Segmenter
from ..fuse.splits.split_policy import CommonRows
from ..segments.segmented_fusion import SegmentedFusion
from .changes import try_changes, try_splits
from .kernel_times import timed_kernels
from .reduced_pieces import in_pieces
from .search import try_best_first, with_rows_moved
from .timed_choices import TimedChoices


def alternatives(
    fusion: Fusion,
    device: DeviceProperties,
    make: Segmenter,
    should_continue: Callable[[], bool],
) -> list[SegmentedFusion]:
    """Segmentations of a fusion with constant sizes, those that are predicted to be fastest first;
    one alone for the interpreter, whose kernels have no times.

    Parameters
    ----------
    device : DeviceProperties
        The device to schedule for.
    make : Segmenter
        Segments the fusion by a choice.
    should_continue : callable
        Whether there is time for another segmentation.
    """
    first = make(HEURISTIC)
    if device.is_cpu:
        return [first]
    choice = Choice(materialized=first.rewrites.invariants)
    times = TimedChoices(
        device,
        make.base,
        make,
        {choice: timed_kernels(first, device)},
        should_continue=should_continue,
    )
    others = [
        Choice(materialized=()),
        *with_rows_moved(first, choice),
        *(replace(choice, rows=rows) for rows in CommonRows),
        *in_pieces(fusion, times, choice),
    ]
    for other in others:
        if times.may_try:
            times(other)
    for changes in (try_changes, try_splits):
        try_best_first(times, changes, lambda found: found.excess > 0)
    found = sorted(times.known.values(), key=lambda each: each.seconds)
    return [each.segmented for each in found]
