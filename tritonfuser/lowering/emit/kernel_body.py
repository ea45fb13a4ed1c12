"""Writes the body of a segment's kernel, for all schedulers but matrix products.

A kernel has a grid axis ``x`` (``s`` where programs loop over rows), a tile over it, and for
reductions a tile axis ``r`` that is either whole in registers or looped over, once a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...device import NVIDIA_WARP_SIZE
from ...ir import Value
from ...ops.builder import as_call
from ...ops.forms import Moments
from ..access.read_footprint import walk
from ..access.reads import Read
from ..segments.member import Member
from ..segments.store import Store
from ..tile.axis_map import AxisMap
from ..tile.nest import Nest
from ..tile.tile import Tile
from .body import Body
from .indexing.tile_axes import AxesWriter
from .kernel_writers import KernelFacts, KernelWriters
from .lines import Line
from .load_order import crossing_first, in_loop_bodies, loads_first, main_fastest
from .memory.eviction_hints import loaded_in_short_steps, with_evictions
from .memory.loop_prefetch import LoopSteps, with_prefetch
from .memory.prefetch import is_prefetched, prefetch
from .names import Name
from .pass_plan import Pass, PassPlan, plan_passes
from .reductions.joint_sums import sums_together
from .reductions.member_tile import AfterLoop
from .reductions.online_softmax import OnlineSoftmax


class KernelBody(Body):
    """Writes the body of one segment's kernel."""

    def __init__(self, facts: KernelFacts, nest: Nest) -> None:
        self.facts = facts
        self.segment = facts.segment
        self.nest = nest
        index = facts.index_writer(nest)
        self.writer = index.writer
        self.axes = AxesWriter(index, nest)
        self.writers = KernelWriters(facts, nest, index, self.axes.part, self._prefetched)
        self._online: dict[Value, OnlineSoftmax] = {}
        self._steps: list[LoopSteps] = []

    def write(self) -> list[Line]:
        """All lines of the function body."""
        self.axes.write()
        top = len(self.writer.scopes[0].lines)
        plan = plan_passes(self.facts.fusion, self.segment, self.nest, self.facts.stored)
        loop = self.nest.loop_tile
        if loop is None:
            self._without_loop(plan.passes)
        else:
            self._loops(plan, loop)
        for store in plan.epilogue:
            for at in self._tiles(store):
                self.writers.stores.write(store, at)
        lines = self.writers.pairs.joined(self.writer.scopes[0].lines, top)
        return self._scheduled(self._with_evictions(lines))

    def _with_evictions(self, lines: list[Line]) -> list[Line]:
        """The lines; loads of a loop along a row say which of them a later pass repeats."""
        if self.nest.loop != "r" or not self.nest.evict_hints:
            return lines
        loop = self.nest.loop_tile
        assert loop is not None
        later = frozenset(value.name for value in self.segment.loaded_later)
        again = later | loaded_in_short_steps(self.loaded, loop, self.facts.fusion)
        return with_evictions(lines, self._read_by_all(), again)

    def _scheduled(self, lines: list[Line]) -> list[Line]:
        """The lines in the order in which loads hide latency: of a step, or of all."""
        params = self.segment.kernel_params
        threads = params.num_warps * NVIDIA_WARP_SIZE
        reorder = loads_first if self.nest.loads_first else partial(crossing_first, threads=threads)
        lines = in_loop_bodies(reorder, lines) if self.nest.loop else reorder(lines)
        if params.prefetches:
            return with_prefetch(lines, self._steps)
        return sums_together(lines) if params.num_warps > 1 else lines

    def _read_by_all(self) -> frozenset[str]:
        """The tensors of which every program reads the same elements."""
        spread = frozenset(tile.name for tile, _ in self.nest.grid)
        return frozenset(
            read.value.name
            for read in self.loaded
            if not spread & {axis.name for item in read.index for axis in item.axes()}
        )

    def _prefetched(self, read: Read) -> Name | None:
        if not is_prefetched(self.nest, self.segment.kernel_params, read):
            return None
        return prefetch(self.writers.loads, self.nest, read)

    # -- passes --------------------------------------------------------------

    def _without_loop(self, passes: Sequence[Pass]) -> None:
        for step in passes:
            self._fetch(step.members)
            early = self._stored_first(step)
            self._store(early)
            for member in step.members:
                self.writers.reduce(member, self.nest.maps)()
            self._store([store for store in step.stores if store not in early])
            if self.nest.rest is not None:
                self._rest(self.nest.rest, step.stores)

    def _stored_first(self, step: Pass) -> list[Store]:
        """The stores that come before the reductions: those that need none of them.

        A reduction of several warps is a barrier: behind it, what is only stored would be held in
        registers across it. Stores in another layout than what is reduced are converted, and stay
        behind it. H200, dropouts with their mask before a norm: 0.96 of the time (15 sizes, at best
        0.80).
        """
        main = main_fastest(self.writer.scopes[0].lines)
        return [
            store
            for store in step.independent
            if self.writers.stores.fastest(store, self._tiles(store)[0]) == main
        ]

    def _tiles(self, store: Store) -> Sequence[AxisMap]:
        return self.nest.maps.of(store.index, store.guards)

    def _store(self, stores: Sequence[Store]) -> None:
        """Stores of a kernel without a loop; those to the rest of a row come later."""
        for store in stores:
            tiles = self._tiles(store)
            for at in tiles if self.nest.rest is None else tiles[:1]:
                self.writers.stores.write(store, at)

    def _rest(self, rest: Tile, stores: Sequence[Store]) -> None:
        """What the last program alone has."""
        self.writer.open_loop(rest.name)
        for store in stores:
            for at in self._tiles(store)[1:]:
                self.writers.stores.write(store, at)
        header, first = self.axes.rest(rest)
        self.writer.close_loop(header, *first)

    def _loops(self, plan: PassPlan, loop: Tile) -> None:
        for out, maximum in plan.online.items():
            top = maximum.node.out
            if top not in self._online:
                self._online[top] = OnlineSoftmax(self.writers.reductions, maximum)
            self._online[out] = self._online[top]
        at_end = False
        for step in plan.passes:
            backwards = at_end and self._may_go_backwards(step.members, loop)
            self._loop(step, loop, backwards)
            at_end = not backwards

    def _loop(self, step: Pass, loop: Tile, backwards: bool) -> None:
        """One loop; the peeled tiles of its rows are computed after it."""
        along_row = loop.name == "r"
        tiles = {store: self._tiles(store) for store in step.stores}
        self.writer.open_loop(loop.name)
        self._fetch([m for m in step.members if m.node.out not in self._online])
        ends = [self._reduce(member) for member in step.members]
        for store, maps in tiles.items():
            for at in maps[:1] if along_row else maps:
                self.writers.stores.write(store, at)
        stages = self.segment.kernel_params.num_stages
        said = stages > 1 or self.facts.launch_stages != stages
        stop = self.writers.index.tile_text.loop_end(loop)
        unroll = self.nest.unroll if along_row else 1
        header = _loop_header(loop, stop, backwards, stages if said else None, unroll)
        self._steps.append(LoopSteps.of(loop, _variable(loop, backwards)))
        limit = "stop" if self.nest.is_aligned(loop) else loop.axis.extent
        self.writer.close_loop(header, *_positions(loop, backwards, limit))
        if along_row:
            # Loads first: a reduction is a barrier that no compiler moves them across.
            self._fetch(step.members, peeled=True)
        for end in ends:
            end()
        for store, maps in tiles.items():
            for at in maps[1:] if along_row else ():
                self.writers.stores.write(store, at)

    def _reduce(self, member: Member) -> AfterLoop:
        pair = self._online.get(member.node.out)
        if pair is not None:
            return pair.write(member)
        return self.writers.reduce(member, self.nest.maps)

    def _may_go_backwards(self, members: Sequence[Member], loop: Tile) -> bool:
        """Whether a loop may run from the end of its axis to the start.

        Moments count the steps of each lane. Where the last block is not full, some lanes have
        one step less. Backwards that step would come first, and their counts would be wrong.
        """
        counts = any(isinstance(as_call(m.node).op.form, Moments) for m in members)
        return self.nest.backwards and not (counts and loop.masked)

    def _fetch(self, members: Sequence[Member], *, peeled: bool = False) -> None:
        """Load the operands of all reductions before the first of them is computed: at the blocks
        of rows that a loop goes through, or at their peeled tiles."""
        fusion, stored = self.facts.fusion, self.facts.stored
        computed_at = {out: m.index for m in self.segment.members for out in m.node.outs}
        for member in members:
            if walk(fusion, [member.reads[0]], computed_at, stored).at_own_index:
                continue
            tiles = self.nest.maps.of(member.operand_index)
            if self.nest.loop == "r":
                # What is read behind a loop is not held in registers all through it.
                tiles = tiles[1:] if peeled else tiles[:1]
            self.writers.fetch(member, tiles)


