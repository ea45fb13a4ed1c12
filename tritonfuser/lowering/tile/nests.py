"""Segment in, kernel axes out: which tile axes its kernel has, and the grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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
from ...shapes import Index
from ...symbolic.index_expr import Affine, Axis, axes_in_order, substitute
from ...symbolic.sizes import guarded, is_size
from ..segments import Segment
from .alignment import Alignment
from .nest import Nest, aligned_tiles, row_tiles, sides, spread, tile_over
from .shared_nest import share_rows
from .tile import Tile


def _flat(segment: Segment, params: PointwiseParams) -> Nest:
    x, axes = tile_over("x", segment.parallel, params.block_x)
    x = replace(x, neighbours=params.vectorization_factor)
    programs = ceil_div(x.axis.extent, params.block_x)
    return Nest((x,), None, ((x, programs),), axes, (("XBLOCK", params.block_x),))


MAX_PROGRAMS_Y = 65535
"""CUDA's limit on the second and third axis of a grid; the first takes 2**31 - 1."""


def _transpose(segment: Segment, params: TransposeParams) -> Nest:
    others = tuple(a for a in segment.parallel if a not in segment.crossing)
    y, y_axes = tile_over("y", segment.crossing, params.block_y)
    x, x_axes = tile_over("x", others, params.block_x, 1)
    grid = [
        (x, ceil_div(x.axis.extent, params.block_x)),
        (y, ceil_div(y.axis.extent, params.block_y)),
    ]
    if grid[1][1] > MAX_PROGRAMS_Y:
        grid.reverse()
    constants = (("XBLOCK", params.block_x), ("YBLOCK", params.block_y))
    return Nest((y, x), None, tuple(grid), {**y_axes, **x_axes}, constants)


SHORTEST = 8
"""A row that varies fills at least this part of its block: shorter ones get a block of theirs."""

_Rows = ReductionParams | InnerPersistentParams | OuterPersistentParams | ScanParams


def _rows(segment: Segment, params: _Rows) -> Nest:
    # Rows that are reduced together are one program's, and no others with them.
    apart = tuple(a for a in segment.parallel if a not in segment.co_reduced)
    lone = params.block_x == 1 and not segment.co_reduced
    block_x = None if lone else params.block_x
    x, x_axes = tile_over("x", segment.co_reduced or segment.parallel, block_x)
    s, s_axes = tile_over("s", apart if segment.co_reduced else (), None)
    place = 0 if lone else 1
    tiling = params.row_tiling
    r, tails = row_tiles(segment.reduced, params.block_r, tiling.tails, place=place)
    whole = _is_whole(tiling, r.end)
    blocks = ceil_div(x.axis.extent, params.block_x)
    assert not segment.co_reduced or blocks <= 1
    found = Nest(
        (s, x, r, *tails) if segment.co_reduced else (x, r, *tails),
        None if whole else "r",
        ((s, s.axis.extent),) if segment.co_reduced else ((x, blocks),),
        {**s_axes, **x_axes, **spread(segment.reduced, r.axis)},
        sides(x, r, *tails),
        tuple({**s_axes, **x_axes, **spread(segment.reduced, tail.axis)} for tail in tails),
        backwards=tiling.backwards,
        evict_hints=tiling.evict_hints,
    )
    return _aligned(found, segment, params.row_tiling, place)


def _is_whole(tiling: RowTiling, row: int) -> bool:
    """Whether a row fits a block; one that varies may be short, where its kernel has a loop."""
    if is_size(row):
        if not tiling.in_registers:
            return False
        guarded(SHORTEST * row >= tiling.block)
    return tiling.block >= row


def _row_walk(segment: Segment, params: InnerOuterPersistentParams) -> Nest:
    if params.parts > 1:
        return share_rows(segment, params)
    row = segment.reduced_extent
    assert params.block_r + (0 if is_size(row) else sum(params.tails)) >= row
    guarded(not is_size(row) or SHORTEST * row >= params.block_r)
    s, s_axes = tile_over("s", segment.batch_axes, None)
    lone = params.block_m == 1
    m, m_axes = tile_over("m", segment.looped_axes, None if lone else params.block_m)
    place = 0 if lone else 1
    r, tails = row_tiles(segment.reduced, params.block_r, params.tails, place=place)
    rows = {**s_axes, **m_axes}
    found = Nest(
        (s, m, r, *tails),
        "m",
        ((s, s.axis.extent),),
        {**rows, **spread(segment.reduced, r.axis)},
        sides(m, r, *tails),
        tuple({**rows, **spread(segment.reduced, tail.axis)} for tail in tails),
    )
    return _aligned(found, segment, params.row_tiling, place)


