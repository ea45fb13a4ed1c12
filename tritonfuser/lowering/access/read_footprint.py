"""Read footprints: all reads that computing a value at an index leads to.

A walk starts from a result at an index. Index maps of the ops give the operands and their indices,
down to loads from memory and results of reductions. Grouping and emitting share it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ...ir import Fusion, Node, Value
from ...lazy import cached_property
from ...ops.builder import as_call, op_of
from ...ops.forms import Contraction, Materialize, Moments, Pointwise, Reduction, Scan
from ...ops.table import Library, Scatter, View
from ...shapes.broadcasting import broadcast_index
from ...shapes.index_map import Guard, Index, Pull, Source, Target
from ...symbolic.index_expr import Affine, Bounded, digit
from ...symbolic.loaded_index import Indexed, Loaded
from ...symbolic.queries import is_known_equal

Guards = tuple[Guard, ...]


@dataclass(frozen=True)
class Read:
    """An element of a value that is needed.

    Attributes
    ----------
    value : Value
        A tensor or a scalar.
    index : tuple of Affine
        As a function of the loop axes.
    guards : tuple of Guard
        Conditions under which the element is needed.
    """

    value: Value
    index: Index = ()
    guards: Guards = ()

    @cached_property
    def _hash(self) -> int:
        return hash((self.value, self.index, self.guards))

    def __hash__(self) -> int:
        # Cached: walks look up the same reads many times.
        return self._hash


def is_reducer(node: Node) -> bool:
    """Whether a kernel computes a node at one index only: reductions, scans, products."""
    return isinstance(op_of(node).form, Reduction | Moments | Scan | Contraction)


def is_core(node: Node) -> bool:
    """Whether a kernel is built around a node, with what comes before it and after it."""
    return isinstance(op_of(node).form, Contraction)


def is_library(node: Node) -> bool:
    """Whether torch runs a node, between kernels."""
    return isinstance(op_of(node).form, Library)


def is_scatter(node: Node) -> bool:
    """Whether two kernels write a node's result: a copy, and then elements stored into it."""
    return isinstance(op_of(node).form, Scatter)


def is_materialize(node: Node) -> bool:
    """Whether a node stores its operand in memory, for later kernels."""
    return isinstance(op_of(node).form, Materialize)


def ends_kernel(node: Node) -> bool:
    """Whether only later kernels can use a node's results, from memory."""
    return isinstance(op_of(node).form, Library | Scatter | Materialize)


def target_of(node: Node, read: Read) -> Target:
    """The element of the result that a scatter stores, for an index of its index tensor."""
    form = op_of(node).form
    assert isinstance(form, Scatter)
    return form.push(as_call(node), Pull(read.index, _reader(node, read)))


def loaded_by(at: Source | Target) -> list[Read]:
    """The elements of index tensors that an index and its guards use."""
    found: list[Read] = []
    for item in (*at.index, *(g.expr for g in at.guards)):
        for loaded in item.loaded():
            assert isinstance(loaded.key, Read)
            found.append(loaded.key)
    return found


def read_as(operand: Value, read: Read) -> Read:
    """The element of an elementwise op's operand that an element of the result needs."""
    if not operand.is_tensor:
        return Read(operand)
    return Read(operand, broadcast_index(read.index, operand.tensor), read.guards)


def _reader(node: Node, read: Read) -> Callable[[Value, Index, Indexed], Affine]:
    """The ``Pull.read`` of an element: an element of an index tensor as an index expression."""
    return lambda value, index, dim: digit(Loaded(Read(value, index, read.guards), dim, node.loc))


def sources_of(node: Node, read: Read) -> tuple[Source, ...]:
    """The sources of a view's element, without those whose guards never hold."""
    call = as_call(node)
    form = call.op.form
    assert isinstance(form, View)
    found = form.pull(call, Pull(read.index, _reader(node, read)))
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


Sources = Callable[[Node, Read], tuple[Source, ...]]
"""What finds the sources of a view's element."""


def _within(item: Affine, guards: Guards) -> Affine:
    """An index as ``Bounded`` where a guard keeps it in ``0 .. high - 1``."""
    for guard in guards:
        if guard.expr == item and is_known_equal(guard.low, 0):
            return digit(Bounded(item, guard.high))
    return item


def merge_guards(outer: Guards, inner: Guards) -> Guards:
    """The guards of both, each once."""
    return tuple(dict.fromkeys((*outer, *inner)))


