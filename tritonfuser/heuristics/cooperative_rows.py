"""Cooperative rows: rows too long for one program's registers, divided among several programs.

A group of programs loops over its rows together. Each program reads its part of a row, reduces it
and publishes the partial sums. Some rows later it reads the part again, which hits the L2 cache,
and computes its results from the sums of all parts. So memory is read once, where separate kernels
read it twice.

A split is possible if its parts fit in registers and all its programs are resident. The one of the
least estimated time is chosen (``_seconds``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

from .integers import ceil_div
from .looped_rows.row_parts import (
    Residents,
    can_share_rows,
    edges_of_part,
    row_parts,
    stage_bytes,
)
from .params import MAX_TAILS, InnerOuterPersistentParams
from .problem import Problem
from .problem.tensors import L2_SPEEDUP
from .row_tiling import row_alignment
from .rows_in_registers import fits_registers

WARPS = 4
"""Warps of a program: few, so that threads have enough registers for all sums over rows."""

PROGRAMS_PER_SM = 2
"""Resident programs of an SM: one works while the other waits for memory or published sums."""

DELAY_ROWS = 2
"""Rows between publishing a sum and using it."""

MAX_STAGES = 3
"""Pipeline stages, if shared memory has room."""

LEAST_DELAY_S = 3.2e-6
"""Least seconds of the ``DELAY_ROWS`` steps from publishing a sum to its use (H200): if their bytes
and instructions take less, programs wait. The cost model's wait is ``PUBLISHED_SUM_S``."""

STEP_S = 0.3e-6
LOAD_S = 1.3e-6
REDUCTION_S = 0.12e-6
"""Seconds of a step of the loop, of a load that no pipeline stage hides, and of each reduction of a
tile over the lanes of a program. H200, backward of layer norms, microseconds of a step and those of
its bytes by bandwidth: 16384 x 20480 in bfloat16 1.62 and 0.75 with parts of 2048, 2.08 and 1.50 of
4096, 2.79 and 1.90 of 4096 + 1024; 8192 x 20480 in float32 2.12 and 1.50 with parts of 2048, 2.83
and 2.24 of 2048 + 1024, and 4.36 and 3.00 of 4096 with two stages, 5.48 and 3.80 of 4096 + 1024
with one."""

SM_BYTES_PER_CLOCK = 33
"""Bytes between the L2 cache and one multiprocessor in a clock (``sm_bytes`` of the cost model)."""

READ_SHARE = 0.75
"""Share of the bandwidth that kernels reach that read long rows twice. H200, in float32 and
bfloat16, 55 to 972 rows of 16176 to 256600: 0.64 to 0.97, with a median of 0.74."""


@dataclass(frozen=True, slots=True)
class CooperativeSplit:
    """How rows are divided among programs.

    Attributes
    ----------
    groups : int
        Groups of programs, each with its share of the rows.
    parts : int
        Programs of a group, each with one part of each row.
    block : int
        Elements of the block of a part.
    tails : tuple of int
        Elements of each tail of a part.
    align : int
        Elements of the vectors that parts begin at. 1 if rows begin at vectors anyway.
    """

    groups: int
    parts: int
    block: int
    tails: tuple[int, ...]
    align: int = 1

    @property
    def width(self) -> int:
        """Elements of a part. The last one of a row may have fewer."""
        return self.block + sum(self.tails)


def cooperative_split(problem: Problem) -> CooperativeSplit | None:
    """The split of the least time. None if none is possible, or if kernels that read the rows twice
    are faster."""
    return _chosen(problem) if can_share_rows(problem) else None


@lru_cache(maxsize=1024)
def _chosen(problem: Problem) -> CooperativeSplit | None:
    found = min(_splits(problem), key=lambda s: _seconds(problem, s), default=None)
    if found is None:
        return None
    # Decided by the first reductions alone, so that the answer stays the same when others join
    # them: rows that were split for a kernel which is refused later would be read a third time.
    loads = tuple(s for s in problem.streams if not s.is_store)
    first = replace(problem, streams=loads, outer_members=1)
    return found if _seconds(first, found) < _seconds_of_rereading(first) else None


# --- what is possible ----------------------------------------------------------------------------


