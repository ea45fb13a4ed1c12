"""Loop partitioning: a loop nest is cut into boxes in which the guards of a value are constant.

An element of a pad or a concatenation is computed by one of several expressions. A kernel over all
elements computes all of them everywhere, and selects. In a box on one side of every guard, index
maps know which one applies: ``pad(a, [0, 4]) + pad(b, [4, 0])`` is ``a + 0`` in one box and
``0 + b`` in the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import gcd

from ...device import SECTOR_BYTES
from ...ir import Value
from ...ops.builder import op_of
from ...ops.table import View
from ...shapes.index_map import Index
from ...symbolic.index_expr import Affine, Axis, Digit
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import hint, is_size
from ..access.aliases import buffer_strides
from ..access.reads import Read
from ..access.traffic import offset_of
from .boxes import Box, Cut, cut_of
from .element_reads import ElementReads

MOST_EVEN = 5
"""Unequal parts of an axis are cut further into equal ones, so that one loop nest serves them all,
if there are at most so many for each."""

LEAST_RUN_BYTES = 2 * SECTOR_BYTES
"""Least contiguous bytes of a box that is stored by itself. The L1 cache looks up one line a cycle:
by 64 bytes of each line a multiprocessor reaches its share of the memory bandwidth, by 32 it does
not. H200, 32 of 128 columns rotated: 29.6 us in boxes of 32 bytes, 21.5 as a whole."""


class LoopPartitioner:
    """Cuts loop nests over the elements of one value at the thresholds of its guards.

    Parameters
    ----------
    elements : ElementReads
        The nodes by which elements are computed, and their guards.
    value : Value
        The value, which is stored box by box.
    equal_parts : bool
        Whether to cut an axis into equal parts, if these are few.
    short_runs : bool
        Whether contiguous runs of boxes may be shorter than ``LEAST_RUN_BYTES``.
    """

    def __init__(
        self,
        elements: ElementReads,
        value: Value,
        *,
        equal_parts: bool = True,
        short_runs: bool = False,
    ) -> None:
        self._elements = elements
        self._value = value
        self._equal_parts = equal_parts
        self._short_runs = short_runs
        self._strides = buffer_strides(elements.fusion, value)

    def boxes(self, index: Index, axes: tuple[Axis, ...], most: int) -> list[Box]:
        """The boxes of a loop nest, at most ``most``; the nest itself if no cut pays."""
        pieces = next((cut for cut in self._cut_nests(index, axes) if len(cut) <= most), None)
        if pieces is None:
            return [Box(axes)]
        room = most // len(pieces)
        inner = [self.boxes(piece.index(index), piece.axes, room) for piece in pieces]
        found: list[Box] = []
        for piece, boxes in zip(pieces, inner, strict=True):
            if len(boxes) == 1:  # cut like those of its shape, so that one kernel can have all
                alike = [b for p, b in zip(pieces, inner, strict=True) if p.axes == piece.axes]
                boxes = max(filter(_are_alike, alike), key=len)
            found += [piece.then(box) for box in boxes]
        return found

    def _cut_nests(self, index: Index, axes: tuple[Axis, ...]) -> Iterator[list[Box]]:
        """A loop nest cut into two or more boxes along one axis, by each possible cut in turn."""
        for cut in self._cuts(index):
            box = Box(axes)
            axis = cut.axis
            if not cut.is_whole:
                box, axis = box.split(cut.digit), Box.digit_axis(cut.digit)
            possible = [(0, *cut.points, axis.extent)]
            if self._equal_parts:
                possible.insert(0, _equal_parts(cut.points, axis.extent))
            for points in possible:
                pieces = [box.cut(axis, start, stop) for start, stop in pairwise(points)]
                worth = all(self._is_worth_storing(piece.index(index), index) for piece in pieces)
                if worth or self._short_runs or self._is_pair(box.index(index), axis):
                    yield pieces

    def _cuts(self, index: Index) -> list[Cut]:
        """The thresholds of guards: on whole axes first, then on digits."""
        found: list[Cut] = []
        sources = self._elements.operands.sources
        for node, read in self._elements.computed(Read(self._value, index)):
            if isinstance(op_of(node).form, View):
                guards = (g for source in sources(node, read) for g in source.guards)
                found += [cut for cut in map(cut_of, guards) if cut is not None]
        return sorted(dict.fromkeys(found), key=lambda cut: not cut.is_whole)

    def _is_pair(self, index: Index, axis: Axis) -> bool:
        """Whether an axis has two positions that are adjacent in memory: one store writes both
        (``emit/memory/pairs.py``). Longer axes would take one strided store for each position."""
        step = dict(offset_of(index, self._strides).terms).get(Digit(axis, 1, axis.extent))
        return is_known_equal(axis.extent, 2) and step is not None and hint(step) == 1

    def _is_worth_storing(self, part: Index, whole: Index) -> bool:
        """Whether contiguous runs are long enough, or no shorter than before the cut."""
        run = _run(offset_of(part, self._strides))
        enough = run * self._value.dtype.info.bytes >= LEAST_RUN_BYTES
        return enough or run >= _run(offset_of(whole, self._strides))


def _are_alike(boxes: list[Box]) -> bool:
    """Whether boxes have the same shape."""
    return all(box.axes == boxes[0].axes for box in boxes)


def _run(offset: Affine) -> int:
    """The length of contiguous runs in memory, at the sizes of this run."""
    run = 1
    for item, step in sorted(offset.terms, key=lambda term: hint(term[1])):
        if hint(step) != run or not isinstance(item.base, Axis):
            break
        run *= hint(item.base.extent)
    return run


def _equal_parts(points: tuple[int, ...], whole: int) -> tuple[int, ...]:
    """The ends of equal parts of an axis that include all cut points; only these points if the
    parts would be many."""
    ends = (0, *points, whole)
    if any(is_size(end) for end in ends):
        return ends
    part = gcd(*(stop - start for start, stop in pairwise(ends)))
    few = whole // part <= MOST_EVEN * (len(points) + 1)
    return tuple(range(0, whole + 1, part)) if few else ends
