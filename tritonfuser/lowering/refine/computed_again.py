"""What kernels compute again that an earlier kernel has stored, from inputs of more bytes."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import Fusion, Value
from ..access.bytes_moved import held_bytes
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion


def computed_again(segmented: SegmentedFusion) -> tuple[str, ...]:
    """The names of stored values that a later kernel could load in place of what they are made of.

    The sum of two tensors is returned, and halves of it are multiplied by one another: in a kernel
    of half as many positions, which loads both tensors where the sum has half of their bytes.
    """
    fusion, found, stored = segmented.fusion, dict[str, None](), set[Value]()
    for piece in segmented.segments:
        found.update(dict.fromkeys(_names(fusion, piece, stored)))
        stored.update(piece.outputs)
    return tuple(found)


def _names(fusion: Fusion, piece: Segment, stored: set[Value]) -> Iterator[str]:
    for node in piece.nodes:
        for value in stored.intersection(node.outs).difference(piece.outputs):
            if _loaded_bytes(fusion, piece, value) > held_bytes(fusion, value):
                yield value.name


def _loaded_bytes(fusion: Fusion, piece: Segment, value: Value) -> int:
    """Bytes of the tensors that a kernel loads to compute a value."""
    loaded, seen, stack = 0, {value}, [value]
    while stack:
        value = stack.pop()
        node = fusion.producers.get(value)
        if value in piece.inputs or node is None:
            loaded += held_bytes(fusion, value)
            continue
        fresh = [v for v in node.operands() if v.is_tensor and v not in seen]
        seen.update(fresh)
        stack += fresh
    return loaded
