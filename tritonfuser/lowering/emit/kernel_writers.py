"""``KernelFacts``, from which a kernel is written, and ``KernelWriters``, which write its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...ir import Fusion, Node, Value
from ...symbolic.choices import with_hints
from ..access.reads import Read
from ..access.rounded_casts import rounded_casts
from ..problem_sizes import env_of
from ..segments.member import Member
from ..segments.segment import Segment
from ..tile.axis_map import AxisMap, RowMaps
from ..tile.nest import Nest
from .emit_context import EmitContext
from .indexing.index_writer import IndexWriter
from .indexing.kernel_axes import KernelAxes
from .indexing.term_bounds import TermBounds
from .indexing.tile_text import TileText
from .memory.loads import LoadWriter
from .memory.pairs import PairWriter
from .memory.repeated_loads import PartOf, RepeatWriter
from .memory.staged_rows import StagedRows
from .memory.stores import StoreWriter
from .names import Name
from .reductions.forms import reduce_member
from .reductions.member_tile import AfterLoop, ReductionContext
from .values import ValueWriter
from .writer import Writer


@dataclass(frozen=True, kw_only=True)
class KernelFacts:
    """What a kernel, or a function of one segment, is written from.

    Attributes
    ----------
    context : EmitContext
        What it has in common with the definition's other kernels.
    segment : Segment
        The nodes, reductions, stores and params.
    stored, outputs : mapping of Value to tuple of int
        Strides, in elements, of the buffers that it loads from and stores to.
    wide_index : bool
        Whether positions are computed in 64 bits.
    terms : TermBounds
        Collects the bounds of all integer terms that are computed in 32 bits.
    fresh : frozenset of Value
        Values that other programs of the same launch have stored: loads must not find older
        contents in the L1 cache.
    program : str
        The variable with the number of the tile. Empty where that is the program id.
    launch_stages : int
        ``num_stages`` of the launch, which loops have that do not set their own.
    """

    context: EmitContext
    segment: Segment
    stored: Mapping[Value, tuple[int, ...]]
    outputs: Mapping[Value, tuple[int, ...]]
    wide_index: bool
    terms: TermBounds
    fresh: frozenset[Value] = frozenset()
    program: str = ""
    launch_stages: int = 1

    @property
    def fusion(self) -> Fusion:
        """The fusion that the segment's nodes belong to."""
        return self.context.fusion

    def index_writer(self, nest: Nest) -> IndexWriter:
        """A writer of positions, with an empty text.

        Kernels whose rows do not lie along memory are told the grid: a value that is the same for a
        whole tile is then loaded once (``KernelAxes.dims``). With rows along memory it is slower,
        since the threads that load such a value are not those that use it. H200: a softmax with a
        mask of each batch of 6144 x 64 took 2.14 us, and 2.37 with the mask loaded once; layer
        norms of 50176 x 128 with permuted rows 9.86 and 10.40 us.
        """
        problem = self.segment.problem
        in_columns = problem is not None and not with_hints(env_of(problem), problem).inner
        places = enumerate(nest.grid) if in_columns else ()
        grid = {tile.name: place for place, (tile, _) in places}
        writer = Writer()
        axes = KernelAxes(nest.tiles, writer, grid)
        tile_text = TileText(axes, self.wide_index, self.program)
        terms = None if self.wide_index else self.terms
        return IndexWriter(writer, axes, tile_text, self.context.check_bounds, terms)


class KernelWriters:
    """The writers of a kernel's loads, values, reductions and stores, which use one another.

    Parameters
    ----------
    nest : Nest
        The kernel axes.
    index : IndexWriter
        Writes positions, and has the text.
    part : PartOf
        Returns the positions of a tile divided by a number, as text.
    special_load : function
        Writes and binds a load that is not a plain ``tl.load``. Returns None for any other load.
    """

    def __init__(
        self,
        facts: KernelFacts,
        nest: Nest,
        index: IndexWriter,
        part: PartOf,
        special_load: Callable[[Read], Name | None],
    ) -> None:
        self.index = index
        self.writer = index.writer
        repeats = RepeatWriter(index, part)
        self.pairs = PairWriter(index, nest)
        staged = StagedRows(index, nest)
        self.loads = LoadWriter(index, repeats, self.pairs, staged, facts.stored, facts.fresh)
        self._special_load = special_load
        rounded = rounded_casts(facts.segment.nodes)
        self.values = ValueWriter(
            facts.fusion, facts.stored, repeats, self._load, self._reduce_again, rounded
        )
        pipelined = bool(nest.loop) and facts.segment.kernel_params.num_stages > 1
        self.stores = StoreWriter(self.values, self.loads, facts.outputs, pipelined)
        self.reductions = ReductionContext(facts.segment, nest, self.values)
        self._members = {out: m for m in facts.segment.members for out in m.node.outs}

    def reduce(self, member: Member, maps: RowMaps) -> AfterLoop:
        """Write a reduction or scan; returns a function that writes the lines after its loop."""
        return reduce_member(self.reductions, member, maps)

    def fetch(self, member: Member, tiles: Sequence[AxisMap]) -> None:
        """Write the operand of a reduction, at some tiles of its rows."""
        start = member.reads[0]
        for at in tiles:
            self.values.read(Read(start.value, at.index(start.index)))

    def _load(self, read: Read) -> Name:
        return self._special_load(read) or self.loads.load(read)

    def _reduce_again(self, node: Node) -> None:
        """Write a scan once more, in a later loop that reads its result."""
        self.reduce(self._members[node.out], self.reductions.nest.maps)
