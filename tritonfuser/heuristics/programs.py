"""Programs of a kernel, and whether they keep the device busy."""

from __future__ import annotations

from .integers import ceil_div
from .params import HeuristicParams
from .problem import Problem

IDLE_BYTES = 1 << 19
"""Bytes that a kernel moves from which it matters how many programs do so. Fewer bytes take less
time than one more launch. Results that are stored may still join the kernel."""


def leaves_idle(problem: Problem, programs: int) -> bool:
    """Whether so many programs leave more than a quarter of the SMs without one.

    A kernel that moves less than ``IDLE_BYTES`` needs no more programs than it has.
    """
    if problem.on_cpu or moved_bytes(problem) < IDLE_BYTES:
        return False
    return 4 * programs < 3 * problem.device.sm_count


def programs_of(problem: Problem, params: HeuristicParams) -> int:
    """Programs of a kernel of rows or columns, by its params; 1 of any other."""
    block_x = getattr(params, "block_x", 0)
    return ceil_div(problem.parallel, block_x) if block_x else 1


def moved_bytes(problem: Problem) -> int:
    """Bytes that a kernel reads and writes, each tensor once."""
    return sum(s.total_bytes for s in problem.streams)


def idle_reason(problem: Problem, programs: int) -> str:
    """The reason for refusing a kernel of so many programs."""
    return f"{programs} programs leave {problem.device.sm_count} SMs idle"
