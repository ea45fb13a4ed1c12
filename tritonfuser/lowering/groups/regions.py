"""The boxes in which stored values are computed, where it may pay to compute them box by box.

A value that is pieced together has those of ``loop_partitioning``. Others are cut as one of these
is, so that one kernel can have both.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

from ...ir import Fusion, Value
from ...ops.builder import op_of
from ...ops.forms import Random
from ...ops.table import View
from ...shapes.index_map import Index
from ...symbolic.index_expr import Affine, Axis, axes_in_order, digit, extent
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import is_size
from ...symbolic.substitution import substitute
from ..access.atomic_axes import AtomicAxes
from ..access.read_footprint import Read, ends_kernel, is_reducer
from .boxes import Box
from .element_reads import ElementReads
from .loop_partitioning import MOST_EVEN, LoopPartitioner

MOST_REGIONS = 32
"""A value is cut into this many boxes at most. One kernel may compute all of them."""


@dataclass(frozen=True)
class Region:
    """A box of the elements of a value.

    Attributes
    ----------
    axes : tuple of Axis
        Its loop nest.
    index : Index
        The element of the value at a position.
    """

    axes: tuple[Axis, ...]
    index: Index


class RegionFinder:
    """Finds the boxes that values of a fusion are computed in.

    Parameters
    ----------
    elements : ElementReads
        Has what the elements of its values are computed from.
    """

    def __init__(self, elements: ElementReads, axes: AtomicAxes) -> None:
        self.elements = elements
        self.axes = axes
        self.pieced = _pieced(elements.fusion)
        self._cut: dict[Value, tuple[Region, ...]] = {}

    def found(self, value: Value, count: int | None) -> tuple[Region, ...]:
        """The boxes in which a stored value may be computed. Empty where it is not to be cut.

        A value that is not pieced together is cut like one of as many elements that was asked about
        before: one kernel can then have both.

        Parameters
        ----------
        count : int or None
            The boxes that a given schedule has of it. It gets so many at any sizes, whether or not
            the heuristics would cut it there.
        """
        if value not in self.pieced and not self._cut:
            return ()
        start = Read(value, self.axes.index(value))
        if any(isinstance(op_of(node).form, Random) for node, _ in self.elements.computed(start)):
            return ()  # neighbours in memory draw their numbers together
        if value not in self.pieced:
            alike = (self._like(value, other, boxes) for other, boxes in self._cut.items())
            return next(filter(None, alike), ())
        axes = tuple(self.axes.axis(atom) for atom in self.axes.domain(value))
        boxes = self._boxes(start, axes, count)
        regions = tuple(Region(box.axes, box.index(start.index)) for box in boxes)
        if len(regions) < 2:
            return ()
        self._cut[value] = regions
        return tuple(self._at_home(region, value) for region in regions)

    def _boxes(self, start: Read, axes: tuple[Axis, ...], count: int | None) -> list[Box]:
        """The boxes of a value: those that are worth it, or as many as it is to have."""
        chosen = self._worth_storing(start, axes)
        if count is None or len(chosen) == count:
            return chosen
        for short_runs, equal_parts in product((False, True), (True, False)):
            boxes = self._partitioned(start, axes, equal_parts, short_runs)
            if len(boxes) == count:
                return boxes
        return chosen

    def _worth_storing(self, start: Read, axes: tuple[Axis, ...]) -> list[Box]:
        """The boxes of a value: equal ones, that one kernel may have all, where these are few.

        A kernel has the code of each of its boxes.
        """
        equal = self._partitioned(start, axes, equal_parts=True)
        if len(equal) <= MOST_EVEN:
            return equal  # few, however many parts there are
        found = self._partitioned(start, axes, equal_parts=False)
        return equal if len(equal) <= MOST_EVEN * len(found) else found

    def _partitioned(
        self, start: Read, axes: tuple[Axis, ...], equal_parts: bool, short_runs: bool = False
    ) -> list[Box]:
        partitioner = LoopPartitioner(
            self.elements, start.value, equal_parts=equal_parts, short_runs=short_runs
        )
        return partitioner.boxes(start.index, axes, MOST_REGIONS)

    def _like(self, value: Value, other: Value, boxes: tuple[Region, ...]) -> tuple[Region, ...]:
        """Boxes of ``value`` that match those of ``other``; empty where there are none."""
        sizes, count = value.tensor.sizes, len(boxes)
        known = all(map(is_known_equal, sizes, other.tensor.sizes))
        if known and len(sizes) == other.tensor.rank:
            return boxes
        if len({extent(box.axes) for box in boxes}) > 1:
            return ()
        if not is_known_equal(value.tensor.numel, other.tensor.numel):
            return ()
        index = self.axes.index(value)
        axes = tuple(self.axes.axis(atom) for atom in self.axes.domain(value))
        for axis in axes:
            if not is_size(axis.extent) and axis.extent and axis.extent % count == 0:
                step = axis.extent // count
                ends = pairwise(range(0, axis.extent + 1, step))
                cut = (Box(axes).cut(axis, start, stop) for start, stop in ends)
                return tuple(Region(box.axes, box.index(index)) for box in cut)
        return ()

    def _at_home(self, region: Region, value: Value) -> Region:
        """A region computed from reduction results, over the axes of these where it can be."""
        read = Read(value, region.index)
        operands, anchored = self.elements.operands, self.elements.anchored
        found = [item for node, at in self.elements.computed(read) for item in operands(node, at)]
        if not any(item.value in anchored for item in found):
            return region
        for item in found:
            at = self._atoms_of(item, region.axes) if item.value.is_tensor else None
            if at is not None:
                index = tuple(substitute(item, at) for item in region.index)
                own = tuple(a for axis in region.axes for a in axes_in_order(at[axis]))
                return Region(own, index)
        return region

    def _atoms_of(self, read: Read, axes: tuple[Axis, ...]) -> dict[Axis, Affine] | None:
        """The axes of a region in terms of those of a value that it reads one to one."""
        places: dict[Axis, int] = {}
        for place, (item, size) in enumerate(zip(read.index, read.value.tensor.sizes, strict=True)):
            axis = next(iter(item.axes()), None)
            if axis is None and is_known_equal(size, 1):
                continue
            if axis is None or axis in places or item != digit(axis):
                return None
            if not is_known_equal(axis.extent, size):
                return None
            places[axis] = place
        if set(places) != set(axes):
            return None
        home = self.axes.index(read.value)
        return {axis: home[place] for axis, place in places.items()}


def _pieced(fusion: Fusion) -> frozenset[Value]:
    """The values whose elements come from several places, each a range of positions."""
    found: set[Value] = set()
    for node in fusion.nodes:
        form = op_of(node).form
        if is_reducer(node) or ends_kernel(node):
            continue
        if (isinstance(form, View) and form.pieces) or not found.isdisjoint(node.operands()):
            found.update(node.outs)
    return frozenset(found)
