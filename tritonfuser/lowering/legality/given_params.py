"""Given params in the place of those that schedulers proposed, where segments allow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import ParamsError
from ...heuristics.params import HeuristicParams
from ..axis_order import explicit
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion
from .finishing import in_launch_of
from .params import why_not_params


def are_of(params: Sequence[HeuristicParams], segmented: SegmentedFusion) -> bool:
    """Whether there is one params object a segment, of the segment's scheduler."""
    return [p.scheduler for p in params] == [s.scheduler for s in segmented.segments]


def with_params(segmented: SegmentedFusion, params: Sequence[HeuristicParams]) -> SegmentedFusion:
    """The segments with given params in place of their own, one for each segment.

    Raises
    ------
    ParamsError
        There are not as many as segments, or a segment may not have its params.
    """
    if len(params) != len(segmented.segments):
        raise ParamsError(
            f"{len(params)} params for {len(segmented.segments)} segments",
            hint=f"The segments are {_listed(segmented)}; fd.heuristics(inputs), with the options "
            "of this run, gives one for each.",
        )
    pairs = zip(segmented.segments, params, strict=True)
    made = replace(segmented, segments=tuple(_under(piece, chosen) for piece, chosen in pairs))
    named = {piece.name: piece for piece in made.segments}
    return replace(
        made,
        segments=tuple(
            in_launch_of(named[piece.launched_by], piece) if piece.launched_by else piece
            for piece in made.segments
        ),
    )


def _listed(segmented: SegmentedFusion) -> str:
    return ", ".join(f"{s.name} ({type(s.params).__name__})" for s in segmented.segments)


def _under(segment: Segment, params: HeuristicParams) -> Segment:
    refusal = why_not_params(segment, params)
    if refusal is not None:
        raise ParamsError(refusal.reason, hint=refusal.hint)
    return replace(segment, params=explicit(segment, params))
