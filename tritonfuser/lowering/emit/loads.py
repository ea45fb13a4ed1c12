"""What a kernel has at hand: names of values, and loads from memory at an index."""

from __future__ import annotations

from collections.abc import Mapping

from ...dtypes import DataType
from ...errors import SourceLoc
from ...ir import Fusion, Value
from ...shapes import Guard
from ...symbolic.index_expr import Affine, unbound
from ...symbolic.sizes import surely_below
from ..access.read_footprint import Read
from ..access.traffic import offset_of
from ..kernel_source import passed_dtype
from ..tile.tile import Tile
from .expressions import cast_text, load_text, triton_name
from .index_text import IndexWriter
from .lane_loads import LaneWriter, lanes_of
from .writer import Line, Name, Writer


class LoadWriter:
    """Names values of one kernel, and loads those that are in memory.

    Parameters
    ----------
    stored : mapping
        Values to load, with the strides of their buffers.
    """

    def __init__(
        self,
        fusion: Fusion,
        tiles: tuple[Tile, ...],
        stored: Mapping[Value, tuple[int, ...]],
        wide_index: bool,
    ) -> None:
        self.fusion = fusion
        self.writer = Writer()
        self.index = IndexWriter(self.writer, tiles, wide_index)
        self.lanes = LaneWriter(self.writer, self.index, self.part)
        for value in fusion.inputs:
            if not value.is_tensor:
                self.writer.fresh(value.name)
        self.stored = stored
        self.loaded: list[Read] = []

    def read(self, read: Read) -> Name:
        """The value at an index, written if it is not yet."""
        raise AssertionError(f"{read.value.name} is not in memory")

    def bind(self, read: Read, name: Name) -> None:
        """Say that a value at an index is already there under a name."""
        self.writer.scope_for(name.dims).names[read] = name

    def define(
        self,
        value: Value,
        text: str,
        dims: frozenset[str],
        dtype: DataType,
        loc: SourceLoc | None,
        mark: str = "",
        loads: str = "",
    ) -> Name:
        """A line ``name = text`` in the scope where ``dims`` run.

        The name is the value's, with ``mark`` behind it where it is not the value itself;
        ``loads`` says from where the line loads, if it does.
        """
        scope = self.writer.scope_for(dims)
        name = Name(self.writer.fresh(f"{value.name}{mark}"), dtype, dims)
        scope.lines.append(Line(f"{name.text} = {text}", loc, loads=loads))
        return name

    def _load(self, read: Read) -> Name:
        value = read.value
        if not value.is_tensor:
            name = self.cast(Name(value.name, passed_dtype(value)), value.dtype, value, None)
            self.bind(read, name)
            return name
        if value.tensor.numel == 0:
            zero = f"tl.full([], 0, {triton_name(value.dtype)})"
            return self.define(value, zero, frozenset(), value.dtype, None)
        self._read_indices(*read.index)
        offset = offset_of(read.index, self.stored[value])
        dims = self.index.dims(offset) | self._guard_dims(read.guards)
        masks = self.index.mask(dims) + self.guards(read.guards)
        self.loaded.append(read)
        lanes = lanes_of(offset, read.guards, self.index.met(offset), self.index.rank)
        if lanes is None:
            text = load_text(self._pointer(read, offset, dims, masks), masks)
            name = self.define(value, text, dims, value.dtype, None, loads=value.name)
        else:
            pointer = self.address(value, self.lanes.offset(offset, lanes))
            text = load_text(pointer, self.lanes.masks(masks, lanes))
            lane = self.define(value, text, dims, value.dtype, None, "_lane", loads=value.name)
            text = f"spread({lane.text}, {lanes.count})"
            name = self.define(value, text, dims, value.dtype, None)
        self.bind(read, name)
        return name

    def _pointer(self, read: Read, offset: Affine, dims: frozenset[str], masks: list[str]) -> str:
        """The address of a load; with masks it is a block as they are."""
        pointer = self.address(read.value, offset)
        if not masks or self.index.blocked(self.index.dims(offset)):
            return pointer
        # A value read at run time may be a block of one, where tiles have several rows.
        computed = self.index.rank > 1 and any(guard.expr.loaded() for guard in read.guards)
        return self.index.spread(pointer, dims, always=computed)

    def address(self, value: Value, offset: Affine) -> str:
        """Where an element of a buffer is: ``tv0_ptr + x * 4 + r``."""
        place = self.index.text(offset)
        return f"{value.name}_ptr" if place == "0" else f"{value.name}_ptr + {place}"

    def _read_indices(self, *exprs: Affine) -> None:
        """Write the values that index expressions contain."""
        for expr in exprs:
            for loaded in expr.loaded():
                assert isinstance(loaded.key, Read)
                self.read(loaded.key)

    def _guard_dims(self, guards: tuple[Guard, ...]) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for guard in guards:
            self._read_indices(guard.expr)
            found |= self.index.dims(guard.expr)
        return found

    def guards(self, guards: tuple[Guard, ...]) -> list[str]:
        """Each guard as a condition, in parentheses."""
        texts: list[str] = []
        for guard in guards:
            self._read_indices(guard.expr)
            expr = unbound(guard.expr)
            place = self.index.text(expr - expr.const)
            bounds = expr.range
            if bounds is None or not surely_below(guard.low - 1, bounds[0]):
                texts.append(f"({place} >= {guard.low - expr.const})")
            if bounds is None or not surely_below(bounds[1], guard.high):
                texts.append(f"({place} < {guard.high - expr.const})")
        return list(dict.fromkeys(texts))

    def cast(self, name: Name, dtype: DataType, value: Value, loc: SourceLoc | None) -> Name:
        """The same number as another dtype, converted once."""
        if name.dtype is dtype:
            return name
        key = ("cast", name.text, dtype)
        found = self.writer.find(key)
        if found is None:
            text = cast_text(name.text, name.dtype, dtype)
            mark = "" if loc is not None else f"_{dtype.info.triton}"
            made = self.define(value, text, name.dims, dtype, loc, mark)
            self.writer.scope_for(name.dims).names[key] = made
            return made
        return found

    def part(self, tile: Tile, count: int) -> str:
        """The positions of a tile by ``count``, one each: kernels know where their tiles start."""
        raise AssertionError(f"{tile.name} has no place yet")
