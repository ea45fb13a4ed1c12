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
from .traffic import written_bytes


class FlatTensor(NamedTuple):
    """A tensor, as far as no params change it, and how many times a position accesses it."""

    stream: Stream
    times: float
    stride_terms: TensorStrides
    lane: float
    axes: frozenset[int]
    fresh: float
    most_between: float
    unused: float
    gathered: Gathered | None


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
    positions : float
        Positions that a warp loads at once.
    neighbours : int
        Positions along that side that a warp has.
    """

    def __init__(
        self,
        axes: tuple[int, ...],
        strides: TensorStrides,
        sides: Sequence[tuple[int, ...]],
        *,
        along: tuple[int, ...],
        place: int,
        positions: float,
        neighbours: int,
    ) -> None:
        self._axes, self._strides, self._sides = axes, strides, sides
        self.along = along
        self.place = place
        self.positions = positions
        self.neighbours = neighbours
        self._lines: dict[float, float] = {}
        self._written: dict[float, float] = {}

    def lines(self, block: float) -> float:
        """Lines that a load of a warp touches, of a tile that has ``block`` positions of the warp's
        neighbours.

        Threads with more neighbours than the load is wide load them one after another, so that
        those of a load are apart.
        """
        found = self._lines.get(block)
        if found is None:
            _, line_bytes = self._strides.touched(self._of_warp(block), CACHE_LINE_BYTES)
            found = self._lines[block] = min(line_bytes / CACHE_LINE_BYTES, NVIDIA_WARP_SIZE)
        return found

    def written_bytes(self, block: float) -> float:
        """Bytes of sectors that a store of a warp writes: see ``traffic.written_bytes``."""
        found = self._written.get(block)
        if found is None:
            elements, sector_bytes = self._strides.touched(self._of_warp(block))
            stored = elements * self._strides.item_bytes
            found = self._written[block] = written_bytes(stored, sector_bytes)
        return found

    def _of_warp(self, block: float) -> Tile:
        rest = self.neighbours / block
        warp = [
            (places, block if place == self.place else rest)
            for place, places in enumerate(self._sides)
        ]
        return tile_over(self._axes, warp)


class FlatLoads(NamedTuple):
    """How the threads of a program load and store: fields of ``Traffic``.

    Attributes
    ----------
    gathered : list of (Gathered, float)
        The tensors that are read at indices of others, and their share of the lines.
    """

    lines: float
    accesses: float
    addresses: float
    written_bytes: float
    gathered: list[tuple[Gathered, float]]

    @property
    def sure_lines(self) -> float:
        """The lines, where the L1 cache has none of them: 0 with reads at indices of others."""
        return self.lines if not self.gathered else 0.0


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
    """How threads load each tensor, ``limit`` elements at most."""
    every = range(len(sides))
    widths = [_widths(problem, tensor.stream, sides, limit) for tensor in tensors]
    wide = [max((w[place] for w in widths), default=1) for place in every]
    found = []
    for tensor, width in zip(tensors, widths, strict=True):
        place = max(every, key=lambda p: width[p])
        if width[place] <= 1 and len(sides) > 1:
            # Threads are neighbours along the side that is nearer in memory.
            strides = tensor.stride_terms
            touched = [warp_bytes(strides, problem.axes, sides, p) for p in every]
            place = min(every, key=lambda p: (touched[p], -p))
        along = tuple(p for p in every if not tensor.axes.isdisjoint(sides[p]))
        found.append(
            FlatAccess(
                problem.axes,
                tensor.stride_terms,
                sides,
                along=along,
                place=place,
                positions=tensor.lane * NVIDIA_WARP_SIZE * max(width[place], 1),
                neighbours=NVIDIA_WARP_SIZE * max(wide[place], 1),
            )
        )
    return found


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
