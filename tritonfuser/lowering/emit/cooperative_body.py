"""The body of a kernel with cooperative rows: partial results are exchanged by a workspace."""

from __future__ import annotations

from ...dtypes import DataType
from ...ops.builder import as_call
from ...ops.forms import Reduction
from ...symbolic.index_expr import Axis, digit
from ..access.reads import Read
from ..kernel_source import WORKSPACE, CooperativeWorkspace
from ..segments.member import Member
from ..tile.cooperative_nest import CooperativeNest
from ..tile.tile import Tile
from .body import Body
from .indexing.tile_axes import AxesWriter
from .kernel_writers import KernelFacts, KernelWriters
from .lines import Line
from .memory.eviction_hints import kept_until
from .memory.prefetch import is_prefetched_row, prefetch_row
from .names import Name
from .pass_plan import Pass, plan_passes
from .reductions.forms import whole_row
from .reductions.member_tile import in_loop, work_dtype
from .reductions.reduce_tile import row_total


class CooperativeBody(Body):
    """Writes a loop that reads a part of row ``m``, publishes its sums, and finishes row ``n``.

    Row ``n`` is ``delay`` steps behind, so that its sums are there and no program waits for them.
    What else that row needs is loaded again, from the L2 cache.
    """

    def __init__(self, facts: KernelFacts, nest: CooperativeNest) -> None:
        self.facts = facts
        self.segment = facts.segment
        self.nest = nest
        self.index = facts.index_writer(nest)
        self.writer = self.index.writer
        self.axes = AxesWriter(self.index, nest)
        self.writers = KernelWriters(facts, nest, self.index, self.axes.part, self._prefetched)
        self.published = [m for m in facts.segment.members if not in_loop(nest, m)]

    def write(self) -> list[Line]:
        """All lines of the function body."""
        self.axes.write()
        plan = plan_passes(self.facts.fusion, self.segment, self.nest, self.facts.stored)
        for step in plan.passes:
            self._loop(step)
        for store in plan.epilogue:
            for at in self.nest.maps.of(store.index, store.guards):
                self.writers.stores.write(store, at)
        return self.writer.scopes[0].lines

    def _prefetched(self, read: Read) -> Name | None:
        nest, params = self.nest, self.segment.kernel_params
        if is_prefetched_row(nest.early, nest, params, read):
            return prefetch_row(self.writers.loads, nest, nest.early, read)
        if is_prefetched_row(nest.late, nest, params, read):
            return prefetch_row(self.writers.loads, nest, nest.late, read, nest.delay)
        return None

    # -- the workspace ---------------------------------------------------------

    @property
    def workspace(self) -> CooperativeWorkspace:
        """The memory that programs publish their results in."""
        count = self.nest.grid[0][1] * self.nest.early.axis.extent * len(self.published)
        return CooperativeWorkspace(WORKSPACE, self._word, count)

    @property
    def _word(self) -> DataType:
        wide = work_dtype(next(self.published[0].node.operands())) is DataType.Double
        return DataType.Int if wide else DataType.Int32

    @property
    def _has_gaps(self) -> bool:
        """Whether there are more lanes than programs that publish."""
        return self.nest.row_split.slots > self.nest.row_split.parts

    def _address(self, row: Tile, number: int, part: str) -> str:
        """Where a part's result for a row is: ``workspace_ptr + s * 8192 + m * 16 + part``."""
        group, rows = self.nest.grid[0][0], self.nest.early.axis.extent
        parts = self.nest.row_split.parts
        words = len(self.published) * parts
        position = (digit(group.axis) * rows + digit(row.axis)) * words
        position = position + digit(Axis(part, parts)) + number * parts
        return f"{WORKSPACE} + {self.index.offset_text(position)}"

    # -- the loop --------------------------------------------------------------

    def _loop(self, step: Pass) -> None:
        late = self.nest.late_maps
        self.writer.open_loop("m", "n")
        seen = [self._peek(number, member) for number, member in enumerate(self.published)]
        for member in self.published:
            self.writers.fetch(member, self.nest.maps.of(member.operand_index))
        for number, member in enumerate(self.published):
            self._publish(number, member)
        early = len(self.writer.scopes[-1].lines)
        for number, (member, name) in enumerate(zip(self.published, seen, strict=True)):
            self._wait_for(number, member, name)
        reduced = [member for member in step.members if in_loop(self.nest, member)]
        ends = [self.writers.reduce(member, late) for member in reduced]
        for store in step.stores:
            for at in late.of(store.index):
                self.writers.stores.write(store, at)
        lines = self.writer.scopes[-1].lines
        lines[:] = kept_until(lines, early)
        self.writer.close_loop(self._header(), *self._rows_of_a_step())
        for end in ends:
            end()

    def _rows_of_a_step(self) -> list[str]:
        mask = f"m_mask = m < {self.nest.early.stop_text}"
        return [mask, f"n = m - {self.nest.delay}", "n_mask = n >= 0"]

    def _header(self) -> str:
        stages = self.segment.kernel_params.num_stages
        early, delay = self.nest.early, self.nest.delay
        self.index.terms.add(early.end + delay)
        whole = self.index.tile_text.long(str(early.end + delay))
        steps = whole if early.part is None else f"{early.stop_text} + {delay}"
        if stages > 1:
            return f"for m in tl.range(0, {steps}, num_stages={stages}):"
        return f"for m in range({steps}):"

    def _peek(self, number: int, member: Member) -> Name:
        """Load what is published so far, early, to hide the latency of the load."""
        where = self._address(self.nest.late, number, "parts")
        text = f"peek({where}, n_mask{' & parts_mask' * self._has_gaps})"
        return self.writer.define(member.node.out, text, frozenset("n"), self._word, None, "_seen")

    def _publish(self, number: int, member: Member) -> None:
        """Reduce the program's part of row ``m``, and write the result to the workspace."""
        form = as_call(member.node).op.form
        assert isinstance(form, Reduction)
        total = row_total(whole_row(self.writers.reductions, member, self.nest.maps), form, "_part")
        where = self._address(self.nest.early, number, "part")
        self.writer.line(f"publish({where}, {total.text}, m_mask)", member.node.loc)

    def _wait_for(self, number: int, member: Member, seen: Name) -> None:
        """Combine the results of all parts of row ``n``; wait for those not published yet."""
        form = as_call(member.node).op.form
        assert isinstance(form, Reduction)
        where = self._address(self.nest.late, number, "parts")
        tile = whole_row(self.writers.reductions, member, self.nest.late_maps)
        dims = frozenset("n")
        parts = tile.define(tile.out, f"wait_for({seen.text}, {where})", dims, "_parts")
        if self._has_gaps and form.identity != "zero":  # what no program publishes is read as 0
            text = f"tl.where(parts_mask, {parts.text}, {tile.identity(form.identity)})"
            parts = tile.define(tile.out, text, dims, "_parts")
        text = form.across.format(x=parts.text, axis=0)
        tile.bind(tile.out, tile.define(tile.out, text, dims))
