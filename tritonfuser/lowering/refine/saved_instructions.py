"""Instructions that are saved if a value that a kernel needs at several indices is in memory.

A kernel computes a value at each index at which it needs it, together with all operands: a softmax
that is used at its own index, shifted by one, and with its halves swapped, is computed three times.
With the softmax in memory it is computed once. Of values of equal size on the way to these uses,
the last common one saves most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from functools import cached_property

from ...ir import Fusion, Value
from ...symbolic.index_expr import extent
from ...symbolic.sizes import hint
from ..access.read_footprint import walk
from ..access.reads import KnownReads, Read
from ..access.rough_instructions import rough_instructions
from ..access.traffic import axes_of
from ..segments.segment import Segment
from .kernel_times import TimedKernels


class SavedInstructions:
    """The instructions of all threads that slow kernels would save with a value in memory.

    Called with the name of a value. 0 for one that no slow kernel needs at several indices.
    """

    def __init__(self, now: TimedKernels) -> None:
        self._now = now
        self._found: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        if name not in self._found:
            self._found[name] = sum(walks.saved(name) for walks in self._walks)
        return self._found[name]

    @cached_property
    def _walks(self) -> list[_Walks]:
        return [_Walks(self._now.segmented.fusion, each.segment) for each in self._now.excesses]


class _Walks:
    """The values that a segment's kernel computes, with one of them in memory or without."""

    def __init__(self, fusion: Fusion, segment: Segment) -> None:
        self._fusion, self._loaded, self._reads = fusion, frozenset(segment.inputs), KnownReads()
        self._homes = {out: m.index for m in segment.members for out in m.node.outs}
        self._roots = [
            *(read for member in segment.members for read in member.reads),
            *(read for store in segment.stores for read in store.root_reads),
        ]
        self._all = self._computed(self._roots)
        self._instructions = self._count(self._all)

    @cached_property
    def _repeated(self) -> dict[str, Value]:
        """The tensors that the kernel computes at several indices, by name."""
        counts = Counter(read.value for read in self._all if read.value.is_tensor)
        return {value.name: value for value, count in counts.items() if count > 1}

    def saved(self, name: str) -> int:
        """Instructions that are saved with a value in memory, less those of computing it once."""
        value = self._repeated.get(name)
        if value is None:
            return 0
        left = self._count(self._computed(self._roots, value))
        each = (self._computed([read]) for read in self._all if read.value == value)
        return self._instructions - left - min(map(self._count, each))

    def _computed(self, roots: Iterable[Read], *stored: Value) -> set[Read]:
        """The reads that are computed for some roots, if ``stored`` values are loaded."""
        loaded: Container[Value] = self._loaded.union(stored)
        found = walk(self._fusion, roots, self._homes, loaded, self._reads)
        return {Read(read.value, read.index) for read in found.computed}

    def _count(self, computed: Iterable[Read]) -> int:
        """Instructions of computed values, each at all positions of the axes of its index."""
        return sum(
            rough_instructions(self._fusion.producers[read.value])
            * hint(extent(frozenset().union(*map(axes_of, read.index))))
            for read in computed
        )
