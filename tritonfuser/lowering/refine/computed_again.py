"""Values that a kernel recomputes from more bytes than an earlier kernel has stored of them.

Example: the sum of two tensors is returned, and halves of it are multiplied by one another. The
second kernel, over half as many positions, loads both tensors, where the sum has half of their
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import Fusion, Value
from ..access.bytes_moved import held_bytes
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion
from .recomputation import recomputation_of


def computed_again(segmented: SegmentedFusion) -> tuple[str, ...]:
    """The names of stored values that a later kernel could load rather than recompute."""
    fusion, found, stored = segmented.fusion, dict[str, None](), set[Value]()
    for segment in segmented.segments:
        found.update(dict.fromkeys(_names(fusion, segment, stored)))
        stored.update(segment.outputs)
    return tuple(found)


def _names(fusion: Fusion, segment: Segment, stored: set[Value]) -> Iterator[str]:
    """The names of such values of one kernel; ``stored`` by earlier kernels."""
    for node in segment.nodes:
        for value in stored.intersection(node.outs).difference(segment.outputs):
            if _loaded_bytes(fusion, segment, value) > held_bytes(fusion, value):
                yield value.name


def _loaded_bytes(fusion: Fusion, segment: Segment, value: Value) -> int:
    """Bytes of the tensors that a kernel loads to compute a value."""
    found = recomputation_of(fusion, value, lambda v, node: v in segment.inputs)
    return sum(held_bytes(fusion, loaded) for loaded in found.loaded)
