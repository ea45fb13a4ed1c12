"""``TiledSegment``: a segment with its kernel axes; all that its text depends on is decided.

Where sizes vary, this is the last step of a lowering that records guards. What is written of the
kernel afterwards compares sizes as plain numbers: the answers are known by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...dtypes import DataType
from ...ir import Value
from ...shapes.memory import INT32_LIMIT, Memory, index_dtype
from ...symbolic.queries import assume_at_most, assume_equal
from ..access.aliases import buffer_strides
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion
from .arrivals import Arrivals, arrivals
from .first_loads import with_loads_first
from .neighbours import with_neighbours
from .nest import Nest, Strides
from .nest_builder import nest_of
from .overlaps import with_overlaps


@dataclass(frozen=True)
class TiledSegment:
    """A segment on kernel axes.

    Attributes
    ----------
    segment : Segment
        What the kernel computes.
    nest : Nest
        The kernel axes.
    inputs, outputs : mapping
        Strides, in elements, of the buffers that it loads from and stores to.
    wide_index : bool
        Whether positions need 64 bits.
    finishing : tuple of (TiledSegment, Arrivals)
        The segments that the last programs of its kernel compute, and which programs those are.
    beside : tuple of TiledSegment
        The segments that share its launch.
    """

    segment: Segment
    nest: Nest
    inputs: Strides
    outputs: Strides
    wide_index: bool
    finishing: tuple[tuple[TiledSegment, Arrivals], ...] = ()
    beside: tuple[TiledSegment, ...] = ()


def widened(tiled: TiledSegment) -> TiledSegment:
    """The segment with 64-bit positions in all that its kernel computes."""
    finishing = tuple((widened(piece), meeting) for piece, meeting in tiled.finishing)
    beside = tuple(map(widened, tiled.beside))
    return replace(tiled, wide_index=True, finishing=finishing, beside=beside)


def tile_segment(segmented: SegmentedFusion, segment: Segment) -> TiledSegment:
    """The kernel axes of a segment that has a kernel."""
    inputs = {v: _strides(segmented, v) for v in segment.inputs if v.is_tensor}
    outputs = {v: segmented.layouts[v] for v in segment.outputs}
    nest = with_neighbours(nest_of(segment), segment, outputs)
    nest = with_loads_first(nest, segment)
    nest = with_overlaps(nest, segment, segmented)
    wide = _is_wide(nest, inputs, outputs)
    nest.ask_sizes(inputs)
    for value in (*inputs, *outputs):
        assume_equal(value.tensor.numel, 0)
    for tile in nest.tiles:
        if tile.block is not None:
            assume_equal(tile.axis.extent, 1)
    others = [(tile_segment(segmented, p), p) for p in segmented.launched_with(segment)]
    finishing = tuple((made, arrivals(segment, piece)) for made, piece in others if piece.finishes)
    beside = tuple(made for made, piece in others if piece.beside)
    return TiledSegment(segment, nest, inputs, outputs, wide, finishing, beside)


def _strides(segmented: SegmentedFusion, value: Value) -> tuple[int, ...]:
    found = segmented.layouts.get(value)
    return buffer_strides(segmented.fusion, value) if found is None else found


def _is_wide(nest: Nest, inputs: Strides, outputs: Strides) -> bool:
    """Whether positions in a tensor, or along an axis of the kernel, need 64 bits."""
    long = any(assume_at_most(INT32_LIMIT, tile.axis.extent) for tile in nest.tiles)
    buffers = (*inputs.items(), *outputs.items())
    memories = [Memory(value.tensor.sizes, strides) for value, strides in buffers]
    return long or index_dtype(memories) is not DataType.Int32
