"""Stores of results, as Triton text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ....ir import Value
from ....symbolic.index_expr import Affine
from ...access.reads import Guards
from ...access.traffic import offset_of
from ...segments.store import Store
from ...tile.axis_map import AxisMap
from ..expressions import cast_text, typed_literal
from ..indexing.addresses import address, with_max_contiguous
from ..lines import Line
from ..names import Name
from ..values import ValueWriter
from .blocks import block_of
from .loads import LoadWriter
from .pairs import Access
from .transposed_blocks import is_transposed, transposed


class StoreWriter:
    """Writes results to memory, in the scope where their axes run.

    Parameters
    ----------
    outputs : mapping of Value to tuple of int
        The results, with the strides of their buffers in elements.
    is_pipelined : bool
        Whether the kernel has a loop with a software pipeline, whose loads go through shared
        memory. Triton would read them there in the layout of a stored column ``[X, 1]``: one
        element a thread, with bank conflicts. So columns are stored as blocks with one dim. H200,
        sums and variances of 297216 rows of 64: 129 us with ``[X, 1]`` stored, 40 without a
        pipeline.

    Attributes
    ----------
    stored : list of Store
        All stores so far, at the positions of the kernel.
    """

    def __init__(
        self,
        values: ValueWriter,
        loads: LoadWriter,
        outputs: Mapping[Value, tuple[int, ...]],
        is_pipelined: bool = False,
    ) -> None:
        self.values = values
        self.loads = loads
        self.index = values.index
        self.axes = self.index.axes
        self.masks = self.index.masks
        self.writer = values.writer
        self.outputs = outputs
        self.is_pipelined = is_pipelined
        self.stored: list[Store] = []

    def write(self, store: Store, at: AxisMap) -> None:
        """Store one tile of a result.

        Parameters
        ----------
        store : Store
            The store, in the axes of the segment.
        at : AxisMap
            Where these axes are on the axes of the kernel, for the tile.
        """
        if store.value.tensor.numel == 0:
            return
        store = replace(store, index=at.index(store.index), guards=at.guards(store.guards))
        self.stored.append(store)
        name = self._source(store)
        target = store.target
        guards = (*store.guards, *target.guards)
        self.values.read_indices(*target.index, *(guard.expr for guard in guards))
        offset = offset_of(target.index, self.outputs[store.value])
        dims = self.axes.dims(offset)
        masked = dims | self.masks.guard_dims(guards) | name.dims
        text = cast_text(name.text, name.dtype, store.value.dtype)
        operands = self._operands(store.value, offset, replace(name, text=text), masked, guards)
        loc = None if store.scatter is None else store.scatter.loc
        start = self.loads.staged.start(offset, guards)
        if start is not None and name.dims == dims:
            self._of_run(store.value, start, text, dims)
            return
        transposes = is_transposed(self.axes, store.value, offset)
        block = block_of(self.axes, offset, masked, store.value.dtype, transposes)
        line = Line(f"tl.store({operands})", loc, stores=store.value.name, block=block)
        self.writer.scope_for(masked).lines.append(line)
        if not guards and name.dims == dims:
            access = Access(line, text, self.axes.masked(masked))
            self.loads.pairs.add(store.value, offset, access, is_store=True)

    def fastest(self, store: Store, at: AxisMap) -> int | None:
        """The dim of a store's block along which threads run first; None for one element."""
        target = replace(store, index=at.index(store.index), guards=at.guards(store.guards)).target
        offset = offset_of(target.index, self.outputs[store.value])
        transposes = is_transposed(self.axes, store.value, offset)
        block = block_of(self.axes, offset, self.axes.dims(offset), store.value.dtype, transposes)
        return None if block is None else block.fastest

    def _of_run(self, value: Value, start: Affine, text: str, dims: frozenset[str]) -> None:
        """Store whole rows, which are one run of memory from an offset on."""
        staged = self.loads.staged
        run = staged.positions()
        pointer = with_max_contiguous(f"{address(self.index, value, start)} + {run}", {0: 1}, 1)
        line = f"tl.store({pointer}, {staged.of_run(text)}, mask={run}_mask)"
        self.writer.scope_for(dims).lines.append(Line(line, stores=value.name))

    def _operands(
        self, value: Value, offset: Affine, name: Name, masked: frozenset[str], guards: Guards
    ) -> str:
        """The operands of ``tl.store``: pointer, value and mask, in the form that stores fastest.

        Parameters
        ----------
        value : Value
            The value whose buffer is written.
        offset : Affine
            The element of the buffer.
        name : Name
            What is stored, in the buffer's dtype.
        masked : frozenset of str
            The axes of pointer, value and guards together.
        guards : tuple of Guard
            Conditions under which an element is stored.
        """
        dims = self.axes.dims(offset)
        text = name.text
        pointer = address(self.index, value, offset, guards)
        if self._needs_block(dims, masked):
            pointer = self.index.tile_text.spread(pointer, masked, always=True)
        mask = self.masks.name(masked, guards)
        if is_transposed(self.axes, value, offset):
            pointer = transposed(self.axes, pointer, dims)
            text = transposed(self.axes, text, name.dims)
            mask = transposed(self.axes, mask, self.masks.dims(masked, guards))
        if self.is_pipelined and self._is_column(dims) and dims == masked == name.dims:
            pointer = f"{value.name}_ptr + flat_column({self.index.offset_text(offset, guards)})"
            text, mask = f"flat_column({text})", mask and f"flat_column({mask})"
        return f"{pointer}, {text}{f', mask={mask}' if mask else ''}"

    def _source(self, store: Store) -> Name:
        """The value to store: the computed one, or the source of a scatter."""
        if store.source is None:
            return self.values.read(store.read)
        name = self.values.operand(store.source, store.value.dtype, store.read)
        return replace(name, text=typed_literal(name)) if name.literal else name

    def _is_column(self, dims: frozenset[str]) -> bool:
        """Whether a block over these axes is ``[X, 1]``."""
        blocked = self.axes.blocked(dims)
        return self.axes.rank == 2 and [self.axes.tiles[d].place for d in blocked] == [0]

    def _needs_block(self, dims: frozenset[str], masked: frozenset[str]) -> bool:
        """Whether an address must be broadcast to a block, since the stored value is one."""
        tiles = self.axes.tiles.values()
        one_position = any(tile.block and tile.axis.extent == 1 for tile in tiles)
        blocked = self.axes.blocked(dims)
        if self.axes.blocked(masked) > blocked:
            return True
        return not blocked and (one_position or self.axes.rank > 1)
