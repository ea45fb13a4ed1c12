"""Writes the body of a matrix product's kernel: a loop over K for each tile of the result.

Programs take one tile each or loop over several. The operands are pulled into the loop over K.
What follows the product comes behind that loop: for whole tiles, or for parts of their columns.
"""

from __future__ import annotations

from ....dtypes import DataType
from ....heuristics.params import MatmulParams
from ....ir import Value
from ....ops.builder import as_call
from ....ops.mma import product_bias
from ....shapes.index_map import Index
from ....symbolic.queries import is_known_equal
from ...access.reads import Read
from ...segments.store import Store
from ...tile.descriptors import is_short
from ...tile.product_nest import ProductNest
from ...tile.tile import Tile
from ...tile.tiling import part_of
from ..body import Body
from ..kernel_writers import KernelFacts, KernelWriters
from ..lines import Line
from ..names import Name
from .descriptors import DescriptorWriter


class ProductBody(Body):
    """Writes the body of a matrix product's kernel."""

    def __init__(self, facts: KernelFacts, nest: ProductNest) -> None:
        params = facts.segment.params
        assert isinstance(params, MatmulParams)
        self.facts = facts
        self.segment = facts.segment
        self.nest = nest
        self.params = params
        self.member, *self.reductions = facts.segment.members
        self.index = facts.index_writer(nest)
        self.writer = self.index.writer
        self.descriptors = DescriptorWriter(facts, nest, self.writer)
        self.writers = KernelWriters(facts, nest, self.index, self._part, self._result_tile)

    def write(self) -> list[Line]:
        """All lines of the function body."""
        tile, programs = self.nest.grid[0]
        stays = programs < tile.axis.extent
        if stays:
            self.writer.open_loop(*(t.name for t in self.nest.tiles if t.name not in ("k", "kk")))
        else:
            self.writer.line("tile = tl.program_id(0)")
        self._place_tile()
        total = self._sum()
        self._epilogue(total)
        if stays:
            self.writer.close_loop(
                f"for tile in tl.range(tl.program_id(0), {tile.axis.extent}, {programs}, "
                "flatten=True):"
            )
        return [*self.descriptors.lines(), *self.writer.scopes[0].lines]

    # -- where a tile is -----------------------------------------------------

    def _place_tile(self) -> None:
        """Batch, row and column of a tile by its number, and its ranges."""
        nest, tile = self.nest, "tile"
        for item in nest.tiles:
            self.index.terms.add_tile(item)
        self.index.terms.add(nest.grid[0][0].axis.extent + self.params.group_m * nest.columns)
        if nest.tile("z").axis.extent > 1:
            self.writer.line(f"z = {self._quotient('tile', nest.rows * nest.columns)}")
            tile = f"tile % {nest.rows * nest.columns}"
        if is_known_equal(nest.rows, 1) or is_known_equal(nest.columns, 1):
            if not is_known_equal(nest.rows * nest.columns, 1):
                self.writer.line(f"{'column' if is_known_equal(nest.rows, 1) else 'row'} = {tile}")
        else:
            self.writer.line(
                f"row, column = grouped_tile({tile}, {nest.rows}, {nest.columns}, "
                f"{self.params.group_m})"
            )
        self._range_of("m", self._start("m", "row * MBLOCK"))
        self._range_of(nest.column, self._start(nest.column, "column * NBLOCK"))
        if self.reductions and self.params.parts == 1:
            self.writer.line("n_start = c_start")
            for text in self._column_texts():
                self.writer.line(text)

    def _quotient(self, name: str, divisor: int) -> str:
        """A position that is the same for all of a tile."""
        text = name if is_known_equal(divisor, 1) else f"{name} // {divisor}"
        return f"({text}).to(tl.int64)" if self.index.wide else text

    def _start(self, name: str, text: str) -> str:
        """Where a tile begins along an axis; descriptors take 32 bits, where these hold it."""
        place, block = text.split(" * ")
        if is_known_equal(self.nest.rows if place == "row" else self.nest.columns, 1):
            return "0"
        return text if is_short(self.nest.tile(name)) else f"{place}.to(tl.int64) * {block}"

    def _range_of(self, name: str, start: str) -> None:
        """``m_start = ...``, ``m = m_start + ...`` and its mask."""
        self.writer.line(f"{name}_start = {start}")
        for text in self._range_texts(name, is_first=start == "0"):
            self.writer.line(text)

    def _range_texts(
        self, name: str, start: str | None = None, is_first: bool = False
    ) -> list[str]:
        tile = self.nest.tile(name)
        first = "" if is_first else f"{start or name}_start + "
        texts = [f"{name} = {first}{self.index.tile_text.range(tile)}"]
        return [*texts, f"{name}_mask = {name} < {tile.axis.extent}"] if tile.masked else texts

    def _column_texts(self) -> list[str]:
        """Where the columns are that follow the product."""
        if not self.reductions:
            return self._range_texts("n")
        tile = self.nest.tile("n")
        within = f"n = {self.index.tile_text.range(tile)}"
        return [f"w = {self._quotient('n_start', tile.axis.extent)}", within]

    def _part(self, tile: Tile, count: int) -> str:
        """The positions of a tile of the result divided by ``count``."""
        within = f"tl.arange(0, ({tile.block}) // {count}){self.index.tile_text.suffix(tile.place)}"
        return within if self.reductions else f"{tile.name}_start // {count} + {within}"

    # -- the sum -------------------------------------------------------------

    def _sum(self) -> str:
        """The loop over K; returns the name of the tile of sums."""
        total = self.writer.fresh(f"{self.member.node.out.name}_acc")
        self.writer.line(f"{total} = tl.zeros([MBLOCK, NBLOCK], tl.float32)")
        self.writer.open_loop("k", "kk")
        reads = self.member.reads
        left = self._operand(reads[0].value, self.nest.maps.blocks.index(reads[0].index), "m", "k")
        place = self.nest.right.index(reads[1].index)
        right = self._operand(reads[1].value, place, "kk", self.nest.column)
        self.writer.line(f"{total} = tl.dot({left}, {right}, {total})", self.member.node.loc)
        positions = [*self._range_texts("k"), *self._range_texts("kk", "k")]
        end = self.index.tile_text.loop_end(self.nest.tile("k"))
        self.writer.close_loop(f"for k_start in range(0, {end}, KBLOCK):", *positions)
        return total

    def _operand(self, value: Value, index: Index, down: str, along: str) -> str:
        """A tile of an operand: fetched by a descriptor, or computed with zeros past K's end."""
        read = Read(value, index)
        fetched = self.descriptors.load(read, down, along)
        if fetched is not None:
            name = self.writer.define(value, fetched, frozenset((down, along)), value.dtype)
            return name.text
        name = self.writer.cast(self.writers.values.read(read), value.dtype, value, None)
        inner = self.nest.tile("k" if along == "k" else "kk")
        zeroed = self.descriptors.is_load(self.descriptors.bare(read)) and inner.name in name.dims
        name = self._whole(value, name, frozenset((down, along)))
        if inner.masked and not zeroed:
            text = f"tl.where({inner.name}_mask, {name.text}, 0.0)"
            name = self.writer.define(value, text, name.dims, name.dtype, None, "_masked")
        return name.text

    def _whole(self, value: Value, name: Name, dims: frozenset[str]) -> Name:
        """A value over all of these axes, also where it is the same along one."""
        if name.dims >= dims:
            return name
        text = f"tl.broadcast_to({name.text}, {self.index.tile_text.shape(dims)})"
        return self.writer.define(value, text, dims, name.dtype, None, "_whole")

    # -- what follows --------------------------------------------------------

    def _epilogue(self, total: str) -> None:
        """The results, for whole tiles or in a loop over the parts of their columns."""
        if self.params.parts == 1:
            self._results(total)
            return
        halves = self.writer.fresh(f"{total}_halves")
        self.writer.line(f"{halves} = column_halves({total})")
        self.writer.open_loop("n", "w")
        self._results(f"{halves}[part]")
        start = f"n_start = c_start + part * ({part_of('NBLOCK', self.params.parts)})"
        header = f"for part in tl.static_range({self.params.parts}):"
        self.writer.close_loop(header, start, *self._column_texts())

    def _results(self, total: str) -> None:
        """The product as its dtype has it, and all stores."""
        node, dims = self.member.node, frozenset(("m", "n"))
        blocks = self.nest.maps.blocks
        if self.reductions:
            dims |= {"w"}
        bias = product_bias(as_call(node))
        text = total
        if bias is not None:
            found = self.writers.values.read(Read(bias, blocks.index(self.member.others[1])))
            row = self.writer.cast(found, DataType.Float, bias)
            text = f"{total} + {row.text}"
        name = self.writer.define(node.out, text, dims, DataType.Float, node.loc)
        result = Read(node.out, blocks.index(self.member.index))
        self.writer.bind(result, self.writer.cast(name, node.out.dtype, node.out))
        for member in self.reductions:
            self.writers.reduce(member, self.nest.maps)()
        for store in self.segment.stores:
            self._store(store)

    def _store(self, store: Store) -> None:
        """Store a tile of a result: by a descriptor where one can be made."""
        maps = self.nest.maps
        index = maps.blocks.index(store.index)
        where = None
        if store.source is None and not store.guards:
            where = self.descriptors.described(store.value, index, self.facts.outputs, "m", "n")
        if where is None:
            for at in maps.of(store.index, store.guards):
                self.writers.stores.write(store, at)
            return
        found = self.writers.values.read(Read(store.value, index))
        name = self.writer.cast(found, store.value.dtype, store.value)
        name = self._whole(store.value, name, frozenset(("m", "n")))
        text = f"tl.trans({name.text})" if where.transposed else name.text
        line = Line(f"{self.descriptors.name(where)}.store({where.place}, {text})")
        self.writer.scope_for(name.dims).lines.append(line)

    def _result_tile(self, read: Read) -> Name | None:
        """The load of a whole tile beside the result by a descriptor, where one can be made."""
        text = self.descriptors.load(read, "m", "n")
        if text is None:
            return None
        name = self.writer.define(read.value, text, frozenset(("m", "n")), read.value.dtype)
        self.writer.bind(read, name)
        return name
