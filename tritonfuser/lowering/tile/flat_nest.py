"""The kernel axes of a pointwise kernel: one tile, and the elements beyond the last whole vector.

Triton vectorizes a masked load where the mask is the same for all elements of a vector. Of a mask
``x < 139233559`` it sees that for single elements only. So where the elements are no multiple of a
vector, the tiles end with the last whole vector, and one more program has the elements behind it.
"""

from __future__ import annotations

from dataclasses import replace

from ...device import VECTOR_BYTES
from ...heuristics.integers import ceil_div
from ...heuristics.params import PointwiseParams
from ...heuristics.streams import Stream
from ...symbolic.index_expr import Axis, extent
from ...symbolic.queries import is_known_equal, is_known_multiple
from ...symbolic.sizes import is_size
from ..axis_order import ordered
from ..segments.segment import Segment
from .axis_map import AxisMap, RowMaps
from .nest import Nest
from .tile import Tile
from .tiling import PEELED_NAMES, spread, tile_over


def flat_nest(segment: Segment, params: PointwiseParams) -> Nest:
    """The tile of a program, and where there is one, that of the rest."""
    block, constants = params.block_x, (("XBLOCK", params.block_x),)
    along = ordered(segment, params)
    x, axes = tile_over("x", along, block)
    programs = flat_programs(segment, params)
    whole = before_rest(segment, params)
    if whole is None:
        x = replace(x, neighbours=params.vectorization_factor)
        return Nest((x,), None, ((x, programs),), RowMaps(AxisMap(axes)), constants)
    # The program of the rest has no position before the limit.
    x = replace(x, neighbours=params.vectorization_factor, masked=True, stop=whole, limit=whole)
    name, vector = PEELED_NAMES[0], _vector(segment, params)
    rest = Tile(Axis(name, extent(along)), f"{name.upper()}BLOCK", True, vector, start=whole)
    return Nest(
        (x, rest),
        None,
        ((x, programs),),
        RowMaps(AxisMap(axes), (AxisMap(spread(along, rest.axis)),)),
        (*constants, (str(rest.block), vector)),
        rest=rest,
    )


def flat_programs(segment: Segment, params: PointwiseParams) -> int:
    """How many programs a flat kernel has."""
    whole = before_rest(segment, params)
    if whole is None:
        return ceil_div(extent(ordered(segment, params)), params.block_x)
    return ceil_div(whole, params.block_x) + 1


def before_rest(segment: Segment, params: PointwiseParams) -> int | None:
    """How many elements whole vectors have; None where no program has the rest for itself."""
    count, vector = extent(ordered(segment, params)), _vector(segment, params)
    if is_known_multiple(count, vector) or not (is_size(count) or count > params.block_x):
        return None
    return count // vector * vector


def _vector(segment: Segment, params: PointwiseParams) -> int:
    """Elements of a thread's vectors: 16 bytes of the narrowest tensor that is read or written in
    such, unless the params say how many. 1 where none is."""
    streams = () if segment.problem is None else segment.problem.streams
    narrowest = min((s.item_bytes for s in streams if _has_vectors(s)), default=VECTOR_BYTES)
    return min(VECTOR_BYTES // narrowest, params.vectorization_factor or VECTOR_BYTES)


def _has_vectors(stream: Stream) -> bool:
    """Whether a tensor's elements are contiguous for whole vectors, from its first one on."""
    run = stream.contiguous_run
    along = stream.x_stride is not None and is_known_equal(stream.x_stride, 1)
    return along and is_known_multiple(run, VECTOR_BYTES // stream.item_bytes)
