"""Loop partitioning: the boxes of a stored value in which its guards are decided.

Where pads and concatenations piece a value together, each element is computed by one of several
expressions. A kernel over all elements computes all of them everywhere, and chooses. In a box that
lies on one side of every guard, index maps know the one that counts:
``pad(a, [0, 4]) + pad(b, [4, 0])`` is ``a + 0`` in one box and ``0 + b`` in the other.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from types import MappingProxyType

from ...device import SECTOR_BYTES, VECTOR_BYTES
from ...ir import Fusion, Node, Value
from ...ops.builder import op_of
from ...ops.table import Random, View
from ...shapes import Index
from ...symbolic.index_expr import Affine, Axis, Digit, axes_in_order, digit, extent, substitute
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import hint, is_size
from ..access.aliases import buffer_strides
from ..access.atomic_axes import AtomicAxes
from ..access.read_footprint import Read, ends_kernel, is_reducer, sources_of
from ..access.traffic import offset_of
from .boxes import Box, Cut, cut_of
from .instruction_counts import Operands, instructions

MOST_REGIONS = 32
"""A value is cut into this many boxes at most. One kernel may compute all of them."""

MOST_EVEN = 5
"""Parts of different lengths along an axis are cut into equal ones, at most so many for each, so
that one loop nest holds them all."""


LEAST_RUN_BYTES = 2 * SECTOR_BYTES
"""Bytes that lie together in memory, of a box that is stored by itself. The L1 cache looks up one
line a cycle: with 64 bytes of each a multiprocessor moves as many as its share of memory, and with
32 it does not. H200, 32 of 128 columns rotated: 29.6 us in boxes of 32 bytes, 21.5 as a whole."""


NONE_GIVEN: Mapping[str, int] = MappingProxyType({})


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
    anchored : container of Value
        Results of reductions and of torch: kernels that store other values only read them.
    operands : callable
        ``read_footprint.reads``, or a cached version of it.
    counts : mapping
        For the names of some values, the number of boxes that a given schedule has of them. They
        get so many at any sizes, whether or not the heuristics would cut them there.
    """

    def __init__(
        self,
        fusion: Fusion,
        axes: AtomicAxes,
        anchored: Container[Value],
        operands: Operands,
        counts: Mapping[str, int] = NONE_GIVEN,
    ) -> None:
        self.fusion = fusion
        self.axes = axes
        self.anchored = anchored
        self.operands = operands
        self.counts = counts
        self.pieced = _pieced(fusion)
        self._cut: dict[Value, tuple[Region, ...]] = {}

    def found(self, value: Value) -> tuple[Region, ...]:
        """The boxes in which a stored value may be computed. None where it is not to be cut.

        A value that is not pieced together is cut like one of as many elements that was asked about
        before: one kernel can then have both.
        """
        start = Read(value, self.axes.index(value))
        if any(isinstance(op_of(node).form, Random) for node, _ in self.met(start)):
            return ()  # neighbours in memory draw their numbers together
        if value not in self.pieced:
            alike = (self._like(value, other, boxes) for other, boxes in self._cut.items())
            return next(filter(None, alike), ())
        axes = tuple(self.axes.axis(atom) for atom in self.axes.domain(value))
        boxes = self._boxes(start, axes)
        regions = tuple(Region(box.axes, box.index(start.index)) for box in boxes)
        if len(regions) < 2:
            return ()
        self._cut[value] = regions
        return tuple(self._at_home(region, value) for region in regions)

    def _boxes(self, start: Read, axes: tuple[Axis, ...]) -> list[Box]:
        """The boxes of a value: those that are worth it, or as many as it is to have."""
        count = self.counts.get(start.value.name)
        chosen = _Search(self, start).boxes(start.index, axes, MOST_REGIONS)
        if count is None or len(chosen) == count:
            return chosen
        for even in (True, False):
            boxes = _Search(self, start, even, given=True).boxes(start.index, axes, MOST_REGIONS)
            if len(boxes) == count:
                return boxes
        return chosen

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

    def met(self, start: Read) -> Iterator[tuple[Node, Read]]:
        """The nodes computed for an element, each with its index; those nearest to it first."""
        for read in self.needed([start]):
            node = self.fusion.producers.get(read.value)
            if node is not None and read.value not in self.anchored:
                yield node, read

    def needed(self, starts: Iterable[Read]) -> list[Read]:
        """All reads that some elements need, loaded or computed, in breadth-first order."""
        found = dict.fromkeys(Read(start.value, start.index) for start in starts)
        queue = list(found)
        for read in queue:
            node = self.fusion.producers.get(read.value)
            if node is None or read.value in self.anchored:
                continue
            for item in self.operands(node, read):
                bare = Read(item.value, item.index)
                if bare not in found:
                    found[bare] = None
                    queue.append(bare)
        return queue

    def instructions(self, reads: Sequence[Read]) -> int:
        """Instructions at one position that loading and computing some values takes."""
        return instructions(self.fusion, self.anchored, self.operands, reads)

    def _at_home(self, region: Region, value: Value) -> Region:
        """A region computed from reduction results, over the axes of these where it can be."""
        read = Read(value, region.index)
        found = [item for node, at in self.met(read) for item in self.operands(node, at)]
        if not any(item.value in self.anchored for item in found):
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


