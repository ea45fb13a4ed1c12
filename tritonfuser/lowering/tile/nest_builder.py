"""The kernel axes and the grid of a segment, by the class of its params."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from ...device import NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...heuristics.integers import ceil_div
from ...heuristics.params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    InnerPersistentParams,
    MatmulParams,
    OuterPersistentParams,
    PointwiseParams,
    ReductionParams,
    RowTiling,
    ScanParams,
    TransposeParams,
)
from ...symbolic.choices import env_among
from ...symbolic.index_expr import Affine, Axis
from ...symbolic.queries import assume_at_most, is_known_equal, is_known_multiple
from ...symbolic.substitution import strip_bounds, substitute
from ..axis_order import across, ordered, ordered_groups, runs_along_y
from ..segments.member import Share
from ..segments.segment import Segment
from .alignment import Alignment
from .axis_map import AxisMap, RowMaps
from .cooperative_nest import cooperative_nest
from .flat_nest import flat_nest
from .nest import Nest
from .product_nest import product_nest
from .tile import Tile
from .tiling import aligned_tiles, peel_row, row_maps, sides, spread, tile_over
from .varying_rows import assume_length


def _transpose(segment: Segment, params: TransposeParams) -> Nest:
    others = ordered(segment, params)
    place = 0 if _has_hidden_runs(segment, others) else 1
    y, y_axes = tile_over("y", across(segment, params), params.block_y, 1 - place)
    x, x_axes = tile_over("x", others, params.block_x, place)
    grid = [
        (x, ceil_div(x.axis.extent, params.block_x)),
        (y, ceil_div(y.axis.extent, params.block_y)),
    ]
    if runs_along_y(segment, params):
        grid.reverse()
    constants = (("XBLOCK", params.block_x), ("YBLOCK", params.block_y))
    maps = RowMaps(AxisMap({**y_axes, **x_axes}))
    return Nest((y, x), None, tuple(grid), maps, constants)


def _has_hidden_runs(segment: Segment, others: tuple[Axis, ...]) -> bool:
    """Whether Triton does not see that memory lies along x, where it sees that along y.

    It gives neighbouring threads the elements of the axis with the longest run that it can prove,
    and those of dim 0 where no run is longer than 1. Of ``x % 3025`` it proves none.

    Parameters
    ----------
    others : tuple of Axis
        The axes along x. The last ones of the kernel's, behind all of y, are a run of memory.
    """
    run: tuple[Axis, ...] = ()
    while len(run) < len(others) and others[-1 - len(run) :] == segment.parallel[-1 - len(run) :]:
        run = others[-1 - len(run) :]
    divided = any(not is_known_equal(axis.extent, 1) for axis in others if axis not in run)
    return divided and _is_hidden(prod(axis.extent for axis in run))


def _is_hidden(run: int) -> bool:
    """Whether neighbours in runs of so many elements are not seen to be; 0 is for one run."""
    known = is_known_equal(run, 0) or is_known_equal(run, 1)
    return not known and not is_known_multiple(run, 2)


_Rows = ReductionParams | InnerPersistentParams | OuterPersistentParams | ScanParams


def _rows(segment: Segment, params: _Rows) -> Nest:
    # Rows that are reduced together are one program's, and no others with them.
    *apart, along = ordered_groups(segment, params)
    tiling = params.row_tiling
    lone = params.block_x == 1 and not segment.co_reduced
    block_x = None if lone else params.block_x
    x, x_axes = tile_over("x", along, block_x, int(tiling.staged))
    s, s_axes = tile_over("s", apart[0] if apart else (), None)
    place = 0 if lone or tiling.staged else 1
    r, *peeled = tiles = _row_tiles(segment, tiling, place)
    end = r.end
    if tiling.in_registers:  # guards are on the length of rows, and not on that of whole vectors
        end = peel_row(segment.reduced, tiling.block, tiling.tails, place)[0].end
    whole = _is_whole(segment, params, end)
    blocks = ceil_div(x.axis.extent, params.block_x)
    assert not segment.co_reduced or blocks <= 1
    found = Nest(
        (s, x, r, *peeled) if segment.co_reduced else (x, r, *peeled),
        None if whole else "r",
        ((s, s.axis.extent),) if segment.co_reduced else ((x, blocks),),
        row_maps({**s_axes, **x_axes}, segment.reduced, tiles),
        sides(x, *tiles),
        backwards=tiling.backwards,
        evict_hints=tiling.evict_hints,
        unroll=tiling.unroll,
        staged=tiling.staged,
    )
    return _aligned(found, segment, tiling.align, tiles)


def _row_tiles(segment: Segment, tiling: RowTiling, place: int, before_last: int = 0) -> list[Tile]:
    """The tiles of a row, of which a loop has the first where that is shorter than the row.

    Parameters
    ----------
    before_last : int
        Elements before the last part, of rows that several programs share.
    """
    if tiling.align > 1:
        row = segment.reduced_extent
        return aligned_tiles(row, tiling.block, tiling.tails, tiling.align, place, before_last)
    r, peeled = peel_row(segment.reduced, tiling.block, tiling.tails, place)
    return [r, *peeled]


def _is_whole(segment: Segment, params: _Rows, row: int) -> bool:
    """Whether a row fits a block. In the interpreter one kernel is for all sizes: it loops."""
    tiling, problem = params.row_tiling, segment.problem
    interpreted = problem is not None and problem.on_cpu
    if env_among(row) is not None and interpreted and not tiling.in_registers:
        return False
    fits = assume_at_most(row, tiling.block)
    if fits:
        assume_length(row, tiling.block, params.block_x, params.num_warps, segment.problem)
    return fits


def _rows_in_loop(segment: Segment, params: InnerOuterPersistentParams) -> Nest:
    shares = segment.shares
    parts = tuple(share.part for share in shares[:1])
    batch, looped = ordered_groups(segment, params)
    s, s_axes = tile_over("s", (*batch, *parts), None)
    block = None if params.block_m == 1 else params.block_m
    if shares:
        m, m_axes = _part_of_rows(shares, s_axes, block)
    else:
        m, m_axes = tile_over("m", looped, block)
    m, axes = replace(m, place=int(params.staged)), {**s_axes, **m_axes}
    if params.parts > 1:
        return _shared_rows_in_loop(segment, params, s, m, axes)
    return _whole_rows_in_loop(segment, params, s, m, axes)


def _shared_rows_in_loop(
    segment: Segment,
    params: InnerOuterPersistentParams,
    s: Tile,
    m: Tile,
    axes: dict[Axis, Affine],
) -> Nest:
    """The nest of programs that have parts of rows."""
    shared, tiling = cooperative_nest(segment, params, s, m, axes), params.row_tiling
    before_last = shared.row_split.before_last
    cut = _row_tiles(segment, tiling, 0, before_last) if tiling.align > 1 else []
    return _aligned(shared, segment, tiling.align, cut)


def _whole_rows_in_loop(
    segment: Segment,
    params: InnerOuterPersistentParams,
    s: Tile,
    m: Tile,
    axes: dict[Axis, Affine],
) -> Nest:
    """The nest of programs that have whole rows."""
    row = segment.reduced_extent
    fits = assume_at_most(row, params.block_r + sum(params.tails))
    assert fits, f"a row of {row} in blocks of {params.block_r}"
    if not params.tails:
        assume_length(row, params.block_r, params.block_m, params.num_warps, segment.problem)
    place = 0 if params.block_m == 1 or params.staged else 1
    tiles = _row_tiles(segment, params.row_tiling, place)
    found = Nest(
        (s, m, *tiles),
        "m",
        ((s, s.axis.extent),),
        row_maps(axes, segment.reduced, tiles),
        sides(m, *tiles),
        rows_of_threads=not params.staged and _has_rows_of_threads(segment, params),
        staged=params.staged,
    )
    return _aligned(found, segment, params.align, tiles)


def _has_rows_of_threads(segment: Segment, params: InnerOuterPersistentParams) -> bool:
    """Whether the lanes of a program lie along one row, each with the elements of a vector.

    Triton lays lanes along memory first. A row of more lanes takes all of them.
    """
    widths = [s.value.dtype.info.bytes for s in segment.stores]
    widths += [v.dtype.info.bytes for v in segment.inputs if v.is_tensor]
    vector = VECTOR_BYTES // min(widths, default=VECTOR_BYTES)
    lanes = params.num_warps * NVIDIA_WARP_SIZE
    return all(lanes * vector <= width for width in (params.block_r, *params.tails))


def _part_of_rows(
    shares: tuple[Share, ...], programs: dict[Axis, Affine], block: int | None
) -> tuple[Tile, dict[Axis, Affine]]:
    """The rows of one part, of which the last may have fewer, and where the parts are."""
    share, part = shares[0], programs[shares[0].part]
    m, axes = tile_over("m", (rows := Axis("rows", share.length), *share.inside), block)
    whole = prod(axis.extent for axis in (*share.rows, *share.inside))
    interleave = share.part.extent if share.interleaved else 0
    m = replace(m, masked=block is not None, part=part, whole=whole, interleave=interleave)
    axes.update(share.at(part, axes.pop(rows)))
    return m, {**axes, **{other.part: part for other in shares}}


def _aligned(nest: Nest, segment: Segment, vector: int, tiles: Sequence[Tile]) -> Nest:
    """The nest, with tiles of rows that begin at whole vectors of more elements than one."""
    if vector == 1:
        return nest
    assert segment.row_start is not None
    axes, place = nest.maps.blocks.axes, tiles[0].place
    start = strip_bounds(substitute(segment.row_start, axes)).split(vector)[1]
    alignment = Alignment(vector, segment.reduced_extent, start, tuple(tiles))
    rows = {axis: at for axis, at in axes.items() if axis not in segment.reduced}
    blocks, *peeled = (
        AxisMap({**rows, **spread(segment.reduced, alignment.place(tile))}) for tile in tiles
    )
    others = tuple(tile for tile in nest.tiles if tile.block is None or tile.place < place)
    return replace(
        nest,
        tiles=(*others, *tiles),
        maps=RowMaps(blocks, tuple(peeled)),
        constants=sides(*others, *tiles),
        alignment=alignment,
    )


_NESTS: dict[type[HeuristicParams], Callable[..., Nest]] = {
    PointwiseParams: flat_nest,
    TransposeParams: _transpose,
    ReductionParams: _rows,
    InnerPersistentParams: _rows,
    OuterPersistentParams: _rows,
    ScanParams: _rows,
    MatmulParams: product_nest,
    InnerOuterPersistentParams: _rows_in_loop,
}


def nest_of(segment: Segment) -> Nest:
    """The kernel axes of a segment under its params."""
    return _NESTS[type(segment.params)](segment, segment.params)
