"""A matrix product and params in, kernel text out: tiles of the result, summed along K in a loop.

Programs take one tile each or walk over several. The operands are pulled into the loop over K,
what follows the product comes behind it, in one part or, a column half at a time, in two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...dtypes import DataType
from ...heuristics.params import MatmulParams
from ...ir import Fusion, Value
from ...ops.builder import as_call
from ...ops.mma import product_bias
from ...ops.table import View
from ...shapes import Index
from ...symbolic.index_expr import Affine
from ..access.read_footprint import Read, sources_of
from ..access.traffic import offset_of
from ..segments import Segment, Store
from ..tile.descriptors import Described, described
from ..tile.nests import ProductNest, part_of
from ..tile.tile import Tile
from .kernel_body import KernelBody
from .writer import Line, Name


class ProductBody(KernelBody):
    """Writes the body of a matrix product's kernel.

    Parameters
    ----------
    misaligned : frozenset of Value
        Buffers that no descriptor can be made of.
    """

    nest: ProductNest

    def __init__(
        self,
        fusion: Fusion,
        segment: Segment,
        nest: ProductNest,
        stored: Mapping[Value, tuple[int, ...]],
        outputs: Mapping[Value, tuple[int, ...]],
        wide_index: bool,
        misaligned: frozenset[Value],
    ) -> None:
        super().__init__(fusion, segment, nest, stored, outputs, wide_index)
        assert isinstance(segment.params, MatmulParams)
        self.params = segment.params
        self.misaligned = misaligned
        self.member, *self.reductions = segment.members
        self._descriptors: dict[Described, str] = {}

    def write(self) -> list[Line]:
        """All lines of the function body."""
        walk, programs = self.nest.grid[0]
        stays = programs < walk.axis.extent
        if stays:
            self.writer.open_loop(*(t.name for t in self.nest.tiles if t.name not in ("k", "kk")))
        else:
            self._line("tile = tl.program_id(0)")
        self._place_tile()
        total = self._sum()
        self._after(total)
        if stays:
            self.writer.close_loop(
                f"for tile in tl.range(tl.program_id(0), {walk.axis.extent}, {programs}, "
                "flatten=True):"
            )
        made = [Line(text) for text in self._made_descriptors()]
        return without_unused([*made, *self.writer.scopes[0].lines])

    def _line(self, text: str) -> None:
        self.writer.scopes[-1].lines.append(Line(text))

    # -- where a tile is -----------------------------------------------------

    def _place_tile(self) -> None:
        """Batch, row and column of a tile by its number, and its ranges."""
        nest, tile = self.nest, "tile"
        if nest.tile("z").axis.extent > 1:
            self._line(f"z = {self._quotient('tile', nest.rows * nest.columns)}")
            tile = f"tile % {nest.rows * nest.columns}"
        if nest.rows == 1 or nest.columns == 1:
            row, column = ("0", tile) if nest.rows == 1 else (tile, "0")
            self._line(f"row = {row}")
            self._line(f"column = {column}")
        else:
            self._line(
                f"row, column = grouped_tile({tile}, {nest.rows}, {nest.columns}, "
                f"{self.params.group_m})"
            )
        self._range_of("m", "row * MBLOCK")
        self._range_of(nest.column, "column * NBLOCK")
        if self.reductions and self.params.parts == 1:
            self._line("n_start = c_start")
            for text in self._column_texts():
                self._line(text)

    def _quotient(self, name: str, divisor: int) -> str:
        """A position that is the same for all of a tile."""
        text = f"{name} // {divisor}"
        return f"({text}).to(tl.int64)" if self.index.wide else text

    def _range_of(self, name: str, start: str) -> None:
        """``m_start = ...``, ``m = m_start + ...`` and its mask."""
        self._line(f"{name}_start = {start}")
        for text in self._range_texts(name):
            self._line(text)

    def _range_texts(self, name: str, start: str | None = None) -> list[str]:
        tile = self.nest.tile(name)
        texts = [f"{name} = {start or name}_start + {self._range(tile, tile.place)}"]
        return [*texts, f"{name}_mask = {name} < {tile.axis.extent}"] if tile.masked else texts

    def _column_texts(self) -> list[str]:
        """Where the columns are that follow the product."""
        if not self.reductions:
            return self._range_texts("n")
        tile = self.nest.tile("n")
        within = f"n = {self._range(tile, tile.place)}"
        return [f"w = {self._quotient('n_start', tile.axis.extent)}", within]

    # -- the sum -------------------------------------------------------------

    def _sum(self) -> str:
        """The loop over K; returns the name of the tile of sums."""
        total = self.writer.fresh(f"{self.member.node.out.name}_acc")
        self._line(f"{total} = tl.zeros([MBLOCK, NBLOCK], tl.float32)")
        self.writer.open_loop("k", "kk")
        reads = self.member.reads
        left = self._operand(reads[0].value, self.nest.place(reads[0].index), "m", "k")
        place = tuple(self.nest.right_place(reads[1].index))
        right = self._operand(reads[1].value, place, "kk", self.nest.column)
        text = f"{total} = tl.dot({left}, {right}, {total})"
        self.writer.scopes[-1].lines.append(Line(text, self.member.node.loc))
        positions = [*self._range_texts("k"), *self._range_texts("kk", "k")]
        extent = self.nest.tile("k").axis.extent
        self.writer.close_loop(f"for k_start in range(0, {extent}, KBLOCK):", *positions)
        return total

    def _operand(self, value: Value, index: Index, down: str, along: str) -> str:
        """A tile of an operand: fetched by a descriptor, or computed with zeros past K's end."""
        read = Read(value, index)
        fetched = self._fetched(read, down, along)
        if fetched is not None:
            name = self.define(value, fetched, frozenset((down, along)), value.dtype, None)
            return name.text
        name = self.cast(self.read(read), value.dtype, value, None)
        inner = self.nest.tile("k" if along == "k" else "kk")
        zeroed = self._is_load(self._bare(read)) and inner.name in name.dims
        name = self._whole(value, name, frozenset((down, along)))
        if inner.masked and not zeroed:
            text = f"tl.where({inner.name}_mask, {name.text}, 0.0)"
            name = self.define(value, text, name.dims, name.dtype, None, "_masked")
        return name.text

    def _whole(self, value: Value, name: Name, dims: frozenset[str]) -> Name:
        """A value over all of these axes, also where it is the same along one."""
        if name.dims >= dims:
            return name
        text = f"tl.broadcast_to({name.text}, {self.shape(dims)})"
        return self.define(value, text, dims, name.dtype, None, "_whole")

    def _is_load(self, read: Read) -> bool:
        """Whether a value comes straight from memory, where its loads put zeros."""
        return read.value in self.stored or read.value not in self.fusion.producers

    # -- what follows --------------------------------------------------------

    def _after(self, total: str) -> None:
        if self.params.parts == 1:
            self._results(total)
            return
        halves = self.writer.fresh(f"{total}_halves")
        self._line(f"{halves} = column_halves({total})")
        self.writer.open_loop("n", "w")
        self._results(f"{halves}[part]")
        start = f"n_start = c_start + part * ({part_of('NBLOCK', self.params.parts)})"
        header = f"for part in tl.static_range({self.params.parts}):"
        self.writer.close_loop(header, start, *self._column_texts())

    def _results(self, total: str) -> None:
        """The product as its dtype has it, and all stores."""
        node, dims = self.member.node, frozenset(("m", "n"))
        if self.reductions:
            dims |= {"w"}
        call = as_call(node)
        bias = product_bias(call)
        text = total
        if bias is not None:
            place = self.nest.place(self.member.others[1])
            row = self.cast(self.read(Read(bias, place)), DataType.Float, bias, None)
            text = f"{total} + {row.text}"
        name = self.define(node.out, text, dims, DataType.Float, node.loc)
        self.place_result(self.member, node.out, self.cast(name, node.out.dtype, node.out, None))
        for member in self.reductions:
            self._reduce(member)
        for store in self.segment.stores:
            self._store(store)

    def _store(self, store: Store, pieces: Sequence[int] | None = None) -> None:
        where = None
        index = self.nest.place(store.index)
        if store.source is None and not store.guards:
            where = self._described(store.value, index, self.outputs, "m", "n")
        if where is None:
            super()._store(store)
            return
        name = self.cast(self.read(Read(store.value, index)), store.value.dtype, store.value, None)
        name = self._whole(store.value, name, frozenset(("m", "n")))
        text = f"tl.trans({name.text})" if where.turned else name.text
        line = Line(f"{self._descriptor(where)}.store({where.place}, {text})")
        self.writer.scope_for(name.dims).lines.append(line)

    def part(self, tile: Tile, count: int) -> str:
        within = f"tl.arange(0, ({tile.block}) // {count}){self.suffix(tile.place)}"
        return within if self.reductions else f"{tile.name}_start // {count} + {within}"

    # -- descriptors ---------------------------------------------------------

    def _load(self, read: Read) -> Name:
        text = self._fetched(read, "m", "n")
        if text is None:
            return super()._load(read)
        name = self.define(read.value, text, frozenset(("m", "n")), read.value.dtype, None)
        self.bind(read, name)
        return name

    def _fetched(self, read: Read, down: str, along: str) -> str | None:
        """A whole tile by a descriptor, or None where it takes addresses."""
        read = self._bare(read)
        if not self._is_load(read) or not read.value.is_tensor or read.guards:
            return None
        where = self._described(read.value, read.index, self.stored, down, along)
        if where is None:
            return None
        text = f"{self._descriptor(where)}.load({where.place})"
        return f"tl.trans({text})" if where.turned else text

    def _bare(self, read: Read) -> Read:
        """What a value is in memory, through views that hand on one element from one place."""
        while not self._is_load(read):
            node = self.fusion.producers[read.value]
            sources = sources_of(node, read) if isinstance(as_call(node).op.form, View) else ()
            if len(sources) != 1 or sources[0].guards:
                break
            source = sources[0].operand
            if not isinstance(source, Value) or not source.is_tensor:
                break
            read = Read(source, sources[0].index, read.guards)
        return read

    def _described(
        self,
        value: Value,
        index: Index,
        strides: Mapping[Value, tuple[int, ...]],
        down: str,
        along: str,
    ) -> Described | None:
        if not self.params.descriptors or value in self.misaligned:
            return None
        offset: Affine = offset_of(index, strides[value])
        return described(value, offset, self.nest.tile(down), self.nest.tile(along))

    def _descriptor(self, where: Described) -> str:
        if where not in self._descriptors:
            self._descriptors[where] = self.writer.fresh(f"{where.value.name}_desc")
        return self._descriptors[where]

    def _made_descriptors(self) -> list[str]:
        return [f"{name} = {where.text}" for where, name in self._descriptors.items()]


def without_unused(lines: list[Line]) -> list[Line]:
    """The lines without those that name a position nobody reads."""
    while True:
        words: dict[str, int] = {}
        for line in lines:
            for word in re.findall(r"[A-Za-z_]\w*", line.text):
                words[word] = words.get(word, 0) + 1
        kept = [line for line in lines if not _is_unused(line.text, words)]
        if len(kept) == len(lines):
            return lines
        lines = kept


def _is_unused(text: str, words: Mapping[str, int]) -> bool:
    """Whether a line only names a range, a start, a mask or a coordinate, and nobody uses it."""
    found = re.fullmatch(r"(tile|row|column|z|w|(?:m|n|c|k|kk)(?:_start|_mask)?) = .*", text)
    return found is not None and words[found[1]] == 1
