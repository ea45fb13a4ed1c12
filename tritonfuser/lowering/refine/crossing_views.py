"""Permuted inputs that are contiguous across the rows of a kernel with reductions.

Example: a layer norm's backward has rows along the features, while the incoming gradient may have
the features outermost in memory, as in a network that mixes tokens. A single kernel would fetch a
sector for each element of it. So one kernel reduces along rows, another one over them, and both
read all tensors. With the gradient copied to memory in the order of its dims, one kernel does both.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import Value
from ...symbolic.sizes import hint
from ..access.bytes_moved import held_bytes
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion


def crossing_views(segmented: SegmentedFusion) -> tuple[str, ...]:
    """The names of such inputs that have more than half of the bytes of their kernel's largest."""
    found = dict[str, None]()
    for segment in segmented.segments:
        problem = segment.problem
        if problem is not None and hint(problem.reduced) > 1 and problem.crosses:
            found.update(dict.fromkeys(view.name for view in _permuted(segmented, segment)))
    return tuple(found)


def _permuted(segmented: SegmentedFusion, segment: Segment) -> Iterator[Value]:
    """The large inputs of a kernel that are permuted, as the permuted values."""
    fusion = segmented.fusion
    large = max((hint(held_bytes(fusion, v)) for v in segment.inputs if v.is_tensor), default=0)
    for node in segment.nodes:
        operand = node.args[0] if node.op == "permute" else None
        if not isinstance(operand, Value) or operand not in fusion.inputs:
            continue
        if operand in segment.inputs and 2 * hint(held_bytes(fusion, operand)) > large:
            yield node.out