def _loop_header(loop: Tile, end: str, backwards: bool, stages: int | None, unroll: int) -> str:
    """The ``for`` line of a loop over a tile's positions; ``num_stages`` where it has its own."""
    name, step = _variable(loop, backwards), loop.block or "1"
    said = [f"num_stages={stages}"] if stages is not None else []
    said += [f"loop_unroll_factor={unroll}"] if unroll > 1 else []
    if said:
        return f"for {name} in tl.range(0, {end}, {step}, {', '.join(said)}):"
    steps = end if loop.block is None else f"0, {end}, {step}"
    return f"for {name} in range({steps}):"


def _variable(loop: Tile, backwards: bool) -> str:
    """What the ``for`` line moves."""
    if loop.block is None:
        return loop.name
    return f"{loop.name}_back" if backwards else f"{loop.name}_start"


def _positions(loop: Tile, backwards: bool, end: int | str) -> list[str]:
    """The lines that begin a step: its positions, and the mask of those before ``end``."""
    name, lines = loop.name, []
    if backwards:
        # Of whole blocks, so that Triton sees vectors.
        lines.append(f"{name}_start = {LoopSteps.of(loop, name).last} - {name}_back")
    if loop.block is not None:
        lines.append(f"{name} = {name}_start + {name}_base")
    if loop.masked:
        lines.append(f"{name}_mask = {name} < {end if loop.part is None else loop.stop_text}")
    return lines
