"""The kernel axes of a matrix product."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...heuristics.integers import ceil_div
from ...heuristics.params import MatmulParams
from ...shapes.memory import INT32_LIMIT
from ...symbolic.index_expr import Axis, axes_in_order
from ...symbolic.queries import (
    assume_at_most,
    assume_equal,
    assume_less,
    assume_min,
    is_known_equal,
)
from ..segments.segment import Segment
from .axis_map import AxisMap, RowMaps
from .nest import Nest, Strides
from .tile import Tile
from .tiling import part_of, tile_over


@dataclass(frozen=True, kw_only=True)
class ProductNest(Nest):
    """The kernel axes of a matrix product.

    The grid's axis ``tile`` numbers the tiles of the result: batch ``z``, row, column. The left
    operand lies over ``m`` and ``k``. The right operand lies over ``kk``, the positions of ``k``
    down a column, and ``c``. The result lies over ``m`` and ``n``. Where the result is finished in
    parts, ``n`` is a part of ``c``; else there is no ``c``, and the right operand lies over ``n``.
    Where columns are reduced behind the product, ``n`` is within a part, and ``w`` numbers parts.

    Attributes
    ----------
    right : AxisMap
        Where the segment's axes are for the right operand; ``maps`` holds for all else.
    rows, columns : int
        Tiles of the result along its rows and its columns.
    descriptors : bool
        Whether loads and stores go through the copy engine where layouts allow it.
    """

    right: AxisMap
    rows: int
    columns: int
    descriptors: bool

    @property
    def column(self) -> str:
        """The kernel axis of the columns of a whole tile."""
        return "c" if any(t.name == "c" for t in self.tiles) else "n"

    def tile(self, name: str) -> Tile:
        """The kernel axis of a name."""
        return next(t for t in self.tiles if t.name == name)

    def ask_sizes(self, inputs: Strides) -> None:
        # Programs that loop over tiles, and tiles in one row or one column, are written otherwise.
        ((tile, programs),) = self.grid
        assume_less(programs, tile.axis.extent)
        assume_less(1, self.tile("z").axis.extent)
        for side in (self.tile("m"), self.tile(self.column)):
            assume_at_most(INT32_LIMIT, side.axis.extent + side.width)
        if not assume_equal(self.rows, 1):
            assume_equal(self.columns, 1)
        if self.descriptors:
            _ask_rows_apart(inputs)


def _ask_rows_apart(inputs: Strides) -> None:
    """Tensor descriptors take matrices whose rows do not overlap."""
    for value, strides in inputs.items():
        dims = list(zip(value.tensor.sizes, strides, strict=True))[-2:]
        for (size, step), (_, apart) in (dims, dims[::-1]) if len(dims) == 2 else ():
            if is_known_equal(step, 1):
                assume_at_most(size, apart)


def product_nest(segment: Segment, params: MatmulParams) -> ProductNest:
    """The kernel axes of a segment that begins with a matrix product."""
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
    tile = Tile(Axis("tile", total), None, False)
    shared = {**z_axes, **m_axes}
    return ProductNest(
        tiles=(z, m, k, replace(kk, block="KBLOCK"), *((w,) if reductions else ()))
        + ((replace(c, block="NBLOCK"), n) if apart else (n,)),
        loop="k",
        grid=((tile, assume_min(total, params.programs) if params.programs else total),),
        maps=RowMaps(AxisMap({**shared, **n_axes, **w_axes, **k_axes})),
        constants=(
            ("MBLOCK", params.block_m),
            ("NBLOCK", params.block_n),
            ("KBLOCK", params.block_k),
        ),
        right=AxisMap({**shared, **c_axes, **kk_axes}),
        rows=rows,
        columns=columns_of,
        descriptors=params.descriptors,
    )
