"""Schedules: every decision between a simplified fusion and its kernels, as plain data."""

from .rewrites import ReductionSplit, Rewrites
from .schedule import Schedule, restored_schedule
from .segment_schedule import SegmentSchedule, restored_segment

__all__ = [
    "ReductionSplit",
    "Rewrites",
    "Schedule",
    "SegmentSchedule",
    "restored_schedule",
    "restored_segment",
]
