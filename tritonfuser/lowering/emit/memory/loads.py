"""Loads from memory at an index, as Triton text."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from ....ir import Value
from ....symbolic.index_expr import Affine
from ...access.reads import Read
from ...access.traffic import offset_of
from ...kernel_source import passed_dtype
from ..expressions import load_text, triton_name
from ..indexing.addresses import address
from ..indexing.index_writer import IndexWriter
from ..names import Name, Run
from .blocks import block_of
from .pairs import Access, PairWriter
from .repeated_loads import RepeatWriter
from .staged_rows import StagedRows
from .transposed_blocks import is_transposed, transposed


class LoadWriter:
    """Writes loads of values that are in memory. Indices that are loaded themselves come first.

    Parameters
    ----------
    pairs : PairWriter
        Is told of loads that may be of both elements of pairs.
    staged : StagedRows
        Which loads are of whole rows, through shared memory.
    stored : mapping
        Values in memory, with the strides of their buffers in elements.
    fresh : collection of Value
        What other programs of the same launch have stored: it is loaded past the L1 cache, which
        may have what was there before.

    Attributes
    ----------
    loaded : list of Read
        All loads so far, but those that tensor descriptors make.
    """

    def __init__(
        self,
        index: IndexWriter,
        repeats: RepeatWriter,
        pairs: PairWriter,
        staged: StagedRows,
        stored: Mapping[Value, tuple[int, ...]],
        fresh: Container[Value] = frozenset(),
    ) -> None:
        self.writer = index.writer
        self.index = index
        self.axes = index.axes
        self.masks = index.masks
        self.repeats = repeats
        self.stored = stored
        self.fresh = fresh
        self.loaded: list[Read] = []
        self.pairs = pairs
        self.staged = staged

    def load(self, read: Read) -> Name:
        """Load a value at an index, or take a scalar from the kernel's arguments; and bind it."""
        value = read.value
        if value.is_tensor and value.tensor.numel == 0:
            zero = f"tl.full([], 0, {triton_name(value.dtype)})"
            return self.writer.define(value, zero, frozenset(), value.dtype)
        name = self._element(read) if value.is_tensor else self._scalar(value)
        self.writer.bind(read, name)
        return name

    def _scalar(self, value: Value) -> Name:
        return self.writer.cast(Name(value.name, passed_dtype(value)), value.dtype, value)

    def _element(self, read: Read) -> Name:
        value = read.value
        offset = offset_of(read.index, self.stored[value])
        dims = self.axes.dims(offset) | self.masks.guard_dims(read.guards)
        self.loaded.append(read)
        start = self.staged.start(offset, read.guards)
        if start is not None:
            return self._of_run(value, start, dims)
        fresh = value in self.fresh
        known = "" if fresh else value.name  # such a load gets no other policy for caches
        repeat = self.repeats.repeat(offset, read.guards)
        if repeat is None:
            return self._each(read, offset, dims, known)
        pointer = address(self.index, value, self.repeats.offset(offset, repeat))
        text = load_text(pointer, self.repeats.mask(dims, read.guards, repeat), fresh)
        each = self.writer.define(value, text, dims, value.dtype, None, "_lane", known)
        return self.writer.spread(value, Run(each, repeat, self.repeats.axis(repeat).name))

    def _of_run(self, value: Value, start: Affine, dims: frozenset[str]) -> Name:
        """A load of whole rows, which are one run of memory from an offset on."""
        fresh = value in self.fresh
        run = self.staged.positions()
        load = load_text(f"{address(self.index, value, start)} + {run}", f"{run}_mask", fresh)
        known = "" if fresh else value.name
        loaded = self.writer.define(value, load, dims, value.dtype, None, "_run", known)
        mask = self.masks.name(dims)
        rows = self.staged.of_rows(loaded.text, mask)
        name = self.writer.define(value, rows, dims, value.dtype)
        if not mask:
            return name
        lines = self.writer.scope_for(dims).lines
        return self.writer.masked_loads.add(name, lines, self.axes.masked(dims))

    def _each(self, read: Read, offset: Affine, dims: frozenset[str], known: str) -> Name:
        """A load of an element for each position of a tile."""
        value = read.value
        mask = self.masks.name(dims, read.guards)
        pointer = self._pointer(read, offset, dims, mask)
        transposes = is_transposed(self.axes, value, offset)
        if transposes:
            pointer = transposed(self.axes, pointer, dims)
            mask = transposed(self.axes, mask, self.masks.dims(dims, read.guards))
        text = load_text(pointer, mask, value in self.fresh)
        form = "_transposed" if transposes else ""
        block = block_of(self.axes, offset, dims, value.dtype, transposes)
        name = self.writer.define(value, text, dims, value.dtype, None, form, known, block)
        lines = self.writer.scope_for(dims).lines
        access = Access(lines[-1], name.text, self.axes.masked(dims))
        if mask:
            name = self.writer.masked_loads.add(name, lines, access.masks)
        if transposes:
            turned = self.writer.define(value, f"tl.trans({name.text})", dims, value.dtype)
            access = replace(access, text=turned.text, turned=lines[-1])
            name = replace(turned, outside=name.outside)
        if known and not read.guards:
            self.pairs.add(value, offset, access, is_store=False)
        return name

    def _pointer(self, read: Read, offset: Affine, dims: frozenset[str], mask: str) -> str:
        """The address of a load; with a mask it is a block as that is."""
        pointer = address(self.index, read.value, offset, read.guards)
        if not mask or self.axes.blocked(self.axes.dims(offset)):
            return pointer
        # A value read at run time may be a block of one, where tiles have several rows.
        computed = self.axes.rank > 1 and any(guard.expr.loaded() for guard in read.guards)
        return self.index.tile_text.spread(pointer, dims, always=computed)
