"""Rows too long for one program's registers, shared by several: how many, and what each has.

Programs walk over rows together. Each reads its part of a row, sums it up and tells the others;
some rows later it reads the part again, from the L2 cache, and finishes it with the sums of all.
So the data comes from memory once, where three kernels would read it twice.

The numbers are those of an H200 (norm backwards of 20480 to 262144 columns in bfloat16).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .integers import divisors
from .params import InnerOuterPersistentParams
from .problem import Problem
from .rows import whole_row

WARPS = 4
PROGRAMS_PER_SM = 2
"""Few warps with many registers: all sums over rows stay in them. Two programs take turns at
waiting for memory and for one another."""

LONGEST = 5120
"""Elements of a part; with two sums over rows they take 80 of a thread's 255 registers."""

SHORTEST = 1024
"""Elements of a part: less does not fill the loads of four warps."""

MOST_SUMS = 2
"""Sums over rows that fit in registers beside a part."""

DELAY = 2
"""Rows between a sum and its use: telling takes about 2 us, as long as a row or two."""


BESIDE = 4096
"""Bytes of shared memory that a program takes for sums over its lanes, and CUDA for itself."""


@dataclass(frozen=True, slots=True)
class Shared:
    """``groups`` of ``parts`` programs, each with ``width`` elements of a row."""

    groups: int
    parts: int
    width: int


def shared(problem: Problem) -> Shared | None:
    """The best way to share rows, in as many groups as there are if that is decided; or none."""
    usable = problem.device.arch.startswith("sm_") and problem.outer_members <= MOST_SUMS
    if not problem.published_sums or not usable:
        return None
    room = problem.device.sm_count * PROGRAMS_PER_SM
    decided = [problem.outer_batch] if problem.rows_split else divisors(problem.parallel)[1:]
    found = [
        Shared(groups, parts, problem.reduced // parts)
        for groups in decided
        for parts in _parts(problem.reduced)
        if groups * parts <= room and problem.parallel // groups > DELAY
    ]
    # As many programs as there is room for; of those, the longest parts.
    return max(found, key=lambda s: (s.groups * s.parts, s.width), default=None)


def _parts(row: int) -> Iterator[int]:
    """Powers of two that cut a row into parts which tiles fill, a multiple of 16 long."""
    parts = 2
    while row // parts >= SHORTEST:
        width = row // parts
        block, tails = whole_row(width)
        exact = row % (16 * parts) == 0 and block + sum(tails) == width
        if exact and width <= LONGEST:
            yield parts
        parts *= 2


def params_of(problem: Problem, chosen: Shared) -> InnerOuterPersistentParams:
    """The params of a kernel that shares rows so."""
    block, tails = whole_row(chosen.width)
    threads = PROGRAMS_PER_SM * WARPS * problem.device.warp_size
    return InnerOuterPersistentParams(
        block_m=1,
        block_r=block,
        tails=tails,
        parts=chosen.parts,
        delay=DELAY,
        max_registers=min(255, problem.device.registers_per_sm // threads // 8 * 8),
        num_warps=WARPS,
        num_stages=_stages(problem, chosen),
    )


def _stages(problem: Problem, chosen: Shared) -> int:
    """Rows in flight, which lie in shared memory: the parts that are read and those finished.

    In bfloat16 3 stages took 608 us (16384 x 20480, two sums), 2 took 671, 1 took 918; in float32,
    where 2 nearly fill the memory, 1 was 5% faster.
    """
    step = 2 * chosen.width * sum(s.item_bytes for s in problem.full_loads)
    room = problem.device.shared_bytes_per_sm // PROGRAMS_PER_SM - BESIDE
    if 2 * step <= room:
        return 3
    return 2 if 3 * step <= 2 * room else 1
