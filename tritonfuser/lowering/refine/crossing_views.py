"""Inputs that lie across the rows of kernels with reductions, as views that could be copied.

A layer norm's backward has rows along the features, and the gradient of what comes behind it may
have them outermost, as where a network mixes tokens. One kernel would fetch a sector for each
element of it: so one kernel reduces along rows, another over them, and both read all tensors.
Where the view is in memory in the order of its dims, one kernel does both.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import Value
from ...symbolic.sizes import hint
from ..access.bytes_moved import held_bytes
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion


def crossing_views(segmented: SegmentedFusion) -> tuple[str, ...]:
    """The names of permuted inputs of such kernels, more than half as large as the largest."""
    found = dict[str, None]()
    for piece in segmented.segments:
        problem = piece.problem
        if problem is not None and hint(problem.reduced) > 1 and problem.crosses:
            found.update(dict.fromkeys(view.name for view in _turned(segmented, piece)))
    return tuple(found)


def _turned(segmented: SegmentedFusion, piece: Segment) -> Iterator[Value]:
    fusion = segmented.fusion
    large = max((hint(held_bytes(fusion, v)) for v in piece.inputs if v.is_tensor), default=0)
    for node in piece.nodes:
        operand = node.args[0] if node.op == "permute" else None
        if not isinstance(operand, Value) or operand not in fusion.inputs:
            continue
        if operand in piece.inputs and 2 * hint(held_bytes(fusion, operand)) > large:
            yield node.out
