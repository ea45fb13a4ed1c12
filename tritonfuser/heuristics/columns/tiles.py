"""Facts that tiles of columns depend on: element sizes, cache lines, alignment of rows.

Axis x runs over columns, which are adjacent in memory, and axis r down a column, over the rows of
the memory that are reduced. In the modules of columns *rows* are those of the memory. A tile should
have full cache lines of each row, a step enough bytes in flight, and the programs full waves.

``sums`` chooses tiles of columns that are read once, ``norms`` tiles of columns that are read
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from ...device import CACHE_LINE_BYTES, SECTOR_BYTES, VECTOR_BYTES
from ..integers import TUNED_WARP_SIZE, ceil_div, floor_power_of_2, next_power_of_2, warps_for
from ..one_wave import spread_warps
from ..problem import Problem
from ..streams import Stream

REGISTER_BYTES_PER_THREAD = 128
"""Bytes of columns that a thread holds in registers."""

MAX_COLUMN_WARPS = 8
"""Most warps of a program that is spread over more threads: each exchanges partial results of all
columns. H200, sums of the columns of 256 x 384: 1.98 us by 4 warps, 2.05 by 8, 2.27 by 16."""


class ColumnTile(NamedTuple):
    """``block_x`` columns by ``block_r`` rows, the share of a program in one step."""

    block_x: int
    block_r: int
    num_warps: int


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """The facts that tiles of columns depend on.

    Attributes
    ----------
    total_bytes : int
        Bytes of all large tensors that are read.
    read_bytes : int
        Bytes read for each element, of all large tensors together. 1 or more.
    narrowest_bytes : int
        Bytes of an element of the narrowest of them. 1 to 16.
    vector_elements : int
        Elements of the widest load that is aligned in every row; the least of all tensors.
    run : int
        Columns that are contiguous in every row of the tensors that are read.
    is_launch_bound : bool
        Reading takes no longer than a launch: a full device matters more than full cache lines.
    """

    total_bytes: int
    read_bytes: int
    narrowest_bytes: int
    vector_elements: int
    run: int
    is_launch_bound: bool

    @property
    def widest_tile(self) -> int:
        """Columns of a cache line, or of a contiguous run if that is shorter."""
        return min(next_power_of_2(self.run), self.line)

    @property
    def line(self) -> int:
        """Columns of a cache line."""
        return CACHE_LINE_BYTES // self.narrowest_bytes

    @property
    def sector(self) -> int:
        """Columns of a sector."""
        return SECTOR_BYTES // self.narrowest_bytes

    def per_thread(self, size: int) -> int:
        """Elements of which a thread loads about ``size`` bytes, a power of two."""
        return max(floor_power_of_2(max(size // self.read_bytes, 1)), self.vector_elements)

    def elements(self, warps: int, size: int) -> int:
        """Elements of a tile of which each thread loads about ``size`` bytes."""
        return warps * TUNED_WARP_SIZE * self.per_thread(size)

    def warps(self, elements: int, size: int) -> int:
        """Warps that load that many elements, about ``size`` bytes a thread. 1 to 32."""
        return warps_for(elements, self.per_thread(size), most=32)

    def spread(self, problem: Problem, tile: ColumnTile) -> ColumnTile:
        """The tile with more warps, if all programs are resident."""
        programs = ceil_div(problem.parallel, tile.block_x)
        elements = tile.block_x * min(tile.block_r, problem.reduced)
        warps = spread_warps(problem.device, programs, elements, problem.accumulators)
        return tile._replace(num_warps=max(tile.num_warps, min(warps, MAX_COLUMN_WARPS)))


@lru_cache(maxsize=64)
def column_facts(problem: Problem) -> ColumnFacts:
    """The facts of a problem whose axis r is strided in memory. Cached: several rules ask."""
    large, loads = problem.large_streams, problem.large_loads
    read_bytes = max(sum(s.item_bytes for s in loads), 1)
    narrowest = min((s.item_bytes for s in loads or large), default=4)
    total_bytes = problem.parallel * problem.reduced * read_bytes
    return ColumnFacts(
        total_bytes=total_bytes,
        read_bytes=read_bytes,
        narrowest_bytes=min(narrowest, VECTOR_BYTES),
        vector_elements=min((_vector_elements(s) for s in large), default=VECTOR_BYTES // 4),
        run=min(
            (s.contiguous_run or problem.parallel for s in loads if s.x_stride == 1),
            default=problem.parallel,
        ),
        is_launch_bound=total_bytes <= problem.device.launch_bytes,
    )


def _vector_elements(stream: Stream) -> int:
    """Elements of the widest load that is aligned in every row of a tensor."""
    most = max(VECTOR_BYTES // stream.item_bytes, 1)
    return most if stream.r_stride is None else gcd(stream.r_stride, most) or most


def rows_cross_lines(problem: Problem) -> bool:
    """Whether rows that are read begin inside cache lines, in tensors above the launch bound."""
    if column_facts(problem).is_launch_bound:
        return False
    loads = problem.large_loads
    steps = [s.r_stride * s.item_bytes for s in loads if s.r_stride is not None]
    return any(step % CACHE_LINE_BYTES for step in steps)


def rows_start_at_vectors(problem: Problem, every: int = 1) -> bool:
    """Whether each ``every``-th row that is read begins at a vector, if the first one does."""
    strides = [s.r_stride * s.item_bytes for s in problem.large_loads if s.r_stride]
    return all(every * stride % VECTOR_BYTES == 0 for stride in strides)


def columns_are_vectors(problem: Problem) -> bool:
    """Whether whatever is loaded of all positions is loaded by vectors of columns."""
    strides = ((s.x_stride, s.r_stride, s.item_bytes) for s in problem.full_loads)
    return all(x == 1 and r is not None and r * size % VECTOR_BYTES == 0 for x, r, size in strides)


def rows_between_aligned(problem: Problem, size: int) -> int:
    """Rows from one that begins at a multiple of ``size`` bytes to the next that does."""
    elements = max(size // problem.narrowest, 1)
    return elements // gcd(elements, problem.parallel)
