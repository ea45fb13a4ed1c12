"""Kernels of rows that several programs share: each reduces a part, and tells the others."""

from __future__ import annotations

from collections.abc import Mapping

from ...dtypes import DataType
from ...ir import Fusion, Value
from ...ops.builder import as_call
from ...ops.table import Reduction
from ...shapes import Guard, Index
from ...symbolic.index_expr import Axis, digit
from ..kernel_source import Board
from ..segments import Member, Segment, Store
from ..tile.shared_nest import SharedNest
from ..tile.tile import Tile
from .eviction_hints import kept_until
from .kernel_body import KernelBody
from .reduce_tile import give, row_total, work_dtype
from .writer import Line, Name

BOARD = "board_ptr"
"""Where programs tell one another what they reduced: one word for each row, result and part."""


class SharedBody(KernelBody):
    """Writes a loop that reads a row's part, tells its sums, and finishes an earlier row.

    A row's sums are asked for ``delay`` steps after they were told, so that nobody waits. What
    the row needs besides is read again then, from the L2 cache.
    """

    named_in_loop = frozenset(("n",))

    def __init__(
        self,
        fusion: Fusion,
        segment: Segment,
        nest: SharedNest,
        stored: Mapping[Value, tuple[int, ...]],
        outputs: Mapping[Value, tuple[int, ...]],
        wide_index: bool,
    ) -> None:
        super().__init__(fusion, segment, nest, stored, outputs, wide_index)
        self.rows = nest
        self.told = [m for m in segment.members if not self.walks(m)]
        self._late = False

    # -- places --------------------------------------------------------------

    def place(self, index: Index) -> Index:
        found = super().place(index)
        return self.rows.late_place(found) if self._late else found

    def guards_here(self, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
        found = super().guards_here(guards)
        return self.rows.late_guards(found) if self._late else found

    def across(self, member: Member) -> Tile:
        if not self.walks(member):
            return super().across(member)
        return self.rows.late if self._late else self.rows.early

    def _programs(self, lines: list[Line]) -> None:
        program, parts = self._program(0), self.rows.parts
        if self.rows.grid[0][0].axis.extent > 1:
            lines.append(Line(f"s = {program} // {parts}"))
        lines.append(Line(f"part = {program} % {parts}"))
        lines.append(Line(f"parts = tl.arange(0, {parts})"))

    def _start(self, tile: Tile) -> str:
        start = super()._start(tile)
        return f"part * {self.rows.width} + {start}"

    def part(self, tile: Tile, count: int) -> str:
        within = super().part(tile, count)
        return f"part * {self.rows.width // count} + {within}"

    # -- the board -----------------------------------------------------------

    def board(self) -> Board:
        """The memory that the programs tell their results in."""
        count = self.rows.grid[0][1] * self.rows.early.axis.extent * len(self.told)
        return Board(BOARD, self._word(), count)

    def _word(self) -> DataType:
        wide = work_dtype(next(self.told[0].node.operands())) is DataType.Double
        return DataType.Int if wide else DataType.Int32

    def _told_at(self, row: Tile, number: int, part: str) -> str:
        """Where a part's result for a row is: ``board_ptr + s * 8192 + m * 16 + part``."""
        group, rows = self.rows.grid[0][0], self.rows.early.axis.extent
        words = len(self.told) * self.rows.parts
        position = (digit(group.axis) * rows + digit(row.axis)) * words
        position = position + digit(Axis(part, self.rows.parts)) + number * self.rows.parts
        return f"{BOARD} + {self.index.text(position)}"

    # -- the loop ------------------------------------------------------------

    def _pass(self, members: list[Member], stores: list[Store]) -> None:
        self.writer.open_loop("m", "n")
        seen = [self._look(number, member) for number, member in enumerate(self.told)]
        self._fetch(self.told)
        for number, member in enumerate(self.told):
            self._tell(number, member)
        early = len(self.writer.scopes[-1].lines)
        self._late = True
        for number, (member, name) in enumerate(zip(self.told, seen, strict=True)):
            self._hear(number, member, name)
        ends = [self._reduce(member) for member in members if self.walks(member)]
        for store in stores:
            self._store(store)
        lines = self.writer.scopes[-1].lines
        lines[:] = kept_until(lines, early)
        self.writer.close_loop(self._loop_header(self.rows.early), *self._rows_of_a_step())
        for end in ends:
            assert end is not None
            end()
        self._late = False

    def _rows_of_a_step(self) -> list[str]:
        mask = f"m_mask = m < {self.rows.early.axis.extent}"
        return [mask, f"n = m - {self.rows.delay}", "n_mask = n >= 0"]

    def _loop_header(self, tile: Tile, back: bool = False) -> str:
        stages, steps = self.segment.params.num_stages, tile.axis.extent + self.rows.delay
        if stages > 1:
            return f"for m in tl.range(0, {steps}, num_stages={stages}):"
        return f"for m in range({steps}):"

    def _look(self, number: int, member: Member) -> Name:
        """What is on the board by now: asked for early, as it takes as long as a load."""
        where = self._told_at(self.rows.late, number, "parts")
        text = f"look({where}, n_mask)"
        return self.define(member.node.out, text, frozenset("n"), self._word(), None, "_seen")

    def _tell(self, number: int, member: Member) -> None:
        form = as_call(member.node).op.form
        assert isinstance(form, Reduction)
        total = row_total(self, member, form, "_part")
        where = self._told_at(self.rows.early, number, "part")
        line = Line(f"tell({where}, {total.text}, m_mask)", member.node.loc)
        self.writer.scopes[-1].lines.append(line)

    def _hear(self, number: int, member: Member, seen: Name) -> None:
        form = as_call(member.node).op.form
        assert isinstance(form, Reduction)
        where = self._told_at(self.rows.late, number, "parts")
        dtype = work_dtype(next(member.node.operands()))
        loc, dims = member.node.loc, frozenset("n")
        heard = f"heard({seen.text}, {where})"
        parts = self.define(member.node.out, heard, dims, dtype, loc, "_parts")
        text = form.across.format(x=parts.text, axis=0)
        give(self, member, member.node.out, self.define(member.node.out, text, dims, dtype, loc))
