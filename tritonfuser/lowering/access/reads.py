"""``Read``: an element of a value that is needed, and the elements of operands that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...ir import Node, Value
from ...lazy import cached_property
from ...ops.builder import as_call, op_of
from ...ops.forms import Pointwise
from ...ops.table import Scatter, View
from ...shapes.broadcasting import broadcast_index
from ...shapes.index_map import Guard, Index, Pull, Source, Target
from ...symbolic.index_expr import Affine, Bounded, digit
from ...symbolic.loaded_index import Indexed, LoadedIndex
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


def read_as(operand: Value, read: Read) -> Read:
    """The element of an elementwise op's operand that an element of the result needs."""
    if not operand.is_tensor:
        return Read(operand)
    return Read(operand, broadcast_index(read.index, operand.tensor), read.guards)


def _reader(node: Node, read: Read) -> Callable[[Value, Index, Indexed], Affine]:
    """The ``Pull.read`` of an element: an element of an index tensor as an index expression."""
    return lambda value, index, dim: digit(
        LoadedIndex(Read(value, index, read.guards), dim, node.loc)
    )


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
