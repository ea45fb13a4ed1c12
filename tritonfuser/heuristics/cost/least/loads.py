"""What tiles of rows load and store at least, many at once.

Each tensor is taken to be loaded by the widest vectors that it has along either side, and each load
of a warp touches a cache line. Where no two positions have the same element, a line has no more of
them than fit, and no more than a tile has along the axis that the tensor is contiguous along. Each
piece of what a load asks for may begin inside a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from ....device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...problem import Problem
from ...streams import Stream
from ..counts import Number
from ..numbers import Numbers
from ..rows.access import R, RowTensor, running_side
from ..tiles import KernelTile, Launches


class SureLoads(NamedTuple):
    """Fields of ``Counts``, at least.

    Attributes
    ----------
    hit_lines : float
        Of flat kernels, the lines that the L1 cache has at most.
    neighbours : (float, float)
        Those of a thread along the row or column that is reduced in, at least and at most.
    """

    accesses: Number
    lines: Number
    loaded: Number
    addresses: Number = 0.0
    neighbours: tuple[Number, Number] = (1.0, 1.0)
    hit_lines: Number = 0.0
    written_bytes: Number = 0.0


class _Lines(NamedTuple):
    """The cache lines of a tensor of which no two positions have the same element.

    Attributes
    ----------
    lies_along_r : bool
        Whether a line has elements along axis r, and not along x.
    most : int
        How many at most.
    share : float
        Of a line that an element takes.
    extent, step : int
        Elements of the tensor along the axis with the nearest neighbours, and how far these are
        apart.
    beyond : float
        How far neighbours along the next axis are apart.
    """

    lies_along_r: bool
    most: int
    share: float
    extent: int
    step: int
    beyond: float

    def of_each(self, tile: KernelTile, width: Number, valid: Number, m: Numbers) -> Number:
        """Lines for each position of a tile, of loads of so many neighbours."""
        along = tile.r if self.lies_along_r else tile.x
        inside = valid / m.minimum(along, self.most)
        # Threads with whole rows load runs.
        begun = m.where(tile.staged, 0.0, self._begun(along, width, valid, m))
        # A load touches a line of each thread at most.
        begun = m.minimum(self.share * valid + (1 - self.share) * begun, 1 / width)
        return m.maximum(inside, begun)

    def _begun(self, along: Number, width: Number, valid: Number, m: Numbers) -> Number:
        """Pieces of memory that are asked for: one by each load, and one for each row or column of
        a tile where the next one is further away than a line."""
        each = m.minimum(along, self.extent)
        apart = self.beyond >= each * self.step + 1 / self.share
        return m.maximum(1 / (NVIDIA_WARP_SIZE * width), m.where(apart, valid / each, 0.0))


class _Tensor(NamedTuple):
    """A tensor over both axes.

    Attributes
    ----------
    times : float
        Its loads, or stores, of a position.
    in_last_pass : bool
        Whether the last pass over a row alone has them.
    is_along : bool
        Whether threads load it along the side that most bytes are contiguous along, by any tile.
    vectors : (int, int)
        Elements of the widest vector along each side.
    most : int
        The same wherever tiles begin: at vectors too.
    is_cached : bool
        The L1 cache may have its lines: it is read at indices of another tensor.
    lines : _Lines or None
        The cache lines that it takes. None where positions may have the same element.
    """

    times: float
    in_last_pass: bool
    is_along: bool
    vectors: tuple[int, int]
    most: int
    is_cached: bool
    lines: _Lines | None


class LeastLoads:
    """The least loads and stores of a problem with rows, by tiles."""

    def __init__(self, problem: Problem, tensors: Sequence[RowTensor]) -> None:
        full = [each for each in tensors if each.stream.along_x and each.stream.along_r]
        side = running_side(problem)
        self._loaded = [each for each in full if not each.stream.is_store]
        # Neighbours along a row that have the same element share its loads.
        self._full = [_facts(problem, each, side) for each in full if each.stream.r_same <= 1]
        loads = [each for each in tensors if each.is_full and not each.stream.is_store]
        self._widest = float(max((each.vectors[side] for each in loads), default=1))
        self._most = float(max((_most(each) for each in loads), default=1))

    def of(self, many: Launches, threads: Number, valid: Number, m: Numbers) -> SureLoads:
        """Those of kernels of whose tiles a share is valid."""
        tile = many.tile
        size = tile.x * tile.r
        each = 2.0 ** m.floor(m.log2(m.maximum(size // threads, 1)))
        there = size * valid
        accesses: Number = 0.0
        lines: Number = 0.0
        wide: Number = 1.0
        for tensor in self._full:
            taken = tensor.times / tile.passes if tensor.in_last_pass else tensor.times
            width = m.minimum(_width(tensor, many, m), each)
            loads = taken / (NVIDIA_WARP_SIZE * width)
            accesses = accesses + loads * size
            wide = m.maximum(wide, width) if tensor.is_along else wide
            # A tile that is longer than the problem touches no lines behind its end.
            touched = loads * valid
            if tensor.lines is not None:
                touched = m.maximum(touched, taken * tensor.lines.of_each(tile, width, valid, m))
            lines = lines if tensor.is_cached else lines + touched * there
        # What is behind the ends of rows is not loaded where threads have whole rows.
        accesses = m.where(tile.staged, accesses * valid, accesses)
        neighbours = (1.0, self._most) if many.aligned else (wide, self._widest)
        return SureLoads(accesses, lines, self._elements(tile.passes), 0.0, neighbours)

    def _elements(self, passes: Number) -> Number:
        """Elements that are loaded for each position."""
        late = sum(each.times for each in self._loaded if each.stream.is_late)
        return sum(each.times for each in self._loaded) - late + late / passes


def _width(tensor: _Tensor, many: Launches, m: Numbers) -> Number:
    """Neighbours that a thread with enough of them loads at once: at most, in tiles that begin at
    vectors."""
    if many.aligned:
        return tensor.most
    (along_x, along_r), tile = tensor.vectors, many.tile
    return m.maximum(m.minimum(along_x, tile.x), m.minimum(along_r, tile.r))


def _facts(problem: Problem, tensor: RowTensor, side: int) -> _Tensor:
    stream = tensor.stream
    return _Tensor(
        times=tensor.times,
        in_last_pass=stream.is_in_last_pass,
        is_along=not stream.is_store and tensor.vectors[1 - side] == 1,
        vectors=tensor.vectors,
        most=_most(tensor),
        is_cached=tensor.gathered is not None,
        lines=_lines(problem, stream),
    )


def _most(tensor: RowTensor) -> int:
    """Elements of a vector at most."""
    return VECTOR_BYTES // tensor.stream.item_bytes


def _lines(problem: Problem, stream: Stream) -> _Lines | None:
    """The ``_Lines`` of a tensor."""
    terms = sorted(stream.stride_terms, key=lambda term: abs(term.step))
    positions = problem.parallel * max(problem.reduced, 1)
    if stream.total_bytes < positions * stream.item_bytes or any(t.div != 1 for t in terms):
        return None
    line = max(CACHE_LINE_BYTES // stream.item_bytes, 1)
    steps = [abs(term.step) for term in terms]
    near = sum(step < line for step in steps)
    if near > 1:
        return None
    share = stream.item_bytes / CACHE_LINE_BYTES
    if not near:
        return _Lines(False, 1, share, 1, 1, inf)
    beyond = float(steps[1]) if len(steps) > 1 else inf
    inner = terms[0]
    lies_along_r = inner.axis in problem.places[R]
    return _Lines(lies_along_r, min(line, inner.extent), share, inner.extent, steps[0], beyond)
