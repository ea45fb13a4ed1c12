"""The memory footprint of a tile: the contiguous runs and sectors of a tensor that it touches.

All of it follows from the stride terms of the tensor.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from math import ceil, prod
from operator import itemgetter
from typing import NamedTuple

from ....device import CACHE_LINE_BYTES, SECTOR_BYTES
from ...streams import Stream, StrideTerm

Tile = tuple[float, ...]
"""Positions of a tile along each axis of a problem; at least 1 each."""


class Side(NamedTuple):
    """A side of a tile: its axes, outermost first, and the number of positions along it."""

    places: tuple[int, ...]
    block: int


class Footprint(NamedTuple):
    """Memory of a tensor that a tile touches.

    Attributes
    ----------
    elements : float
        Distinct elements.
    runs : float
        Contiguous runs. Gaps that are smaller than a sector (or another granule) do not end a run.
    span : float
        Elements from the first to the last of a run, with the gaps inside it.
    """

    elements: float
    runs: float
    span: float


def tile_over(
    extents: Sequence[int], sides: Iterable[tuple[Sequence[int], float]]
) -> tuple[float, ...]:
    """Positions along each axis of a tile.

    Parameters
    ----------
    extents : sequence of int
        Of all axes.
    sides : iterable of (sequence of int, float)
        The axes of each side, outermost first, and the positions along it: neighbours along the
        last axis, and where that ends along the one before it.
    """
    found = [1.0] * len(extents)
    for places, count in sides:
        left = float(count)
        for place in reversed(places):
            if left <= 1:
                break
            found[place] = max(min(left, float(extents[place])), 1.0)
            left /= found[place]
    return tuple(found)


_STEP = itemgetter(3)
"""The step of a term of ``TensorStrides``."""


class TensorStrides:
    """The stride terms of a tensor, sorted once, for the footprints of many tiles.

    What a tile touches is kept: ``strides_of`` gives one object for all tensors with these terms,
    and a search asks for the same tiles in most of its problems.

    Attributes
    ----------
    item_bytes : int
        Bytes of an element.
    axes : frozenset of int
        The axes that the tensor runs along.
    """

    __slots__ = ("_pieces", "_start", "_terms", "_touched_by", "axes", "item_bytes")

    def __init__(self, item_bytes: int, terms: Sequence[StrideTerm], start: int = 0) -> None:
        self.item_bytes, self._start = item_bytes, start
        self._terms = [(term.axis, term.div, float(term.extent), abs(term.step)) for term in terms]
        self._terms.sort(key=_STEP)
        self.axes = frozenset([term.axis for term in terms])
        self._pieces: dict[int, tuple[int, bool]] = {}
        self._touched_by: dict[tuple[Tile, int], tuple[float, float]] = {}

    def footprint(self, tile: Tile, granule: int = SECTOR_BYTES) -> Footprint:
        """The footprint of a tile.

        Parameters
        ----------
        granule : int
            Bytes that memory is moved in at a time.
        """
        return Footprint(*self._runs(tile, self._piece(granule)[0]))

    def touched(self, tile: Tile, granule: int = SECTOR_BYTES) -> tuple[float, float]:
        """(elements, bytes): the distinct elements of a tile, and the bytes of the sectors that
        contain them, or of other aligned pieces of ``granule`` bytes."""
        found = self._touched_by.get((tile, granule))
        if found is None:
            elements, moved, _ = self._touched(tile, granule, *self._piece(granule))
            found = self._touched_by[tile, granule] = elements, moved
        return found

    def touched_runs(self, tile: Tile, granule: int) -> tuple[float, float, float]:
        """(elements, bytes, runs): what ``touched`` has, and the contiguous runs of a tile."""
        return self._touched(tile, granule, *self._piece(granule))

    def touched_along(
        self, tile: Tile, extents: Sequence[int], side: Sequence[int]
    ) -> tuple[float, float]:
        """(elements, bytes) of the sectors of a tile whose positions along a side begin at a
        multiple of their number: where the tensor is contiguous along all of the side, a tile of
        whole sectors begins at one, and a tile of a half or a quarter is within one, however long
        the rows are.

        Parameters
        ----------
        extents : sequence of int
            Of all axes.
        side : sequence of int
            The axes of the side, outermost first.
        """
        gap, span = SECTOR_BYTES // self.item_bytes, 1.0
        run: set[tuple[int, float]] = set()
        for place in reversed(side):
            if (place, 1, float(extents[place]), span) not in self._terms:
                break
            run.add((place, span))
            span *= extents[place]
        along = round(prod(tile[place] for place in side))
        is_even = along % gap == 0 or gap % along == 0
        is_even = is_even and self._lie_granules_apart(gap, run)
        elements, moved, _ = self._touched(tile, SECTOR_BYTES, gap, is_even)
        return elements, moved

    def _touched(
        self, tile: Tile, granule: int, gap: int, is_even: bool
    ) -> tuple[float, float, float]:
        elements, runs, span = self._runs(tile, gap)
        item = self.item_bytes
        run = span * item if span > 1.0 else float(item)
        if is_even:
            pieces = float(ceil(run / granule))
        else:
            pieces = (run + granule - item) / granule
        return elements, runs * (pieces if pieces > 1.0 else 1.0) * granule, runs

    def _runs(self, tile: Tile, gap: int) -> tuple[float, float, float]:
        """(elements, runs, span) of the footprint of a tile: see ``Footprint``."""
        runs, span, elements = 1.0, 1.0, 1.0
        for axis, div, extent, step in self._terms:
            count = tile[axis] / div
            if count > extent:
                count = extent
            if count <= 1:
                continue
            elements *= count
            if runs == 1 and step < span + gap:
                span += (count - 1) * step
            else:
                runs *= count
        # Several terms of one axis, and of indices from memory, may give the same element.
        most = 1.0
        for axis in self.axes:
            most *= tile[axis]
        if elements > most:
            elements = most
        if runs > most:
            runs = most
        whole = gap * elements / runs
        return elements, runs, span if span < whole else whole

    def _piece(self, granule: int) -> tuple[int, bool]:
        """(elements of a granule, whether all runs begin at granules).

        Runs begin at granules if the tensor does, and every stride of a granule or more is a
        multiple of it. For
        granules as large as a cache line, runs are taken to begin anywhere.
        """
        found = self._pieces.get(granule)
        if found is None:
            gap = granule // self.item_bytes
            is_even = granule < CACHE_LINE_BYTES and self._lie_granules_apart(gap)
            found = self._pieces[granule] = gap, is_even
        return found

    def _lie_granules_apart(
        self, gap: int, run: Container[tuple[int, float]] = frozenset()
    ) -> bool:
        """Whether the tensor begins at a granule, and every stride of a granule or more is a
        multiple of one, but for those of a run: (axis, step) each."""
        if self._start % gap:
            return False
        for axis, _, _, step in self._terms:
            if step >= gap and step % gap and (axis, step) not in run:
                return False
        return True

    def first_partial_term(self, tile: Tile) -> tuple[int, int] | None:
        """(axis, div) of the stride term with the smallest stride that a tile does not cover to its
        end. None where the tile covers the whole tensor."""
        for axis, div, extent, _ in self._terms:
            if tile[axis] < div * extent:
                return axis, div
        return None


def strides_of(stream: Stream) -> TensorStrides:
    """The stride terms of a tensor."""
    return _strides(stream.item_bytes, stream.stride_terms, stream.start)


@lru_cache(maxsize=512)
def _strides(item_bytes: int, terms: tuple[StrideTerm, ...], start: int) -> TensorStrides:
    return TensorStrides(item_bytes, terms, start)
