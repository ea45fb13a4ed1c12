"""Read footprints: all reads that computing a value at an index leads to.

A walk starts from a result at an index. Index maps of the ops give the operands and their indices,
down to loads from memory and results of reductions. Grouping and emitting share it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace

from ...ir import Fusion, Node, Value
from ...shapes.index_map import Index
from .reads import Read, reads


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
