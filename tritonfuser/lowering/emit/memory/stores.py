"""Stores of results, as Triton text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ....ir import Value
from ...access.traffic import offset_of
from ...segments import Store
from ...tile.axis_map import AxisMap
from ..expressions import cast_text, typed
from ..lines import Line, Name
from ..values import ValueWriter
from .loads import LoadWriter
from .pairs import Access
from .transposed_blocks import is_transposed, transposed


class StoreWriter:
    """Writes results to memory, in the scope where their axes run.

    Parameters
    ----------
    outputs : mapping
        The results, with the strides of their buffers in elements.
    is_pipelined : bool
        Whether the kernel has a loop whose loads are begun some steps ahead. What these have
        fetched is in shared memory and is read in any layout, so that Triton reads it in that of a
        stored column: one element a thread, with bank conflicts. Columns are stored as blocks with
        one dim then, whose layout stays their own. H200, sums and variances of 297216 rows of 64:
        129 us with ``[X, 1]`` stored, 40 without a pipeline.

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
        self.writer = values.writer
        self.outputs = outputs
        self.is_pipelined = is_pipelined
        self.stored: list[Store] = []

    def write(self, store: Store, at: AxisMap) -> None:
        """Store one tile of a result."""
        if store.value.tensor.numel == 0:
            return
        store = replace(store, index=at.index(store.index), guards=at.guards(store.guards))
        self.stored.append(store)
        name = self._stored(store)
        target = store.target
        guards = (*store.guards, *target.guards)
        self.values.read_indices(*target.index, *(guard.expr for guard in guards))
        offset = offset_of(target.index, self.outputs[store.value])
        dims = self.index.dims(offset)
        masked = dims | self.index.guard_dims(guards) | name.dims
        pointer = self.index.address(store.value, offset)
        if self._needs_block(dims, masked):
            pointer = self.index.spread(pointer, masked, always=True)
        named = self.index.mask_name(masked, guards)
        text = plain = cast_text(name.text, name.dtype, store.value.dtype)
        if is_transposed(self.index, store.value, offset):
            pointer = transposed(self.index, pointer, dims)
            text = transposed(self.index, text, name.dims)
            named = transposed(self.index, named, self.index.mask_dims(masked, guards))
        if self.is_pipelined and self._is_column(dims) and dims == masked == name.dims:
            pointer = f"{store.value.name}_ptr + flat_column({self.index.apart(offset)})"
            text, named = f"flat_column({text})", named and f"flat_column({named})"
        mask = f", mask={named}" if named else ""
        loc = None if store.scatter is None else store.scatter.loc
        line = Line(f"tl.store({pointer}, {text}{mask})", loc, stores=store.value.name)
        self.writer.scope_for(masked).lines.append(line)
        if not guards and name.dims == dims:
            access = Access(line, plain, self.index.masked(masked))
            self.loads.pairs.add(store.value, offset, access, is_store=True)

    def _stored(self, store: Store) -> Name:
        """The text of the value to store, in the dtype of the buffer."""
        if store.source is None:
            return self.values.read(store.read)
        name = self.values.operand(store.source, store.value.dtype, store.read)
        return replace(name, text=typed(name)) if name.literal else name

    def _is_column(self, dims: frozenset[str]) -> bool:
        """Whether a block over these axes is ``[X, 1]``."""
        blocked = self.index.blocked(dims)
        return self.index.rank == 2 and [self.index.tiles[d].place for d in blocked] == [0]

    def _needs_block(self, dims: frozenset[str], masked: frozenset[str]) -> bool:
        """Whether an address without axes must become a block, to go with a block of values."""
        tiles = self.index.tiles.values()
        one_position = any(tile.block and tile.axis.extent == 1 for tile in tiles)
        blocked = self.index.blocked(dims)
        if self.index.blocked(masked) > blocked:
            return True
        return not blocked and (one_position or self.index.rank > 1)