def reads(node: Node, read: Read, sources: Sources = sources_of) -> Iterator[Read]:
    """The elements of operands that one element of a node needs.

    Parameters
    ----------
    sources : callable
        ``sources_of``, or a cached version of it.
    """
    form = op_of(node).form
    if isinstance(form, View):
        for source in sources(node, read):
            guards = merge_guards(read.guards, source.guards)
            yield from loaded_by(source)
            if isinstance(source.operand, Value) and source.operand.is_tensor:
                yield Read(source.operand, source.index, guards)
            elif isinstance(source.operand, Value):
                yield Read(source.operand)
        return
    for operand in node.operands():
        if operand.is_tensor and not isinstance(form, Pointwise):
            raise AssertionError(f"{node.op} is not computed element by element")
        yield read_as(operand, read)


class KnownReads:
    """A cached ``reads``, shared by the walks of groups and passes.

    It serves a fusion and its rewrites, which have most of their nodes in common. Nodes are told
    apart by identity, since comparing their content takes longer than what is saved.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, Read], tuple[Read, ...]] = {}
        self._sources: dict[tuple[int, Read], tuple[Source, ...]] = {}
        self._nodes: dict[int, Node] = {}

    def __call__(self, node: Node, read: Read) -> tuple[Read, ...]:
        """The elements of operands that one element of a node needs."""
        key = id(node), read
        found = self._found.get(key)
        if found is None:
            self._nodes[id(node)] = node  # it has to live as long as its id is used
            found = self._found[key] = tuple(reads(node, read, self.sources))
        return found

    def sources(self, node: Node, read: Read) -> tuple[Source, ...]:
        """The sources of a view's element, see ``sources_of``."""
        key = id(node), read
        found = self._sources.get(key)
        if found is None:
            self._nodes[id(node)] = node
            found = self._sources[key] = sources_of(node, read)
        return found


@dataclass(frozen=True)
class ReadFootprint:
    """The reads and nodes that computing some values needs.

    Attributes
    ----------
    at_own_index : frozenset of Value
        Results of reductions and scans, read at the index at which they are computed.
    at_other_index : frozenset of Value
        Results of reductions and scans, read at another index.
    reducers : frozenset of Read
        All reads of results of reductions and scans.
    loads : frozenset of Read
        Reads of memory.
    nodes : frozenset of Node
        The elementwise ops and views computed on the way.
    computed : frozenset of Read
        Their results. A kernel that needs a result at two indices computes it twice.
    """

    at_own_index: frozenset[Value]
    at_other_index: frozenset[Value]
    reducers: frozenset[Read]
    loads: frozenset[Read]
    nodes: frozenset[Node]
    computed: frozenset[Read]

    def needing(self, value: Value) -> ReadFootprint:
        """The footprint with a value that must be in memory before, although it is not read."""
        return replace(self, at_other_index=self.at_other_index | {value})

    @property
    def results(self) -> frozenset[Value]:
        """All results of reductions and scans that are read."""
        return self.at_own_index | self.at_other_index


EMPTY_FOOTPRINT = ReadFootprint(
    frozenset(), frozenset(), frozenset(), frozenset(), frozenset(), frozenset()
)


def walk(
    fusion: Fusion,
    start: Iterable[Read],
    computed_at: Mapping[Value, Index],
    stored: Container[Value] = frozenset(),
    operands: Callable[[Node, Read], Iterable[Read]] = reads,
) -> ReadFootprint:
    """Follow operands from ``start`` down to inputs and anchors.

    Parameters
    ----------
    computed_at : mapping of Value to Index
        The index at which the kernel computes each result of a reduction or scan.
    stored : container
        Values to load from memory instead of computing them.
    operands : callable
        ``reads``, or a ``KnownReads`` that is shared by several walks.
    """
    at_own_index: set[Value] = set()
    at_other_index: set[Value] = set()
    reducers: set[Read] = set()
    loads: set[Read] = set()
    nodes: set[Node] = set()
    computed: set[Read] = set()
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
        elif read.value in computed_at:
            # Guards are ignored: the element is computed whether or not it is needed.
            own = read.index == computed_at[read.value]
            (at_own_index if own else at_other_index).add(read.value)
            reducers.add(read)
        else:
            nodes.add(node)
            computed.add(read)
            stack.extend(operands(node, read))
    return ReadFootprint(
        frozenset(at_own_index),
        frozenset(at_other_index),
        frozenset(reducers),
        frozenset(loads),
        frozenset(nodes),
        frozenset(computed),
    )
