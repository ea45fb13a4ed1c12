"""A device's part of a tensor that is here as a larger part, as ops on it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...ir import Operand, Value
from ...ops.builder import GraphBuilder
from ..record.cuts import Cut, blocks, count
from ..record.device_mesh import DeviceMesh
from ..vocabulary.enums import ParallelType
from .placement import Placement

Span = tuple[int, int, int]
"""An extent, and the start and the end of what is taken of it."""


def part_of(
    builder: GraphBuilder,
    source: Operand,
    have: Placement,
    want: Placement,
    mesh: DeviceMesh,
    device: int,
) -> Operand:
    """Record what takes the part: a slice, between reshapes where a dim is cut in blocks.

    An expanded dim stays expanded, as ops that follow have it: the part is taken of one position.

    Parameters
    ----------
    source : Operand
        The tensor as it is in ``have``.
    want : Placement
        Every dim of it is cut as in ``have``, and then further.
    device : int
        Whose part.
    """
    assert isinstance(source, Value)
    dims = source.tensor.dims
    pairs = zip(have.shards, want.shards, source.tensor.sizes, strict=True)
    spans = [_spans(cut, wanted, size, mesh, device) for cut, wanted, size in pairs]
    expanded = [place for place, dim in enumerate(dims) if dim.expanded]
    if not expanded:
        return _sliced(builder, source, spans)
    kept = [own for own, dim in zip(spans, dims, strict=True) if not dim.expanded]
    found: Operand = builder.call("squeeze", source, expanded, True)
    found = _sliced(builder, found, kept)
    found = builder.call("broadcast", found, [dim.expanded for dim in dims])
    whole: Operand = builder.call("expand", found, [_taken(own) for own in spans])
    return whole


def _sliced(builder: GraphBuilder, source: Operand, spans: Sequence[list[Span]]) -> Operand:
    """Record what takes a run of each factor of each dim."""
    flat = [span for own in spans for span in own]
    found: Operand = source
    if len(flat) > len(spans):
        found = builder.call("reshape", found, [extent for extent, _, _ in flat])
    found = builder.call("slice", found, [start for _, start, _ in flat], [e for _, _, e in flat])
    if len(flat) > len(spans):
        found = builder.call("reshape", found, [_taken(own) for own in spans])
    return found


def _taken(spans: list[Span]) -> int:
    """The extent of what is taken of a dim."""
    return prod(end - start for _, start, end in spans)


def _spans(have: Cut, want: Cut, size: int, mesh: DeviceMesh, device: int) -> list[Span]:
    """A local dim as factors, of each of which all or a run is taken."""
    found: list[Span] = []
    left = size
    # What is cut further is each block of those that are here.
    for factor in (blocks(have), *want[len(have) :]):
        extent = count(mesh, factor)
        left //= extent
        if isinstance(factor, ParallelType):
            place = mesh.coordinate(device, factor)
            _append(found, (extent, place, place + 1))
        else:
            _append(found, (extent, 0, extent))
    _append(found, (left, 0, left))
    return found


def _append(spans: list[Span], inner: Span) -> None:
    """Add a factor; one with the one before it, where a run of the two says the same."""
    extent, start, end = inner
    before = spans[-1] if spans else (1, 0, 1)
    if before[2] - before[1] == 1 or end - start == extent:
        first, last = before[1] * extent, (before[2] - 1) * extent
        spans[-1:] = [(before[0] * extent, first + start, last + end)]
    else:
        spans.append(inner)
