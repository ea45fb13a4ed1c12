"""Short rows that lie one behind the other: moved as one run, through shared memory.

Triton lays the threads of ``tl.load(p + x * 21 + r)`` along a row, one element each since rows
begin anywhere: 21 of 32 lanes load, and each reduction goes through the lanes. Of a run of memory
threads load whole vectors. ``tl.gather`` writes these to shared memory, from which each thread
reads whole rows: it reduces them by itself, and has nothing behind their ends. What is stored goes
the same way back, one element a thread: of vectors, threads would read shared memory at few banks.
If threads lay along rows for the stores alone, Triton would compute what is stored in that layout
too. H200, rows in bfloat16, 109 M elements: largest and sum of exponentials 94 us for 352 of rows
of 21, 89 for 372 of rows of 49; a softmax 161 for 340 and 164 for 425, a copy 118.
"""

from __future__ import annotations

from ....dtypes import DataType
from ....symbolic.index_expr import Affine, digit
from ....symbolic.queries import is_known_equal
from ...access.reads import Guards
from ...tile.nest import Nest
from ...tile.tile import Tile
from ..indexing.index_writer import IndexWriter
from ..lines import Line
from ..names import Name


class StagedRows:
    """Which loads and stores are of whole rows one behind the other, their addresses and masks.

    Parameters
    ----------
    nest : Nest
        The kernel axes. Without ``nest.staged`` there are none.
    """

    def __init__(self, index: IndexWriter, nest: Nest) -> None:
        self._index, self._nest = index, nest
        self._row: Tile | None = None
        self._rows: Tile | None = None
        if nest.staged:
            self._row, self._rows = nest.row_sides

    def start(self, offset: Affine, guards: Guards) -> Affine | None:
        """The offset of the first row of axis x if a tile of a tensor is one run; else None."""
        if self._row is None or self._rows is None or guards or offset.loaded():
            return None
        sides = [digit(tile.axis).terms for tile in (self._row, self._rows)]
        if not all(sides):  # one position: it is in no offset
            return None
        ((row, _),), ((rows, _),) = sides
        steps = dict(offset.terms)
        if not is_known_equal(steps.pop(row, 0), 1):
            return None
        if not is_known_equal(steps.pop(rows, 0), self.length):
            return None
        start = Affine(tuple(term for term in offset.terms if term[0] in steps), offset.const)
        along = {self._row.axis, self._rows.axis}
        return start if along.isdisjoint(start.axes()) else None

    @property
    def length(self) -> int:
        """Elements of a row."""
        assert self._row is not None
        return self._row.axis.extent

    def positions(self) -> str:
        """The variable with the positions of a tile's run. Its mask is ``.._mask``."""
        row, rows = self._row, self._rows
        assert row is not None and rows is not None
        writer, text = self._index.writer, self._index.tile_text
        first, run = f"{rows.name}_first", f"{rows.name}_run"
        if writer.find(run) is None:
            arange, many = f"tl.arange(0, {rows.block} * {row.block})", str(rows.block)
            looped = rows.name == self._nest.loop
            lines = [] if looped else [f"{first} = {self._first(rows)}"]
            first = f"{rows.name}_start" if looped else first
            if rows.masked:
                end = rows.stop_text if looped else rows.mask_end
                many = f"tl.minimum({many}, {end} - {first})"
            lines.append(f"{run} = {first} * {self.length} + {arange}{text.widened}")
            lines.append(f"{run}_mask = {arange} < {many} * {self.length}")
            dims = frozenset({rows.name})
            writer.scope_for(dims).lines.extend(map(Line, lines))
            writer.bind(run, Name(run, DataType.Int32, dims))
            self._index.terms.add((rows.axis.extent + 2 * rows.width) * self.length)
        return run

    def of_rows(self, run: str, mask: str) -> str:
        """The rows of a run that is loaded. Behind a mask they are 0, until a load gives another
        value there."""
        assert self._row is not None and self._rows is not None
        given = f"{run}, {self.length}, {self._row.block}, {self._rows.block}"
        return f"masked_rows_of({given}, {mask}, other=0)" if mask else f"rows_of({given})"

    def of_run(self, rows: str) -> str:
        """The run of the rows that are stored."""
        return f"run_of({rows}, {self.length})"

    def _first(self, rows: Tile) -> str:
        number = next(n for n, (tile, _) in enumerate(self._nest.grid) if tile == rows)
        return self._index.tile_text.first(rows, number)
