"""Segments: the nodes of one kernel with its loop nest, stores and params."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from ..heuristics.cost.work import KernelWork
from ..heuristics.params import HeuristicParams, KernelParams
from ..heuristics.problem import Problem
from ..heuristics.schedule import Rewrites
from ..ir import Fusion, Node, Operand, Value
from ..shapes import Guard, Index, Target
from ..symbolic.index_expr import Affine, Axis, Bounded, digit
from .access.aliases import BufferView
from .access.read_footprint import Read, loaded_by, read_as, target_of


@dataclass(frozen=True)
class Share:
    """The part of the rows that one program reduces, where the parts need not divide them.

    Attributes
    ----------
    source : Value
        What is reduced, without the padding that makes its rows a multiple of the parts.
    part : Axis
        The axis of the results whose positions are the parts.
    rows : Axis
        The axis that is shared out. Part ``i`` has the positions from ``i * length`` on.
    length : int
        Positions of all parts but the last, which may have fewer.
    inside : tuple of Axis
        The further axes that are reduced, which each part has as a whole.
    interleaved : bool
        Part ``i`` of ``n`` has the positions ``i``, ``i + n``, ... instead. The last parts may have
        one fewer than ``length``.
    """

    source: Value
    part: Axis
    rows: Axis
    length: int
    inside: tuple[Axis, ...] = ()
    interleaved: bool = False

    @property
    def partition(self) -> tuple[Axis, int, int, bool]:
        """What all reductions over rows in one kernel must have in common."""
        return self.rows, self.part.extent, self.length, self.interleaved

    @property
    def places(self) -> dict[Axis, Affine]:
        """Where ``rows`` is, by the part and the place within it."""
        return {self.rows: self.place(digit(self.part), digit(Axis("m", self.length)))}

    def place(self, part: Affine, within: Affine) -> Affine:
        """Where along ``rows`` a position of a part is."""
        if self.interleaved:
            return digit(Bounded(within * self.part.extent + part, self.rows.extent))
        return digit(Bounded(part * self.length + within, self.rows.extent))


@dataclass(frozen=True)
class Member:
    """A reduction, scan or matrix product in a segment's loop nest.

    Attributes
    ----------
    node : Node
        The op.
    index : Index
        The element of the results that a position of the loop nest contributes to.
    operand_index : Index
        The element of the first operand that is read there.
    across : tuple of Axis
        The axes reduced or scanned along.
    others : tuple of Index
        The elements of the further operands, those of a matrix product.
    share : Share or None
        How the rows that it reduces are shared out, where a program has its part of them without
        padding.
    """

    node: Node
    index: Index
    operand_index: Index
    across: tuple[Axis, ...]
    others: tuple[Index, ...] = ()
    share: Share | None = None

    @property
    def operand(self) -> Value:
        """What is reduced; of a product the first operand."""
        return next(self.node.operands()) if self.share is None else self.share.source

    @property
    def reads(self) -> tuple[Read, ...]:
        """Its operands, each where it is read."""
        if self.share is not None:
            return (Read(self.share.source, self.operand_index),)
        places = (self.operand_index, *self.others)
        return tuple(Read(v, i) for v, i in zip(self.node.operands(), places, strict=True))


@dataclass(frozen=True)
class Store:
    """A value, or a part of one, that a segment writes to memory.

    Attributes
    ----------
    value : Value
        The value whose buffer is written.
    index : Index
        The element that a position of the loop nest writes: of ``value``, or of the index tensor
        where there is a ``scatter``.
    guards : tuple of Guard
        Hold at the positions that write an element, where the loop nest has more positions.
    source : Operand or None
        What is written where that is not ``value`` itself: a copy that elements are scattered into,
        or the elements to scatter.
    scatter : Node or None
        The op that says where elements of ``source`` go.
    part : int or None
        Which box of the elements of ``value`` is written. None for the whole value.
    """

    value: Value
    index: Index
    guards: tuple[Guard, ...] = ()
    source: Operand | None = None
    scatter: Node | None = None
    part: int | None = None

    @property
    def name(self) -> str:
        """As schedules name it: ``tv3``; ``tv3[1]``, a part; ``tv3.put``, what is scattered."""
        if self.part is not None:
            return f"{self.value.name}[{self.part}]"
        return self.value.name if self.scatter is None else f"{self.value.name}.put"

    @property
    def read(self) -> Read:
        """The index the element is computed at, as a read of the value."""
        return Read(self.value, self.index, self.guards)

    @cached_property
    def target(self) -> Target:
        """The element of ``value`` that is written."""
        if self.scatter is None:
            return Target(self.index)
        return target_of(self.scatter, self.read)

    @cached_property
    def root_reads(self) -> tuple[Read, ...]:
        """The reads that it needs: of the source, and of the indices of a scatter."""
        if self.source is None:
            return (self.read,)
        found = [] if self.scatter is None else loaded_by(self.target)
        if isinstance(self.source, Value):
            found.append(read_as(self.source, self.read))
        return tuple(found)


@dataclass(frozen=True)
class Segment:
    """The nodes of one kernel.

    Attributes
    ----------
    name : str
        ``s0``, ``s1``, ...; the kernel's name starts with it.
    scheduler : str
        One of nvFuser's scheduler names, or ``scan``.
    nodes : tuple of Node
        All nodes the kernel computes, in recording order.
    inputs : tuple of Value
        The values that it loads, and the scalars that it takes.
    outputs : tuple of Value
        The values that it stores.
    parallel : tuple of Axis
        The axes of the loop nest that results run over, the slowest first by the rules; params
        may have them in another order (``axis_order.py``). A position of them is a row.
    reduced : tuple of Axis
        The axes along rows, that members reduce or scan along. Empty for a flat kernel.
    batch_axes : tuple of Axis
        Those of ``parallel`` that reductions over rows keep: one program each.
    crossing : tuple of Axis
        Those of ``parallel`` that make up the second tile axis of a transpose, where its params do
        not say which.
    numbered : tuple of Axis or None
        Those of ``parallel`` by the numbers that params name them by. None for a dim of one
        position.
    members : tuple of Member
        Its reductions and scans in order of dependence.
    stores : tuple of Store
        What it writes.
    params : HeuristicParams
        The scheduler's decisions, tile sizes among them.
    problem : Problem or None
        What the scheduler decided by. None for what torch runs.
    reason : str
        Why these nodes are together.
    loads : tuple of Value
        The values of other kernels that it loads although it could compute them.
    co_reduced : tuple of Axis
        Those of ``parallel`` that one program has whole: results of its rows are reduced over them.
    operands : tuple of BufferView
        For ``expr_eval``: where the tensors that torch is given lie, in the node's order.
    refusals : tuple of str
        Why each scheduler before the chosen one does not take it.
    overruled : str
        By what the cost model chose other params than the scheduler proposes. Empty where it did
        not.
    cut : str
        Why the kernels before it did not take it in. Empty where there were none.
    work : KernelWork
        The instructions of its nodes, as the cost model counts them. None of what torch runs.
    bytes_read, bytes_written : int
        Bytes of tensors that it has to move, each element once.
    depth : int
        The longest chain of reductions along its rows. 0 without reductions.
    row_start : Affine or None
        The element of memory at which a row begins, for most of the bytes along rows. None where
        tensors differ, or sizes vary.
    loaded_later : tuple of Value
        Those of ``inputs`` that a later kernel may find in the L2 cache, if a loop does not mark
        them as used for the last time.
    overlap : bool
        Its kernel may start while the one before it ends, where the device can do that.
    finishes : str
        The segment whose kernel computes it too: each of its tiles by the last program that arrives
        of those that make what the tile reads. Empty for a kernel of its own.
    beside : str
        The segment whose launch it shares: programs are divided among both. Empty for a launch of
        its own.
    follows : bool
        Its kernel starts while the one before it ends (programmatic dependent launch).
    followed : bool
        The kernel after it starts while this one ends.
    """

    name: str
    scheduler: str
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    parallel: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    batch_axes: tuple[Axis, ...]
    crossing: tuple[Axis, ...]
    members: tuple[Member, ...]
    stores: tuple[Store, ...]
    params: HeuristicParams
    reason: str
    problem: Problem | None = None
    loads: tuple[Value, ...] = ()
    co_reduced: tuple[Axis, ...] = ()
    numbered: tuple[Axis | None, ...] = ()
    operands: tuple[BufferView, ...] = ()
    refusals: tuple[str, ...] = ()
    overruled: str = ""
    cut: str = ""
    work: KernelWork = field(default=KernelWork())
    bytes_read: int = 0
    bytes_written: int = 0
    depth: int = 0
    row_start: Affine | None = None
    loaded_later: tuple[Value, ...] = ()
    overlap: bool = True
    finishes: str = ""
    beside: str = ""
    follows: bool = False
    followed: bool = False

    @property
    def kernel_params(self) -> KernelParams:
        """The params, of a segment that has a kernel."""
        assert isinstance(self.params, KernelParams)
        return self.params

    @property
    def runs_torch(self) -> bool:
        """Whether torch runs its op."""
        return self.scheduler == "expr_eval"

    @property
    def has_launch(self) -> bool:
        """Whether something is launched for it first of all: its kernel, or what torch runs."""
        return self.scheduler != "no_op" and not self.launched_by

    @property
    def launched_by(self) -> str:
        """The segment whose kernel computes it; empty for one of its own, if it has any."""
        return self.finishes or self.beside

    @property
    def parallel_extent(self) -> int:
        """Rows: positions of ``parallel``."""
        return prod(a.extent for a in self.parallel)

    @property
    def reduced_extent(self) -> int:
        """Elements of a row: positions of ``reduced``."""
        return prod(a.extent for a in self.reduced)

    @property
    def shares(self) -> tuple[Share, ...]:
        """How the rows are shared out, for each reduction over them; empty where parts divide."""
        return tuple(m.share for m in self.members if m.share is not None)

    @property
    def looped_axes(self) -> tuple[Axis, ...]:
        """The axes of ``parallel`` that a program loops over where it reduces over rows."""
        return tuple(a for a in self.parallel if a not in self.batch_axes)


@dataclass(frozen=True)
class SegmentedFusion:
    """A fusion cut into segments.

    Attributes
    ----------
    fusion : Fusion
        The fusion that the segments' nodes belong to. It has more nodes than the recorded one where
        a reduction is split into two steps.
    segments : tuple of Segment
        In execution order.
    results : tuple of BufferView
        Where the fusion's outputs lie, in their order.
    layouts : dict of Value to tuple of int
        The strides of each stored value's buffer, in elements.
    cuts : tuple of str
        Why kernels were started, and reductions split, in words.
    rewrites : Rewrites
        How ``fusion`` came from the simplified one.
    values : str
        The names of the recorded fusion's values, as a ``Schedule`` has them.
    """

    fusion: Fusion
    segments: tuple[Segment, ...]
    results: tuple[BufferView, ...]
    layouts: dict[Value, tuple[int, ...]]
    cuts: tuple[str, ...] = field(default=())
    rewrites: Rewrites = field(default=Rewrites())
    values: str = ""

    def launched_with(self, piece: Segment) -> tuple[Segment, ...]:
        """The other segments that the kernel of a segment computes."""
        return tuple(other for other in self.segments if other.launched_by == piece.name)

    def summary(self) -> str:
        """The segments on one line, and a line for each cut."""
        names = ", ".join(f"{s.name} {s.scheduler}" for s in self.segments) or "nothing to run"
        count = f"{len(self.segments)} segment{'' if len(self.segments) == 1 else 's'}"
        return "\n".join([f"{count}: {names}", *(f"  cut: {cut}" for cut in self.cuts)])

    def __str__(self) -> str:
        lines: list[str] = []
        for segment in self.segments:
            nest = " ".join(f"{a.name}:{a.extent}" for a in segment.parallel)
            inner = " ".join(f"{a.name}:{a.extent}" for a in segment.reduced)
            ins = ", ".join(v.name for v in segment.inputs)
            outs = ", ".join(v.name for v in segment.outputs)
            lines.append(f"{segment.name} {segment.scheduler} [{nest}; {inner}] {ins} -> {outs}")
            lines.append(f"   {segment.reason}")
            lines.append(f"   {segment.params}")
            lines += [f"   {', '.join(o.name for o in n.outs)} = {n.op}" for n in segment.nodes]
        return "\n".join([*lines, *(f"cut: {cut}" for cut in self.cuts)])
