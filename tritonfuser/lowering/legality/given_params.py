"""Given params in the place of those that schedulers proposed, where segments allow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import ParamsError
from ...heuristics.params import HeuristicParams
from ..segments import Segment, SegmentedFusion
from .params import why_not_params


def with_params(segmented: SegmentedFusion, params: Sequence[HeuristicParams]) -> SegmentedFusion:
    """The same segments under given params, one a segment.

    Raises
    ------
    ParamsError
        There are not as many as segments, or a segment may not have its params.
    """
    if len(params) != len(segmented.segments):
        raise ParamsError(
            f"{len(params)} params for {len(segmented.segments)} segments",
            hint="fd.heuristics(inputs) gives one a segment, in this order.",
        )
    pairs = zip(segmented.segments, params, strict=True)
    return replace(segmented, segments=tuple(_under(piece, chosen) for piece, chosen in pairs))


def _under(segment: Segment, params: HeuristicParams) -> Segment:
    refusal = why_not_params(segment, params)
    if refusal is not None:
        raise ParamsError(refusal.reason, hint=refusal.hint)
    return replace(segment, params=params)
