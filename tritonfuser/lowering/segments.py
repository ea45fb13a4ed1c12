"""What segmenting gives: kernels-to-be, how outputs lie in their buffers, and why it was cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from ..heuristics.params import HeuristicParams
from ..ir import Fusion, Node, Operand, Value
from ..shapes import Guard, Index, Target
from ..symbolic.index_expr import Affine, Axis
from .access.aliases import BufferView
from .access.read_footprint import Read, loaded_by, read_as, target_of


@dataclass(frozen=True)
class Member:
    """A reduction or scan in a segment, and where it lies in the segment's loop nest.

    ``index`` is where its results are, ``operand_index`` where its operand is read; ``across``
    the axes it reduces or scans. ``others`` are the places of the operands behind the first: a
    matrix product has more.
    """

    node: Node
    index: Index
    operand_index: Index
    across: tuple[Axis, ...]
    others: tuple[Index, ...] = ()

    @property
    def reads(self) -> tuple[Read, ...]:
        """Its operands, each where it is read."""
        places = (self.operand_index, *self.others)
        return tuple(Read(v, i) for v, i in zip(self.node.operands(), places, strict=True))


@dataclass(frozen=True)
class Store:
    """A value the segment writes to memory, whole, at an index of its loop nest.

    ``guards`` hold at the positions that are its elements, where it has fewer than the nest.
    ``source`` is what is written where that is not the value itself: a scatter's result is first
    a copy of another value. ``scatter`` is the node that says where the elements of ``source``
    go; then ``index`` is one of its index tensor. ``start`` is where a part of the value begins:
    then ``index`` is one of ``source``.
    """

    value: Value
    index: Index
    guards: tuple[Guard, ...] = ()
    source: Operand | None = None
    scatter: Node | None = None
    start: tuple[int, ...] = ()

    @property
    def read(self) -> Read:
        """The index the element is computed at, as a read of the value."""
        return Read(self.value, self.index, self.guards)

    @cached_property
    def target(self) -> Target:
        """Where it is written in the value's memory."""
        if self.start:
            return Target(tuple(i + s for i, s in zip(self.index, self.start, strict=True)))
        if self.scatter is None:
            return Target(self.index)
        return target_of(self.scatter, self.read)

    @cached_property
    def starts(self) -> tuple[Read, ...]:
        """What is read to write it: the source, and the indices that say where it goes."""
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
    inputs, outputs : tuple of Value
        What it loads and stores.
    parallel, reduced : tuple of Axis
        The loop nest: axes every result has, and axes reduced (or scanned) along.
    batch_axes : tuple of Axis
        Those of ``parallel`` that reductions over rows keep: one program each.
    co_reduced : tuple of Axis
        Those of ``parallel`` that a program has whole: results of its rows are reduced over them.
    crossing : tuple of Axis
        Those of ``parallel`` that make up the second tile axis of a transpose.
    members : tuple of Member
        Its reductions and scans in order of dependence.
    stores : tuple of Store
        Its outputs with their places.
    params : HeuristicParams
        Tile sizes.
    reason : str
        Why these nodes are together.
    operands : tuple of BufferView
        For ``expr_eval``: where the tensors that torch is given lie, in the node's order.
    refusals : tuple of str
        Why each scheduler before the chosen one does not take it.
    cut : str
        Why the kernels before it did not take it in; empty where none was asked.
    bytes_read, bytes_written : int
        Bytes of tensors that it has to move, each element once.
    depth : int
        How many reductions along its rows depend on one another.
    row_start : Affine or None
        Where its rows begin in its tensors, in elements; None where many differ.
    follows, followed : bool
        Whether its kernel starts while the one before it ends, and the one behind it likewise.
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
    co_reduced: tuple[Axis, ...] = ()
    operands: tuple[BufferView, ...] = ()
    refusals: tuple[str, ...] = ()
    cut: str = ""
    bytes_read: int = 0
    bytes_written: int = 0
    depth: int = 0
    row_start: Affine | None = None
    follows: bool = False
    followed: bool = False

    @property
    def parallel_extent(self) -> int:
        return prod(a.extent for a in self.parallel)

    @property
    def reduced_extent(self) -> int:
        return prod(a.extent for a in self.reduced)

    @property
    def looped_axes(self) -> tuple[Axis, ...]:
        """Those of ``parallel`` that a program loops over where it reduces over rows."""
        return tuple(a for a in self.parallel if a not in self.batch_axes)


@dataclass(frozen=True)
class SegmentedFusion:
    """A fusion cut into segments, in execution order.

    ``fusion`` is what the segments' nodes belong to; it may have more nodes than the recorded
    one, where a reduction is done in two steps. ``results`` are parallel to its outputs.
    """

    fusion: Fusion
    segments: tuple[Segment, ...]
    results: tuple[BufferView, ...]
    layouts: dict[Value, tuple[int, ...]]
    cuts: tuple[str, ...] = field(default=())

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
