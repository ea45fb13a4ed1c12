"""The kernel axes of a matrix product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...heuristics.integers import ceil_div
from ...heuristics.params import MatmulParams
from ...shapes.memory import INT32_LIMIT
from ...symbolic.index_expr import Affine, Axis, axes_in_order
from ...symbolic.queries import (
    assume_at_most,
    assume_equal,
    assume_less,
    assume_min,
    is_known_equal,
)
from ..segments.member import Member
from ..segments.segment import Segment
from .axis_map import AxisMap, RowMaps
from .nest import Nest, Strides
from .tile import Tile
from .tiling import part_of, tile_over


@dataclass(frozen=True, kw_only=True)
class ProductNest(Nest):
    """The kernel axes of a matrix product.

    The grid's axis ``tile`` numbers the tiles of the result: batch ``z``, row, column. The left
    operand has the axes ``m`` and ``k``, the right one ``kk`` and ``c``, and the result ``m`` and
    ``n``; ``kk`` has the positions of ``k``, along the first side of a tile. If the epilogue runs
    over parts of a tile's columns, ``n`` is a part of ``c``; otherwise there is no ``c``, and the
    right operand has ``n``. If columns are reduced after the product, ``w`` numbers the parts.

    Attributes
    ----------
    right : AxisMap
        The segment's axes in terms of kernel axes for the right operand; ``maps`` for all else.
    rows, columns : int
        Numbers of tiles of the result along ``m`` and along its columns.
    descriptors : bool
        Whether loads and stores use tensor descriptors (TMA) where layouts allow it.
    """

    right: AxisMap
    rows: int
    columns: int
    descriptors: bool

    @property
    def column(self) -> str:
        """The name of the kernel axis of all columns of a tile."""
        return "c" if any(t.name == "c" for t in self.tiles) else "n"

    def tile(self, name: str) -> Tile:
        """The kernel axis with a name."""
        return next(t for t in self.tiles if t.name == name)

    def ask_sizes(self, inputs: Strides) -> None:
        # Kernels differ if programs loop over tiles, or if all tiles are in one row or column.
        ((tile, programs),) = self.grid
        assume_less(programs, tile.axis.extent)
        assume_less(1, self.tile("z").axis.extent)
        for side in (self.tile("m"), self.tile(self.column)):
            assume_at_most(INT32_LIMIT, side.axis.extent + side.width)
        if not assume_equal(self.rows, 1):
            assume_equal(self.columns, 1)
        if self.descriptors:
            _ask_disjoint_rows(inputs)


def _ask_disjoint_rows(inputs: Strides) -> None:
    """Assume that rows of matrices do not overlap, as tensor descriptors need it."""
    for value, strides in inputs.items():
        dims = list(zip(value.tensor.sizes, strides, strict=True))[-2:]
        for (size, step), (_, pitch) in (dims, dims[::-1]) if len(dims) == 2 else ():
            if is_known_equal(step, 1):
                assume_at_most(size, pitch)


class _Columns(NamedTuple):
    """The kernel axes along the columns of a tile of the result.

    Attributes
    ----------
    whole : Tile
        All columns of a tile: ``c``, or ``n`` where the epilogue does not run over parts of them.
    whole_axes : mapping of Axis to Affine
        The segment's axes along ``whole``.
    tiles : tuple of Tile
        The kernel axes ``w``, ``c`` and ``n``, as far as the kernel has them.
    axes : mapping of Axis to Affine
        The segment's axes along ``n`` and ``w``.
    """

    whole: Tile
    whole_axes: Mapping[Axis, Affine]
    tiles: tuple[Tile, ...]
    axes: Mapping[Axis, Affine]


def product_nest(segment: Segment, params: MatmulParams) -> ProductNest:
    """The kernel axes of a segment that begins with a matrix product."""
    product = segment.members[0]
    *_, row, column = product.index
    m, m_axes = tile_over("m", axes_in_order(row), params.block_m)
    k, k_axes = tile_over("k", product.across, params.block_k, 1)
    kk, kk_axes = tile_over("kk", product.across, params.block_k)
    columns = _columns(axes_in_order(column), segment.members[1:], params)
    batch = tuple(a for a in segment.parallel if a not in {**m_axes, **columns.whole_axes})
    z, z_axes = tile_over("z", batch, None)
    tiles_m, tiles_n = (ceil_div(t.axis.extent, t.width) for t in (m, columns.whole))
    total = z.axis.extent * tiles_m * tiles_n
    tile = Tile(Axis("tile", total), None, False)
    shared = {**z_axes, **m_axes}
    return ProductNest(
        tiles=(z, m, k, replace(kk, block="KBLOCK"), *columns.tiles),
        loop="k",
        grid=((tile, assume_min(total, params.programs) if params.programs else total),),
        maps=RowMaps(AxisMap({**shared, **columns.axes, **k_axes})),
        constants=(
            ("MBLOCK", params.block_m),
            ("NBLOCK", params.block_n),
            ("KBLOCK", params.block_k),
        ),
        right=AxisMap({**shared, **columns.whole_axes, **kk_axes}),
        rows=tiles_m,
        columns=tiles_n,
        descriptors=params.descriptors,
    )


def _columns(
    columns: tuple[Axis, ...], reductions: Sequence[Member], params: MatmulParams
) -> _Columns:
    """The kernel axes along the columns.

    A reduction after the product takes one part of a tile's columns at a time: ``w`` numbers them.
    """
    in_parts = params.parts > 1 or bool(reductions)
    c, c_axes = tile_over("c" if in_parts else "n", columns, params.block_n, 1)
    inner = reductions[0].across if reductions else columns
    w, w_axes = tile_over("w", tuple(a for a in columns if a not in inner), None)
    inside = tuple(a for a in columns if a in inner)
    n, n_axes = tile_over("n", inside, params.block_n // params.parts, 1)
    n = replace(n, block=part_of("NBLOCK", params.parts), masked=c.masked)
    numbers = (w,) if reductions else ()
    whole = (replace(c, block="NBLOCK"),) if in_parts else ()
    return _Columns(c, c_axes, (*numbers, *whole, n), {**n_axes, **w_axes})
