"""How threads load and store the tensors of a flat tile: along which side, how many elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ...device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, SECTOR_BYTES, VECTOR_BYTES
from ..problem import Problem
from ..streams import Stream
from .footprint import TensorStrides, Tile, run_along, tile_over, vector_elements, warp_bytes
from .gathered import Gathered
from .refetched import unused_share
from .traffic import partly_written_bytes, written_bytes


class FlatTensor(NamedTuple):
    """A tensor, as far as no params change it, and how many times a position accesses it.

    It is ``shared`` where several positions load the same element.
    """

    stream: Stream
    times: float
    stride_terms: TensorStrides
    lane: float
    axes: frozenset[int]
    fresh: float
    most_between: float
    unused: float
    gathered: Gathered | None
    shared: bool


class FlatAccess:
    """How threads load or store a tensor, and how many cache lines a warp then touches.

    Parameters
    ----------
    axes : tuple of int
        Extents of the problem's axes.
    strides : TensorStrides
        Where the tensor's elements are.
    sides : sequence of tuple of int
        The axes along each side of the tile.

    Attributes
    ----------
    along : tuple of int
        The sides that the tensor runs along.
    place : int
        The side that threads are neighbours along.
    width : int
        Elements of a vector along it.
    positions : float
        Positions that a warp loads at once.
    neighbours : int
        Positions along that side that a warp has.
    gathered : Gathered, optional
        The tensor, where it is read at indices of another one.
    """

    def __init__(
        self,
        axes: tuple[int, ...],
        strides: TensorStrides,
        sides: Sequence[tuple[int, ...]],
        *,
        along: tuple[int, ...],
        place: int,
        width: int,
        positions: float,
        neighbours: int,
        gathered: Gathered | None = None,
    ) -> None:
        self._axes, self._strides, self._sides = axes, strides, sides
        self.along = along
        self.place = place
        self.width = width
        self.positions = positions
        self.neighbours = neighbours
        self._gathered = gathered
        self._warps: dict[float, Tile] = {}
        self._lines: dict[float, float] = {}
        self._written: dict[float, tuple[float, float]] = {}

    def lines(self, block: float) -> float:
        """Lines that a load of a warp touches, of a tile that has ``block`` positions of the warp's
        neighbours.

        Threads with more neighbours than the load is wide load them one after another, so that
        those of a load are apart.
        """
        found = self._lines.get(block)
        if found is None:
            wide = min(self.neighbours / NVIDIA_WARP_SIZE, block)
            warp = self._of_warp(block)
            found = self._of_load(warp, self._lines_of(warp) * self._share_of_load(wide))
            found = self._lines[block] = min(max(found, 1.0), NVIDIA_WARP_SIZE)
        return found

    def lines_apart(self, lanes: int, wide: int) -> float:
        """Lines of a load of so many lanes along the side, each with ``wide`` neighbours."""
        along = self._along(lanes * wide)
        found = self._of_load(along, self._lines_of(along) * self._share_of_load(wide))
        return min(max(found, 1.0), lanes)

    def _share_of_load(self, wide: float) -> float:
        """Share of the lines of a thread's neighbours that one of its loads touches."""
        if wide <= self.width:
            return 1.0
        return self._lines_of(self._along(self.width)) / self._lines_of(self._along(wide))

    def _lines_of(self, tile: Tile) -> float:
        return self._strides.touched(tile, CACHE_LINE_BYTES)[1] / CACHE_LINE_BYTES

    def _of_load(self, tile: Tile, lines: float) -> float:
        """Lines of a load that asks for so many at the positions of a tile."""
        return lines if self._gathered is None else self._gathered.lines(tile, lines)

    def _along(self, positions: float) -> Tile:
        """Neighbours along the side."""
        return tile_over(self._axes, [(self._sides[self.place], positions)])

    def written_bytes(self, block: float) -> tuple[float, float]:
        """Bytes of sectors that a store of a warp writes, and of those that it writes in part: see
        ``traffic.written_bytes`` and ``traffic.partly_written_bytes``."""
        found = self._written.get(block)
        if found is None:
            elements, sector_bytes = self._strides.touched(self._of_warp(block))
            stored = elements * self._strides.item_bytes
            written = written_bytes(stored, sector_bytes)
            found = self._written[block] = written, partly_written_bytes(stored, sector_bytes)
        return found

    def _of_warp(self, block: float) -> Tile:
        found = self._warps.get(block)
        if found is None:
            rest = self.neighbours / block
            warp = [
                (places, block if place == self.place else rest)
                for place, places in enumerate(self._sides)
            ]
            found = self._warps[block] = tile_over(self._axes, warp)
        return found


