"""How threads load and store the tensors of a flat tile: along which side, how many elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ...device import NVIDIA_WARP_SIZE, SECTOR_BYTES, VECTOR_BYTES
from ..problem import Problem
from ..streams import Stream
from .footprint import TensorStrides, run_along, vector_elements, warp_bytes
from .gathered import Gathered
from .refetched import unused_share


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


class Access(NamedTuple):
    """How threads load a tensor.

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
    lines : dict of float to float
        Lines that a load of a warp touches, by the positions along that side that a tile has: those
        that were asked for, each found once.
    """

    along: tuple[int, ...]
    place: int
    positions: float
    neighbours: int
    lines: dict[float, float]


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
) -> list[Access]:
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
        positions = tensor.lane * NVIDIA_WARP_SIZE * max(width[place], 1)
        found.append(Access(along, place, positions, NVIDIA_WARP_SIZE * max(wide[place], 1), {}))
    return found


def _widths(
    problem: Problem, stream: Stream, sides: Sequence[tuple[int, ...]], limit: int
) -> list[int]:
    """Elements of a load of a thread along each side; 0 where neighbours are not contiguous."""
    most = max(min(VECTOR_BYTES // stream.item_bytes, limit), 1)
    runs = [run_along(stream, problem.axes, places) for places in sides]
    return [0 if run == 1 else vector_elements(stream, run, most) for run in runs]
