"""Guards on the length of rows that varies, where a kernel keeps rows in registers.

Each register holds as many elements of a row as all threads have at once. Of those that are sure to
be filled no element needs a mask, and those that are sure to be behind the end are not there. Where
the length may be any that fits a block, a softmax of 393 elements in a block of 512 takes 704
instructions; where it is known to an eighth of the block 523, and 491 where it is a constant.
"""

from __future__ import annotations

from math import gcd

from ...device import NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...heuristics.integers import ceil_div
from ...heuristics.problem import Problem
from ...heuristics.row_tiling import MIN_TAIL_ELEMENTS, VARYING_TAIL
from ...heuristics.streams import Stream
from ...symbolic.choices import env_among
from ...symbolic.queries import (
    assume_at_most,
    assume_less,
    is_known_equal,
    known_divisor,
)
from ...symbolic.sizes import hint

SHORTEST = 8
"""A row that varies fills at least this part of its block: shorter ones get a block of theirs."""


def assume_length(row: int, block: int, block_x: int, warps: int, problem: Problem | None) -> None:
    """Guards on the length of a row that one block holds, where it varies.

    There are ``VARYING_TAIL`` kernels for the lengths from one power of two to the next, and fewer
    where all threads hold more of a row at once than such a part of it. So there are for parts of a
    row, and for the results of the parts: heuristics choose how many parts there are, which is the
    same, or makes parts as long, over ranges of sizes.

    Parameters
    ----------
    row : int
        The elements of a row.
    block, block_x : int
        The elements of a row, and the rows, that a program has.
    warps : int
        Warps of a program.
    problem : Problem, optional
        The facts of the kernel.
    """
    env = env_among(row)
    if env is None:
        return
    if problem is not None and not problem.on_cpu:
        at_once = warps * NVIDIA_WARP_SIZE * _neighbours(problem) // block_x
        step = max(block // 2 // VARYING_TAIL, at_once, MIN_TAIL_ELEMENTS)
        steps = ceil_div(hint(row), step)
        assume_less((steps - 1) * step, row)
        assume_at_most(row, steps * step)
    assume_at_most(block, SHORTEST * row)


def _neighbours(problem: Problem) -> int:
    """Elements of the widest vector that the kernel's tensors are loaded by."""
    return max(map(_vector, problem.full_streams), default=1)


def _vector(stream: Stream) -> int:
    """Elements that a thread loads at once: a vector, where all rows are sure to begin at one."""
    steps = (stream.x_stride, stream.r_stride)
    across = [n for n in steps if n is not None and not is_known_equal(n, 1)]
    if len(across) == len(steps) or None in steps:
        return 1
    return gcd(VECTOR_BYTES // stream.item_bytes, *map(known_divisor, across))