class FlatLoads(NamedTuple):
    """How the threads of a program load and store: fields of ``Traffic``.

    Attributes
    ----------
    hit_lines : float
        Lines that another warp of the program loads too: the L1 cache has them.
    gathered : list of (Gathered, float)
        The tensors that are read at indices of others, and their lines without ``hit_lines``.
    shared : list of float
        Of each tensor that several positions load, its lines without ``hit_lines``. 0 of others.
    """

    lines: float
    hit_lines: float
    accesses: float
    addresses: float
    written_bytes: float
    partly_bytes: float
    gathered: list[tuple[Gathered, float]]
    shared: list[float]

    @property
    def most_hit(self) -> float:
        """The lines that the L1 cache may have."""
        return self.hit_lines + sum(self.shared) + sum(lines for _, lines in self.gathered)


def flat_tensor(problem: Problem, stream: Stream, times: int) -> FlatTensor:
    strides = TensorStrides(stream)
    return FlatTensor(
        stream,
        times * stream.accessed_share,
        strides,
        _lane(problem, stream),
        _axes(stream),
        stream.fresh_share,
        stream.total_bytes * SECTOR_BYTES / stream.item_bytes,
        unused_share(problem, stream, strides),
        Gathered(problem, stream, times) if stream.held_bytes else None,
        not stream.is_store
        and not stream.held_bytes
        and stream.total_bytes < problem.parallel * stream.item_bytes,
    )


def _axes(stream: Stream) -> frozenset[int]:
    return frozenset(term.axis for term in stream.stride_terms)


def _lane(problem: Problem, stream: Stream) -> float:
    """Neighbours of a flat kernel that have the same element, which is then loaded once."""
    if problem.across or not stream.stride_terms:
        return 1.0
    inner = max(stream.stride_terms, key=lambda term: term.axis)
    same = inner.div * prod(problem.axes[inner.axis + 1 :])
    return float(same & -same) if same > 1 else 1.0


def accesses(
    problem: Problem, tensors: Sequence[FlatTensor], sides: Sequence[tuple[int, ...]], limit: int
) -> list[FlatAccess]:
    """How threads load each tensor, ``limit`` elements at most.

    Triton lays the threads of a load out by the widest vector of all loads and stores of the same
    shape that lie along the same side. Stores are converted to a layout of their own.
    """
    every = tuple(range(len(sides)))
    wide: dict[tuple[tuple[int, ...], int], int] = {}
    lying = []
    for tensor in tensors:
        widths = _widths(problem, tensor.stream, sides, limit)
        along = tuple([p for p in every if not tensor.axes.isdisjoint(sides[p])])
        place = _place(problem, tensor, sides, widths, along or every)
        wide[along, place] = max(wide.get((along, place), 1), widths[place])
        lying.append((tensor, widths[place], along, place))
    found = []
    for tensor, width, along, place in lying:
        own = max(width, 1)
        # Of what lies along no side of two, Triton sees no neighbours.
        apart = tensor.stream.is_store or (not width and len(sides) > 1)
        found.append(
            FlatAccess(
                problem.axes,
                tensor.stride_terms,
                sides,
                along=along,
                place=place,
                width=own,
                positions=tensor.lane * NVIDIA_WARP_SIZE * own,
                neighbours=NVIDIA_WARP_SIZE * (own if apart else wide[along, place]),
                gathered=tensor.gathered,
            )
        )
    return found


def _place(
    problem: Problem,
    tensor: FlatTensor,
    sides: Sequence[tuple[int, ...]],
    width: Sequence[int],
    along: Sequence[int],
) -> int:
    """The side that the threads of a load are neighbours along: that of the widest vectors, or
    that which is nearer in memory. One of those that the tensor runs along."""
    if len(along) == 1:
        return along[0]
    place = max(along, key=lambda p: width[p])
    if width[place] > 1:
        return place
    touched = {p: warp_bytes(tensor.stride_terms, problem.axes, sides, p) for p in along}
    return min(along, key=lambda p: (touched[p], -p))


def _widths(
    problem: Problem, stream: Stream, sides: Sequence[tuple[int, ...]], limit: int
) -> list[int]:
    """Elements of a load of a thread along each side; 0 where neighbours are not contiguous."""
    most = max(min(VECTOR_BYTES // stream.item_bytes, limit), 1)
    runs = [run_along(stream, problem.axes, places) for places in sides]
    return [
        0 if run == 1 else vector_elements(stream, places, run, most)
        for run, places in zip(runs, sides, strict=True)
    ]
