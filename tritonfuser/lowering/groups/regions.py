"""Regions: boxes of a stored value's elements, each with a loop nest of its own, where that pays.

The regions of a concatenated or padded value come from ``loop_partitioning``. Other values are cut
in the same way as one of these, so that one kernel can store both.
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
from ..access.node_kinds import ends_kernel, is_reducer
from ..access.reads import Read
from .boxes import Box
from .element_reads import ElementReads
from .loop_partitioning import MOST_EVEN, LoopPartitioner

MOST_REGIONS = 32
"""Most boxes of a value. One kernel may compute all of them."""


@dataclass(frozen=True)
class Region:
    """A box of the elements of a value.

    Attributes
    ----------
    axes : tuple of Axis
        The loop nest of the box.
    index : Index
        The element of the value at a position of the loop nest.
    """

    axes: tuple[Axis, ...]
    index: Index


class RegionFinder:
    """Finds the regions of the values of a fusion.

    Parameters
    ----------
    elements : ElementReads
        The reads by which the elements of the fusion's values are computed.
    """

    def __init__(self, elements: ElementReads, axes: AtomicAxes) -> None:
        self.elements = elements
        self.axes = axes
        self.pieced = _pieced(elements.fusion)
        self._cut: dict[Value, tuple[Region, ...]] = {}

    def found(self, value: Value, count: int | None) -> tuple[Region, ...]:
        """The regions of a stored value. Empty if it is not to be cut.

        A value that is not concatenated or padded is cut like an earlier one of as many elements,
        so that one kernel can store both.

        Parameters
        ----------
        count : int or None
            The number of regions that a given schedule has of it. It is cut into so many at any
            sizes, whether or not the heuristics would do so.
        """
        if value not in self.pieced and not self._cut:
            return ()
        start = Read(value, self.axes.index(value))
        if any(isinstance(op_of(node).form, Random) for node, _ in self.elements.computed(start)):
            return ()  # adjacent elements share random counters
        if value not in self.pieced:
            alike = (self._cut_like(value, other, boxes) for other, boxes in self._cut.items())
            return next(filter(None, alike), ())
        axes = tuple(self.axes.axis(atom) for atom in self.axes.domain(value))
        boxes = self._boxes(start, axes, count)
        regions = tuple(Region(box.axes, box.index(start.index)) for box in boxes)
        if len(regions) < 2:
            return ()
        self._cut[value] = regions
        return tuple(self._over_result_axes(region, value) for region in regions)

    def _boxes(self, start: Read, axes: tuple[Axis, ...], count: int | None) -> list[Box]:
        """The boxes of a value: those that pay, or ``count`` of them."""
        chosen = self._worth_storing(start, axes)
        if count is None or len(chosen) == count:
            return chosen
        for short_runs, equal_parts in product((False, True), (True, False)):
            boxes = self._partitioned(start, axes, equal_parts, short_runs)
            if len(boxes) == count:
                return boxes
        return chosen

    def _worth_storing(self, start: Read, axes: tuple[Axis, ...]) -> list[Box]:
        """The boxes of a value that are worth a store of their own: boxes of equal shape if they
        are few, so that one kernel can compute all of them. Its text has code for each box."""
        equal = self._partitioned(start, axes, equal_parts=True)
        if len(equal) <= MOST_EVEN:
            return equal
        found = self._partitioned(start, axes, equal_parts=False)
        return equal if len(equal) <= MOST_EVEN * len(found) else found

    def _partitioned(
        self, start: Read, axes: tuple[Axis, ...], equal_parts: bool, short_runs: bool = False
    ) -> list[Box]:
        partitioner = LoopPartitioner(
            self.elements, start.value, equal_parts=equal_parts, short_runs=short_runs
        )
        return partitioner.boxes(start.index, axes, MOST_REGIONS)

    def _cut_like(
        self, value: Value, other: Value, boxes: tuple[Region, ...]
    ) -> tuple[Region, ...]:
        """Regions of ``value`` that match those of ``other``; empty if there are none."""
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

    def _over_result_axes(self, region: Region, value: Value) -> Region:
        """A region over the axes of the reduction results that it is computed from, if any."""
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
        """The axes of a region in terms of those of a value, if it reads each element once."""
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
    """The values that are concatenated or padded, or computed from such values by fused ops."""
    found: set[Value] = set()
    for node in fusion.nodes:
        form = op_of(node).form
        if is_reducer(node) or ends_kernel(node):
            continue
        if (isinstance(form, View) and form.pieces) or not found.isdisjoint(node.operands()):
            found.update(node.outs)
    return frozenset(found)
