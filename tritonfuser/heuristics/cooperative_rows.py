"""Rows too long for the registers of one program, shared by several: how many, and what each has.

A group of programs loops over its rows together. Each program reads its part of a row, sums it up
and publishes the sums. Some rows later it reads the part again, from the L2 cache, and finishes it
with the sums of all parts. So the data comes from memory once, where three kernels would read it
twice.

The figures are of an H200 (backward of norms of 20480 to 262144 columns in bfloat16).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..device import MAX_REGISTERS_PER_THREAD
from .integers import divisors
from .params import InnerOuterPersistentParams
from .problem import Problem
from .row_tiling import block_and_tails

WARPS = 4
"""Warps of a program: few, so that threads have the registers for all sums over rows."""

PROGRAMS_PER_SM = 2
"""Programs of an SM: one works while the other waits for memory or for published sums."""

MAX_PART_ELEMENTS = 5120
"""Elements of a part. With two sums over rows they take 80 of a thread's 255 registers."""

MIN_PART_ELEMENTS = 1024
"""Elements of a part. Fewer do not fill the loads of four warps."""

MAX_OUTER_REDUCTIONS = 2
"""Reductions over rows whose sums fit in registers beside a part."""

DELAY_ROWS = 2
"""Rows between publishing a sum and using it. Publishing takes about 2 us, as long as a row or
two."""

RESERVED_SHARED_BYTES = 4096
"""Bytes of shared memory of a program for reductions between lanes, and for CUDA itself."""


@dataclass(frozen=True, slots=True)
class CooperativeSplit:
    """How programs share rows.

    Attributes
    ----------
    groups : int
        Groups of programs, each with its share of the rows.
    parts : int
        Programs of a group, each with one part of a row. A power of two.
    width : int
        Elements of a part.
    """

    groups: int
    parts: int
    width: int


def cooperative_split(problem: Problem) -> CooperativeSplit | None:
    """The split with the most programs that run at once; of those the longest parts. Or None."""
    usable = problem.device.arch.startswith("sm_") and problem.outer_members <= MAX_OUTER_REDUCTIONS
    if not problem.published_sums or not usable:
        return None
    room = problem.device.sm_count * PROGRAMS_PER_SM
    choices = [problem.outer_batch] if problem.rows_split else _groups(problem)
    found = [
        CooperativeSplit(groups, parts, problem.reduced // parts)
        for groups in choices
        for parts in _parts(problem.reduced)
        if groups * parts <= room and problem.parallel // groups > DELAY_ROWS
    ]
    return max(found, key=lambda s: (s.groups * s.parts, s.width), default=None)


def _groups(problem: Problem) -> list[int]:
    """Numbers of groups that share the rows out evenly, more than one."""
    batch = problem.outer_batch
    shares = divisors(problem.parallel // batch) if problem.may_split else [1]
    return [batch * share for share in shares if batch * share > 1]


def _parts(row: int) -> Iterator[int]:
    """Powers of two that cut a row into parts which tiles fill, a multiple of 16 elements long."""
    parts = 2
    while row // parts >= MIN_PART_ELEMENTS:
        width = row // parts
        block, tails = block_and_tails(width)
        exact = row % (16 * parts) == 0 and block + sum(tails) == width
        if exact and width <= MAX_PART_ELEMENTS:
            yield parts
        parts *= 2


def cooperative_params(problem: Problem, chosen: CooperativeSplit) -> InnerOuterPersistentParams:
    """The params of a kernel with this split."""
    block, tails = block_and_tails(chosen.width)
    threads = PROGRAMS_PER_SM * WARPS * problem.device.warp_size
    registers = problem.device.registers_per_sm // threads // 8 * 8
    return InnerOuterPersistentParams(
        block_m=1,
        block_r=block,
        tails=tails,
        parts=chosen.parts,
        delay=DELAY_ROWS,
        max_registers=min(MAX_REGISTERS_PER_THREAD, registers),
        num_warps=WARPS,
        num_stages=_stages(problem, chosen),
    )


def _stages(problem: Problem, chosen: CooperativeSplit) -> int:
    """Pipeline stages: a stage has the part that is read and the part that is finished.

    H200, 16384 x 20480 with two sums over rows: in bfloat16 608 us with 3 stages, 671 with 2, 918
    with 1. In float32, where 2 nearly fill the shared memory, 1 was 5% faster.
    """
    stage = 2 * chosen.width * sum(s.item_bytes for s in problem.full_loads)
    room = problem.device.shared_bytes_per_sm // PROGRAMS_PER_SM - RESERVED_SHARED_BYTES
    if 2 * stage <= room:
        return 3
    return 2 if 3 * stage <= 2 * room else 1