def _aligned(nest: Nest, segment: Segment, tiling: RowTiling, place: int) -> Nest:
    """The same, with tiles of the rows that begin at vectors."""
    vector = tiling.align
    if vector == 1:
        return nest
    assert segment.row_start is not None
    row = segment.reduced_extent
    tiles = aligned_tiles(row, tiling.block, tiling.tails, vector, place)
    start = substitute(segment.row_start, nest.axes).split(vector)[1]
    alignment = Alignment(vector, row, start, tuple(tiles))
    rows = {axis: at for axis, at in nest.axes.items() if axis not in segment.reduced}
    axes, *tails = ({**rows, **spread(segment.reduced, alignment.place(t))} for t in tiles)
    others = tuple(tile for tile in nest.tiles if tile.block is None or tile.place < place)
    return replace(
        nest,
        tiles=(*others, *tiles),
        axes=axes,
        tails=tuple(tails),
        constants=sides(*others, *tiles),
        alignment=alignment,
    )


@dataclass(frozen=True, kw_only=True)
class ProductNest(Nest):
    """The kernel axes of a matrix product.

    Programs walk over ``tile``, a number of batch ``z``, row and column. The left operand lies
    over ``m`` and ``k``, the right one over ``kk`` (the same numbers down a column) and ``c``, the
    result over ``m`` and ``n``: a part of ``c``, or all of it, and then there is no ``c``. Where
    columns are reduced, ``n`` runs over those of a part and ``w`` is the part's number.

    Attributes
    ----------
    right : dict
        Where the segment's axes are for the right operand; ``axes`` holds for all else.
    rows, columns : int
        Tiles along m and c.
    """

    right: dict[Axis, Affine]
    rows: int
    columns: int

    @property
    def column(self) -> str:
        """The kernel axis of whole tiles' columns."""
        return "c" if any(t.name == "c" for t in self.tiles) else "n"

    def right_place(self, index: Index) -> Index:
        return tuple(substitute(item, self.right) for item in index)

    def tile(self, name: str) -> Tile:
        return next(t for t in self.tiles if t.name == name)


def _product(segment: Segment, params: MatmulParams) -> ProductNest:
    product, *reductions = segment.members
    *_, row, column = product.index
    columns = axes_in_order(column)
    m, m_axes = tile_over("m", axes_in_order(row), params.block_m)
    k, k_axes = tile_over("k", product.across, params.block_k, 1)
    kk, kk_axes = tile_over("kk", product.across, params.block_k)
    apart = params.parts > 1 or bool(reductions)
    c, c_axes = tile_over("c" if apart else "n", columns, params.block_n, 1)
    # Behind the product its columns are reduced a part of a tile at a time: w counts the parts.
    inner = reductions[0].across if reductions else columns
    w, w_axes = tile_over("w", tuple(a for a in columns if a not in inner), None)
    inside = tuple(a for a in columns if a in inner)
    n, n_axes = tile_over("n", inside, params.block_n // params.parts, 1)
    n = replace(n, block=part_of("NBLOCK", params.parts), masked=c.masked)
    batch = tuple(a for a in segment.parallel if a not in {**m_axes, **c_axes})
    z, z_axes = tile_over("z", batch, None)
    rows, columns_of = (ceil_div(t.axis.extent, t.width) for t in (m, c))
    total = z.axis.extent * rows * columns_of
    walk = Tile(Axis("tile", total), None, False)
    shared = {**z_axes, **m_axes}
    return ProductNest(
        tiles=(z, m, k, replace(kk, block="KBLOCK"), *((w,) if reductions else ()))
        + ((replace(c, block="NBLOCK"), n) if apart else (n,)),
        loop="k",
        grid=((walk, min(total, params.programs or total)),),
        axes={**shared, **n_axes, **w_axes, **k_axes},
        constants=(
            ("MBLOCK", params.block_m),
            ("NBLOCK", params.block_n),
            ("KBLOCK", params.block_k),
        ),
        right={**shared, **c_axes, **kk_axes},
        rows=rows,
        columns=columns_of,
    )


def part_of(block: str, parts: int) -> str:
    return block if parts == 1 else f"{block} // {parts}"


_NESTS: dict[type[HeuristicParams], Callable[..., Nest]] = {
    PointwiseParams: _flat,
    TransposeParams: _transpose,
    ReductionParams: _rows,
    InnerPersistentParams: _rows,
    OuterPersistentParams: _rows,
    ScanParams: _rows,
    MatmulParams: _product,
    InnerOuterPersistentParams: _row_walk,
}


def nest_of(segment: Segment) -> Nest:
    """The kernel axes of a segment under its params."""
    return _NESTS[type(segment.params)](segment, segment.params)
