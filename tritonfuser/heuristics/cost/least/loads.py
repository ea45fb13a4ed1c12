"""Lower bounds of the loads and stores of tiles of rows, for many tiles at once.

The bounds assume that each tensor is loaded by the widest vectors that it allows along either side.
Each load of a warp touches at least one cache line. Where each position has an element of its own,
the elements of a tile also fill a least number of lines: a line holds no more elements than fit in
it, and no more than the tile has along the axis that the tensor is contiguous along.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from ....device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...problem import Problem
from ...streams import Stream
from ..counts import Number
from ..memory.traffic import StepBytes
from ..numbers import Numbers
from ..rows.access import R, RowTensor, main_side
from ..tiles import KernelTile, Launches


class LoadBounds(NamedTuple):
    """Lower bounds of fields of ``Counts``.

    Attributes
    ----------
    hit_lines, hit_bytes : float
        Upper bounds, in flat kernels: lines, and bytes of sectors, that hit the L1 cache.
    moved : StepBytes
        The bytes of a program of a flat kernel.
    vectors : (float, float)
        Lower and upper bound of ``Traffic.inner_vector``.
    """

    accesses: Number
    lines: Number
    loaded: Number
    addresses: Number = 0.0
    vectors: tuple[Number, Number] = (1.0, 1.0)
    hit_lines: Number = 0.0
    hit_bytes: Number = 0.0
    written_bytes: Number = 0.0
    moved: StepBytes = StepBytes()


class _Lines(NamedTuple):
    """The cache lines of a tensor that has an element of its own for each position.

    Attributes
    ----------
    is_along_r : bool
        Whether elements of one line are adjacent along axis r; otherwise along x.
    most_elements : int
        Upper bound of the elements of a line.
    element_share : float
        Share of a line that an element takes.
    extent, stride : int
        Of the stride term with the smallest stride, in elements.
    next_stride : float
        Stride of the next term.
    """

    is_along_r: bool
    most_elements: int
    element_share: float
    extent: int
    stride: int
    next_stride: float

    def per_position(self, tile: KernelTile, width: Number, valid: Number, m: Numbers) -> Number:
        """Lines for each position of a tile, by loads of ``width`` elements a thread: the larger of
        two bounds, by the elements of a line and by the number of contiguous runs."""
        along = tile.r if self.is_along_r else tile.x
        by_elements = valid / m.minimum(along, self.most_elements)
        # Staged tiles are loaded as one run.
        runs = m.where(tile.staged, 0.0, self._runs(along, width, valid, m))
        # A run may begin anywhere in a line. A load touches one line of each thread at most.
        by_runs = self.element_share * valid + (1 - self.element_share) * runs
        return m.maximum(by_elements, m.minimum(by_runs, 1 / width))

    def _runs(self, along: Number, width: Number, valid: Number, m: Numbers) -> Number:
        """Contiguous runs for each position: one for each load of a warp, and one for each row or
        column of the tile if the gap between two of them is larger than a line."""
        length = m.minimum(along, self.extent)
        have_gaps = self.next_stride >= length * self.stride + 1 / self.element_share
        return m.maximum(1 / (NVIDIA_WARP_SIZE * width), m.where(have_gaps, valid / length, 0.0))


class _Tensor(NamedTuple):
    """A tensor that runs along both axes.

    Attributes
    ----------
    times : float
        Loads or stores of it for each position.
    in_last_pass : bool
        Whether only the last pass over a row loads or stores it.
    is_along_main_side : bool
        Whether lanes run along the main side (``access.main_side``) in its loads, by any tile.
    vectors : (int, int)
        Elements of the widest vectorized load along each side.
    most : int
        The same for tiles that begin at vectors.
    may_hit : bool
        Whether its lines may hit the L1 cache, as those of a gather.
    lines : _Lines or None
        Its cache lines. None if several positions may have the same element.
    """

    times: float
    in_last_pass: bool
    is_along_main_side: bool
    vectors: tuple[int, int]
    most: int
    may_hit: bool
    lines: _Lines | None


class LeastLoads:
    """Lower bounds of the loads and stores of a problem with rows, by tiles."""

    def __init__(self, problem: Problem, tensors: Sequence[RowTensor]) -> None:
        full = [each for each in tensors if each.stream.along_x and each.stream.along_r]
        side = main_side(problem)
        self._loaded = [each for each in full if not each.stream.is_store]
        # Adjacent positions of a row with the same element share one load: no bound for these.
        self._full = [_facts(problem, each, side) for each in full if each.stream.r_same <= 1]
        loads = [each for each in tensors if each.is_full and not each.stream.is_store]
        self._widest = float(max((each.vectors[side] for each in loads), default=1))
        self._most = float(max((_most(each) for each in loads), default=1))

    def of(self, many: Launches, threads: Number, valid: Number, m: Numbers) -> LoadBounds:
        """The bounds for many kernels.

        Parameters
        ----------
        valid : float
            Share of the positions of all tiles that exist.
        """
        tile = many.tile
        size = tile.x * tile.r
        each = 2.0 ** m.floor(m.log2(m.maximum(size // threads, 1)))
        existing = size * valid
        accesses: Number = 0.0
        lines: Number = 0.0
        wide: Number = 1.0
        for tensor in self._full:
            taken = tensor.times / tile.passes if tensor.in_last_pass else tensor.times
            width = m.minimum(_width(tensor, many, m), each)
            loads = taken / (NVIDIA_WARP_SIZE * width)
            accesses = accesses + loads * size
            wide = m.maximum(wide, width) if tensor.is_along_main_side else wide
            # Positions behind the end of the problem touch no lines.
            touched = loads * valid
            if tensor.lines is not None:
                touched = m.maximum(
                    touched, taken * tensor.lines.per_position(tile, width, valid, m)
                )
            lines = lines if tensor.may_hit else lines + touched * existing
        # Staged tiles do not load what is behind the ends of rows.
        accesses = m.where(tile.staged, accesses * valid, accesses)
        vectors = (1.0, self._most) if many.aligned else (wide, self._widest)
        return LoadBounds(accesses, lines, self._elements(tile.passes), 0.0, vectors)

    def _elements(self, passes: Number) -> Number:
        """Elements that are loaded for each position."""
        late = sum(each.times for each in self._loaded if each.stream.is_late)
        return sum(each.times for each in self._loaded) - late + late / passes


def _width(tensor: _Tensor, many: Launches, m: Numbers) -> Number:
    """Elements of one load of a thread that has enough of them; an upper bound where tiles begin at
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
        is_along_main_side=not stream.is_store and tensor.vectors[1 - side] == 1,
        vectors=tensor.vectors,
        most=_most(tensor),
        may_hit=tensor.gathered is not None,
        lines=_lines(problem, stream),
    )


def _most(tensor: RowTensor) -> int:
    """Elements of the widest vectorized load of any tensor of this dtype."""
    return VECTOR_BYTES // tensor.stream.item_bytes


def _lines(problem: Problem, stream: Stream) -> _Lines | None:
    """The cache lines of a tensor; None where no bound of them is known."""
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
    next_stride = float(steps[1]) if len(steps) > 1 else inf
    inner = terms[0]
    is_along_r = inner.axis in problem.places[R]
    most_elements = min(line, inner.extent)
    return _Lines(is_along_r, most_elements, share, inner.extent, steps[0], next_stride)