def _splits(problem: Problem) -> Iterator[CooperativeSplit]:
    """All splits whose programs are resident at the same time."""
    room = problem.device.sm_count * PROGRAMS_PER_SM
    shared_out = problem.rows_split or problem.may_split
    # A group without a choice of rows has some at every vector offset.
    align = row_alignment(problem) if shared_out else 1
    for part in row_parts(problem, align, _residents(problem), MAX_TAILS - (align > 1)):
        for groups in _groups(problem, room // part.parts, align):
            yield CooperativeSplit(groups, *part, align)


def _residents(problem: Problem) -> Residents:
    return Residents(problem.device, PROGRAMS_PER_SM, WARPS)


def _groups(problem: Problem, most: int, align: int) -> Iterator[int]:
    """Numbers of groups of programs such that all rows of a group begin at the same vector offset.

    The most that are resident, and halves of it, since fewer groups have fewer partial results. Of
    numbers that give a group equally many rows, the smallest is taken.
    """
    batch = problem.outer_batch
    rows = problem.parallel // batch
    if problem.rows_split or not problem.may_split:
        if batch <= most:
            yield batch
        return
    of = vector_period(problem, align)
    shares = min(most // batch, rows) // of * of
    while batch * shares > 1:
        yield batch * (shares if of > 1 else ceil_div(rows, ceil_div(rows, shares)))
        shares = shares // 2 // of * of


def vector_period(problem: Problem, align: int) -> int:
    """The period, in rows, after which rows begin at the same offset inside a vector again."""
    return align // gcd(align, problem.reduced)


# --- what it takes -------------------------------------------------------------------------------


def _seconds(problem: Problem, split: CooperativeSplit) -> float:
    """Seconds of a kernel, and of the one that adds up the partial results of its groups.

    In a step all programs move their parts of a row, while the loads of later steps are in flight.
    A step takes at least the latency of a published sum over ``DELAY_ROWS``.
    """
    device = problem.device
    programs = split.groups * split.parts
    loaded, stored = _element_bytes(problem)
    on_sm = ceil_div(programs, device.sm_count) * split.width
    tiles = 1 + len(split.tails) + (split.align > 1)
    moving = max(
        programs * split.width * (loaded + stored) / device.bandwidth_bytes_per_s,
        on_sm * (2 * loaded + stored) / (SM_BYTES_PER_CLOCK * device.clock_hz),
    )
    waiting = LOAD_S * (MAX_STAGES - _stages(problem, split)) / MAX_STAGES
    reducing = REDUCTION_S * tiles * problem.published_sums
    step = max(moving + reducing + waiting + STEP_S, LEAST_DELAY_S / DELAY_ROWS)
    steps = ceil_div(problem.parallel, split.groups) + DELAY_ROWS
    partial = 2 * 4 * split.groups * problem.reduced * problem.outer_members
    return steps * step + partial / device.bandwidth_bytes_per_s + 2 * device.launch_s


def _seconds_of_rereading(problem: Problem) -> float:
    """Seconds of a kernel along the rows, and of those over them, which read all rows again.

    The first kernel reads rows twice that do not fit in registers. Rows that are already split are
    read a third time. Reads that hit the L2 cache take its bandwidth.
    """
    device = problem.device
    loaded, stored = _element_bytes(problem)
    elements = problem.parallel * problem.reduced
    moved = (loaded + stored) * elements + _read_again(problem, problem.parallel)
    if not fits_registers(problem.reduced * _words(problem)):
        moved += _read_again(problem, PROGRAMS_PER_SM * device.sm_count)
    if problem.rows_split:
        moved += _read_again(problem, problem.parallel)
    return moved / (READ_SHARE * device.bandwidth_bytes_per_s) + 3 * device.launch_s


def _read_again(problem: Problem, between: int) -> float:
    """Bytes of a second read of all rows, in terms of memory: those that hit the L2 cache count by
    its higher bandwidth.

    Parameters
    ----------
    between : int
        Reuse distance, in rows.
    """
    loaded, _ = _element_bytes(problem)
    rows = min(between, problem.parallel)
    kept = min(1.0, problem.device.l2_bytes / (loaded * rows * problem.reduced))
    return loaded * problem.parallel * problem.reduced * (1 - kept + kept / L2_SPEEDUP)


def _words(problem: Problem) -> int:
    """Registers for an element of each tensor that is loaded along rows."""
    return sum(ceil_div(s.item_bytes, 4) for s in problem.full_loads)


def _element_bytes(problem: Problem) -> tuple[int, int]:
    """Bytes that are loaded, and stored, for each element of the rows."""
    loads, stores = problem.full_loads, problem.full_stores
    return sum(s.item_bytes for s in loads), sum(s.item_bytes for s in stores)


# --- the params ----------------------------------------------------------------------------------


def cooperative_params(problem: Problem, chosen: CooperativeSplit) -> InnerOuterPersistentParams:
    """The params of a kernel with this split."""
    return InnerOuterPersistentParams(
        block_m=1,
        block_r=chosen.block,
        tails=(*chosen.tails, *edges_of_part(chosen.align)),
        parts=chosen.parts,
        delay=DELAY_ROWS,
        align=chosen.align,
        max_registers=_residents(problem).registers,
        num_warps=WARPS,
        num_stages=_stages(problem, chosen),
    )


def _stages(problem: Problem, chosen: CooperativeSplit) -> int:
    """Pipeline stages: three, or none, since narrower parts leave room for three. H200, 16384 x
    20480 with two sums over rows: in bfloat16 608 us with 3 stages, 671 with 2, 918 with 1. In
    float32, where 2 nearly fill the shared memory, 1 was 5% faster.
    """
    ahead = (MAX_STAGES - 1) * stage_bytes(problem, chosen.width)
    return MAX_STAGES if ahead <= _residents(problem).stage_bytes else 1