class _Search:
    """The search for the boxes of one value: of equal ones too, and those that are worth it."""

    def __init__(
        self, finder: RegionFinder, read: Read, even: bool = True, given: bool = False
    ) -> None:
        self.finder = finder
        self.even = even
        self.given = given
        self.value = read.value
        self.strides = buffer_strides(finder.fusion, read.value)

    def boxes(self, index: Index, axes: tuple[Axis, ...], most: int) -> list[Box]:
        """The boxes of a loop nest, at most ``most``; only the whole nest where no cut pays."""
        pieces = next((way for way in self._ways(index, axes) if len(way) <= most), None)
        if pieces is None:
            return [Box(axes)]
        room = most // len(pieces)
        inner = [self.boxes(piece.index(index), piece.axes, room) for piece in pieces]
        found: list[Box] = []
        for piece, boxes in zip(pieces, inner, strict=True):
            if len(boxes) == 1:  # cut as those of its shape are, to be in one kernel with them
                alike = [b for p, b in zip(pieces, inner, strict=True) if p.axes == piece.axes]
                boxes = max(filter(_are_alike, alike), key=len)
            found += [piece.then(box) for box in boxes]
        return found

    def _ways(self, index: Index, axes: tuple[Axis, ...]) -> Iterator[list[Box]]:
        """The ways to cut a loop nest into two or more boxes."""
        for cut in self._cuts(index):
            box = Box(axes)
            axis = cut.axis
            if not cut.is_whole:
                box, axis = box.split(cut.digit), Box.digit_axis(cut.digit)
            plain = (0, *cut.points, axis.extent)
            for points in (_even(cut.points, axis.extent), plain) if self.even else (plain,):
                pieces = [box.cut(axis, start, stop) for start, stop in pairwise(points)]
                worth = all(self._is_worth_storing(piece.index(index), index) for piece in pieces)
                if worth or self.given or self._is_vector(box.index(index), axis):
                    yield pieces

    def _cuts(self, index: Index) -> list[Cut]:
        """The thresholds of guards: on whole axes first, then on digits."""
        found: list[Cut] = []
        for node, read in self.finder.met(Read(self.value, index)):
            if isinstance(op_of(node).form, View):
                guards = (g for source in sources_of(node, read) for g in source.guards)
                found += [cut for cut in map(cut_of, guards) if cut is not None]
        return sorted(dict.fromkeys(found), key=lambda cut: not cut.is_whole)

    def _is_vector(self, index: Index, axis: Axis) -> bool:
        """Whether all positions of an axis are neighbours in memory that a thread can have."""
        step = dict(offset_of(index, self.strides).terms).get(Digit(axis, 1, axis.extent))
        held = hint(axis.extent) * self.value.dtype.info.bytes
        return step is not None and hint(step) == 1 and held <= VECTOR_BYTES

    def _is_worth_storing(self, part: Index, whole: Index) -> bool:
        """Whether contiguous runs are long enough, or no shorter than before the cut."""
        run = _run(offset_of(part, self.strides))
        enough = run * self.value.dtype.info.bytes >= LEAST_RUN_BYTES
        return enough or run >= _run(offset_of(whole, self.strides))


def _are_alike(boxes: list[Box]) -> bool:
    """Whether boxes have one shape."""
    return all(box.axes == boxes[0].axes for box in boxes)


def _run(offset: Affine) -> int:
    """Contiguous positions in memory, at the sizes of this run."""
    run = 1
    for item, step in sorted(offset.terms, key=lambda term: hint(term[1])):
        if hint(step) != run or not isinstance(item.base, Axis):
            break
        run *= hint(item.base.extent)
    return run


def _even(points: tuple[int, ...], whole: int) -> tuple[int, ...]:
    """The ends of equal parts of an axis that contain all cut points, where these are few."""
    ends = (0, *points, whole)
    if any(is_size(end) for end in ends):
        return ends
    part = gcd(*(stop - start for start, stop in pairwise(ends)))
    few = whole // part <= MOST_EVEN * (len(points) + 1)
    return tuple(range(0, whole + 1, part)) if few else ends


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
