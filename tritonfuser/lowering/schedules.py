"""The ``Schedule`` that a ``SegmentedFusion`` was made by."""

from __future__ import annotations

from ..heuristics.schedule import Schedule, SegmentSchedule
from .segments.member import Member
from .segments.segment import Segment
from .segments.segmented_fusion import SegmentedFusion


def schedule_of(segmented: SegmentedFusion) -> Schedule:
    """The schedule of a segmented fusion: ``segment_as`` makes the same segments of it."""
    pieces = tuple(segment_schedule(piece) for piece in segmented.segments)
    return Schedule(values=segmented.values, rewrites=segmented.rewrites, segments=pieces)


def segment_schedule(piece: Segment) -> SegmentSchedule:
    """The schedule of a segment."""
    if piece.runs_torch:
        return SegmentSchedule(computes=(piece.nodes[0].out.name,), params=piece.params)
    own = {out for member in piece.members for out in member.node.outs}
    return SegmentSchedule(
        computes=tuple(m.node.out.name for m in piece.members),
        stores=tuple(s.name for s in piece.stores if s.value not in own),
        loads=tuple(v.name for v in piece.loads),
        co_reduced=tuple(m.node.out.name for m in piece.members if _is_co_reduced(m, piece)),
        overlap=piece.overlap,
        finishes=bool(piece.finishes),
        beside=bool(piece.beside),
        params=piece.params,
    )


def _is_co_reduced(member: Member, piece: Segment) -> bool:
    """Whether it reduces results of the kernel's own rows."""
    return bool(piece.co_reduced) and set(member.across) == set(piece.co_reduced)
