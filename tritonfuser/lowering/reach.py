"""What computing a value at an index reads: the walk that segmenting and emitting share.

Kernels are emitted by pulling: from a result and its index to the operands and theirs, through
index maps, down to what is loaded from memory or reduced in the kernel.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..affine import Affine, Bounded, Loaded, digit
from ..ir import Fusion, Node, Value
from ..ops.builder import as_call
from ..ops.table import Library, Moments, Pointwise, Reduction, Scan, View
from ..shapes import Guard, Index, Pull, Source, broadcast_index

Guards = tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A value at an index, needed only where the guards hold."""

    value: Value
    index: Index = ()
    guards: Guards = ()


def is_anchor(node: Node) -> bool:
    """Whether a node is computed at one place of a kernel only: reductions and scans."""
    return isinstance(as_call(node).op.form, Reduction | Moments | Scan)


def is_library(node: Node) -> bool:
    """Whether a node is run by torch, between kernels."""
    return isinstance(as_call(node).op.form, Library)


def sources_of(node: Node, read: Read) -> tuple[Source, ...]:
    """The places a view's element comes from, sources that can never be read left out."""
    form = as_call(node).op.form
    assert isinstance(form, View)

    def read_index(value: Value, index: Index) -> Affine:
        return digit(Loaded(Read(value, index, read.guards)))

    found = form.pull(as_call(node), Pull(read.index, read_index))
    kept: list[Source] = []
    for source in found:
        guards = tuple(g for g in source.guards if not g.always)
        if any(g.never for g in guards):
            continue
        index = tuple(_within(item, guards) for item in source.index)
        kept.append(Source(source.operand, index, guards))
        if not guards:
            break
    return tuple(kept)


def _within(item: Affine, guards: Guards) -> Affine:
    """An index that a guard bounds from 0 on, as an expression known to lie in those bounds."""
    for guard in guards:
        if guard.expr == item and guard.low == 0:
            return digit(Bounded(item, guard.high))
    return item


def merge_guards(outer: Guards, inner: Guards) -> Guards:
    return tuple(dict.fromkeys((*outer, *inner)))


def reads(node: Node, read: Read) -> Iterator[Read]:
    """The operands one element of a node needs, each at its index."""
    form = as_call(node).op.form
    if isinstance(form, View):
        for source in sources_of(node, read):
            guards = merge_guards(read.guards, source.guards)
            for item in (*source.index, *(g.expr for g in source.guards)):
                for loaded in item.loaded():
                    assert isinstance(loaded.key, Read)
                    yield loaded.key
            if isinstance(source.operand, Value) and source.operand.is_tensor:
                yield Read(source.operand, source.index, guards)
            elif isinstance(source.operand, Value):
                yield Read(source.operand)
        return
    for operand in node.operands():
        if not operand.is_tensor:
            yield Read(operand)
        elif isinstance(form, Pointwise):
            yield Read(operand, broadcast_index(read.index, operand.tensor), read.guards)
        else:
            raise AssertionError(f"{node.op} is not computed element by element")


@dataclass(frozen=True)
class Reach:
    """What a walk met: reductions at their own index, others, loads, and the nodes between.

    ``anchors`` are all reads of reductions and scans, each at its index.
    """

    native: frozenset[Value]
    foreign: frozenset[Value]
    anchors: frozenset[Read]
    loads: frozenset[Read]
    nodes: frozenset[Node]


def walk(
    fusion: Fusion,
    start: Iterable[Read],
    places: Mapping[Value, Index],
    stored: Container[Value] = frozenset(),
) -> Reach:
    """Pull from ``start`` down to inputs and anchors.

    Parameters
    ----------
    places : mapping
        The index at which each anchor's results are computed.
    stored : container
        Values to load from memory instead of computing them.
    """
    native: set[Value] = set()
    foreign: set[Value] = set()
    anchors: set[Read] = set()
    loads: set[Read] = set()
    nodes: set[Node] = set()
    seen: set[Read] = set()
    stack = list(start)
    while stack:
        read = stack.pop()
        if read in seen:
            continue
        seen.add(read)
        node = fusion.producers.get(read.value)
        if node is None or read.value in stored:
            loads.add(read)
        elif read.value in places:
            at_home = read.index == places[read.value] and not read.guards
            (native if at_home else foreign).add(read.value)
            anchors.add(read)
        else:
            nodes.add(node)
            stack.extend(reads(node, read))
    return Reach(
        frozenset(native),
        frozenset(foreign),
        frozenset(anchors),
        frozenset(loads),
        frozenset(nodes),
    )
