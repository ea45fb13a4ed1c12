"""The memory that a tile touches of a tensor: contiguous runs and sectors, by its stride terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, gcd, prod
from operator import itemgetter
from typing import NamedTuple

from ...device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, SECTOR_BYTES
from ..streams import Stream, StrideTerm

Tile = tuple[float, ...]
"""Positions along each axis of a problem that a tile has; at least 1 each."""


class Side(NamedTuple):
    """A side of a tile: its axes, outermost first, and its positions."""

    places: tuple[int, ...]
    block: int


class Footprint(NamedTuple):
    """Memory of a tensor that a tile touches.

    Attributes
    ----------
    elements : float
        Elements, each once.
    runs : float
        Pieces of memory, with gaps between them in which a sector, or what is asked for, fits.
    span : float
        Elements from the first of a run to its last, smaller gaps among them.
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

    Parameters
    ----------
    stream : Stream
        The tensor.

    Attributes
    ----------
    item_bytes : int
        Bytes of an element.
    """

    __slots__ = ("_axes", "_pieces", "_terms", "item_bytes")

    def __init__(self, stream: Stream) -> None:
        self.item_bytes = stream.item_bytes
        self._terms = [
            (term.axis, term.div, float(term.extent), abs(term.step))
            for term in stream.stride_terms
        ]
        self._terms.sort(key=_STEP)
        self._axes = tuple({term.axis for term in stream.stride_terms})
        self._pieces: dict[int, tuple[int, bool]] = {}

    def footprint(self, tile: Tile, granule: int = SECTOR_BYTES) -> Footprint:
        """What a tile touches of the tensor.

        Parameters
        ----------
        granule : int
            Bytes of the pieces that memory is moved in.
        """
        return Footprint(*self._runs(tile, self._piece(granule)[0]))

    def touched(self, tile: Tile, granule: int = SECTOR_BYTES) -> tuple[float, float]:
        """(elements, bytes): those that a tile touches, and of the sectors that they are in, or of
        other pieces of ``granule`` bytes."""
        gap, is_even = self._pieces.get(granule) or self._piece(granule)
        elements, runs, span = self._runs(tile, gap)
        item = self.item_bytes
        run = span * item if span > 1.0 else float(item)
        if is_even:
            pieces = float(ceil(run / granule))
        else:
            pieces = (run + granule - item) / granule
        return elements, runs * (pieces if pieces > 1.0 else 1.0) * granule

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
        for axis in self._axes:
            most *= tile[axis]
        if elements > most:
            elements = most
        if runs > most:
            runs = most
        whole = gap * elements / runs
        return elements, runs, span if span < whole else whole

    def _piece(self, granule: int) -> tuple[int, bool]:
        """Elements of a piece of memory, and whether runs begin with pieces: all steps that are not
        smaller are whole ones. Those that are as large as a line of the cache begin anywhere."""
        if granule not in self._pieces:
            gap = granule // self.item_bytes
            is_even = granule < CACHE_LINE_BYTES
            for _, _, _, step in self._terms:
                if step >= gap and step % gap:
                    is_even = False
            self._pieces[granule] = gap, is_even
        return self._pieces[granule]

    def end_of(self, tile: Tile) -> tuple[int, int] | None:
        """(axis, div) of the term that goes on where a tile ends, the nearest in memory of several.
        None where the tile has all of the tensor."""
        for axis, div, extent, _ in self._terms:
            if tile[axis] < div * extent:
                return axis, div
        return None


def chain(stream: Stream) -> list[int]:
    """The axes that a tensor lies along, the fastest first: each goes on where the one before it
    ends. Neighbours are contiguous, or share sectors at least."""
    found: list[int] = []
    span = 0
    for term in sorted(stream.stride_terms, key=_step):
        step = abs(term.step)
        fits = step == span if found else step * stream.item_bytes < SECTOR_BYTES
        if not fits or term.div != 1 or term.axis in found:
            break
        found.append(term.axis)
        span = step * term.extent
    return found


def run_along(stream: Stream, extents: Sequence[int], places: Sequence[int]) -> int:
    """Positions along a side that are neighbours in memory too. 0 for all of them.

    Parameters
    ----------
    extents : sequence of int
        Of all axes.
    places : sequence of int
        The axes of the side, outermost first.
    """
    run = 1
    for place in reversed(places):
        step = None
        for term in stream.stride_terms:
            if term.axis == place and term.div == 1:
                step = term.step
        if step != run:
            return run
        run *= extents[place]
    return 0


def warp_bytes(
    strides: TensorStrides, extents: Sequence[int], sides: Sequence[Sequence[int]], place: int
) -> float:
    """Bytes of the sectors that a warp touches whose threads are neighbours along a side.

    Parameters
    ----------
    strides : TensorStrides
        Of the tensor.
    extents : sequence of int
        Of all axes.
    sides : sequence of sequence of int
        The axes of each side, outermost first.
    place : int
        Of the side among them.
    """
    along = max(min(NVIDIA_WARP_SIZE, prod(extents[axis] for axis in sides[place])), 1)
    counts = [along if n == place else NVIDIA_WARP_SIZE / along for n in range(len(sides))]
    _, touched = strides.touched(tile_over(extents, zip(sides, counts, strict=True)))
    return touched


def vector_elements(stream: Stream, places: Sequence[int], run: int, most: int) -> int:
    """Elements of a vectorized load along a side: a power of two.

    Rows that begin at odd elements, as those of 8193, are loaded element by element where the side
    ends with them.

    Parameters
    ----------
    places : sequence of int
        The axes of the side.
    run : int
        As ``run_along`` has it.
    """
    if run == 1:
        return 1
    found = gcd(most, run)
    for term in stream.stride_terms:
        on_side = term.axis in places if run == 0 else term.step < run
        inside = term.div == 1 and term.step > 0 and on_side
        found = found if inside else gcd(found, abs(term.step))
    return max(found, 1)


def _step(term: StrideTerm) -> int:
    return abs(term.step)
