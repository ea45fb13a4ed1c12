"""What a definition is cut into, and the bytes that it moves: what needs no run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tritonfuser.ir import Fusion, Node, Value
from tritonfuser.lowering.segments.segmented_fusion import SegmentedFusion

from ..measure.ideal_bytes import moved_bytes
from .definition_results import SegmentLine
from .definitions import RecordedDefinition


def segment_lines(cut: SegmentedFusion) -> tuple[SegmentLine, ...]:
    """The segments with their schedulers and params."""
    return tuple(
        SegmentLine(s.name, s.scheduler, len(s.nodes), str(s.params)) for s in cut.segments
    )


def outline(
    entry: RecordedDefinition, ir: Fusion, cut: SegmentedFusion | None, *, reduced: bool
) -> dict[str, Any]:
    """The fields of a ``Result`` that need no run; ``cut`` is None if lowering failed."""
    known = {
        "name": entry.name,
        "model": entry.model,
        "size": entry.size,
        "held_out": entry.held_out,
        "calls": entry.calls,
        "reduced": reduced,
        "ops": len(ir.nodes),
    }
    if cut is None:
        return {**known, "segments": (), "bytes": 0, "least": 0}
    return {
        **known,
        "segments": segment_lines(cut),
        "bytes": sum(_moved(s.nodes, s.inputs, s.outputs) for s in cut.segments),
        "least": _least_bytes(cut),
    }


def _least_bytes(cut: SegmentedFusion) -> int:
    """Bytes that a single kernel would move: values between segments do not count.

    Outputs that are views of inputs do not count either, as in the segments themselves.
    """
    read = {value for s in cut.segments for value in s.inputs}
    stored = {value for s in cut.segments for value in s.outputs}
    asked = {out.value for out in cut.fusion.outputs}
    nodes = [node for s in cut.segments for node in s.nodes]
    return _moved(nodes, read - stored, stored & asked | stored - read)


def _moved(nodes: Sequence[Node], reads: Iterable[Value], writes: Iterable[Value]) -> int:
    """Bytes moved: an expanded dim counts once in a read, and in full in a write."""
    whole = sum(v.tensor.numel * v.dtype.info.bytes for v in writes if v.is_tensor)
    return moved_bytes(nodes, reads, ()) + whole
