"""Programs of a kernel: whether they keep the device busy, and what the last of them finish."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..device import LAUNCH_S
from .integers import TUNED_WARP_SIZE, ceil_div, next_power_of_2
from .params import HeuristicParams, KernelParams, PointwiseParams, ReductionParams
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


# --- the last programs ---------------------------------------------------------------------------

ARRIVAL_S = 1.2e-6
"""Seconds from the last store of a program until the last program at a counter knows that it is:
a fence, an atomic add in the L2 cache, and the result passed to all threads. H200, in CUDA graphs:
12 reductions of 0.1 to 10 MB took 0.26 us longer so (median) than by a second kernel that starts
while the first one ends: a sum of 0.3 MB 2.76 us instead of 2.46, of the columns of 1215 x 1152
4.46 and 4.20."""

FOLLOWING_S = 0.9e-6
"""Seconds that such a second kernel takes longer, without its own time."""

STEP_S = 0.4e-6
"""Seconds of one more step of a last program: it waits for the L2 cache, and nothing hides that."""

STEP_ELEMENTS = 32
"""Elements that a thread of a last program loads at once, so that it waits seldom."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finishing:
    """What decides whether the last programs of a kernel compute another segment.

    Attributes
    ----------
    problem : Problem
        That of the segment.
    params : KernelParams
        Those that its scheduler proposes for a kernel of its own.
    launch : KernelParams
        Those of the kernel that would finish it.
    counters : int
        How many last programs there are.
    width : int
        Positions of axis x that each of them has.
    divisor : int
        What divides them at all sizes, where tiles have to. 0 where they do not.
    """

    problem: Problem
    params: KernelParams
    launch: KernelParams
    counters: int
    width: int
    divisor: int


def finishing_params(facts: Finishing) -> KernelParams | None:
    """The params by which last programs compute a segment; None where its own kernel is faster.

    A launch is saved, which costs little where kernels overlap. But while the last programs work
    nobody else does: each is taken to move its bytes at the share of the device's bandwidth that a
    multiprocessor has, and to wait for each step behind the first.
    """
    problem, device = facts.problem, facts.problem.device
    if problem.on_cpu:
        return None
    made = _as_last(facts)
    alone = moved_bytes(problem) / max(facts.counters, 1)
    moving = alone * device.sm_count / device.bandwidth_bytes_per_s
    waiting = (_steps(facts, made) - 1) * STEP_S
    saved = FOLLOWING_S if device.overlaps_launches else LAUNCH_S
    return made if ARRIVAL_S + moving + waiting < saved else None


def _steps(facts: Finishing, made: KernelParams) -> int:
    """Steps of a last program, one behind the other."""
    block_x, block_r = (getattr(made, name, 1) for name in ("block_x", "block_r"))
    return ceil_div(facts.width, block_x) * ceil_div(facts.problem.reduced, block_r)


def _as_last(facts: Finishing) -> KernelParams:
    """The params in a launch of other params: large tiles, each for one program alone."""
    launch, made = facts.launch, facts.params
    made = replace(
        made, num_warps=launch.num_warps, max_registers=launch.max_registers, num_stages=1
    )
    room = launch.num_warps * TUNED_WARP_SIZE * STEP_ELEMENTS
    whole = next_power_of_2(facts.width)
    block_x = min(facts.divisor & -facts.divisor or whole, room)
    if isinstance(made, PointwiseParams):
        return replace(made, block_x=block_x, vectorization_factor=0)
    if not isinstance(made, ReductionParams):
        return made
    block_r = min(next_power_of_2(facts.problem.reduced), room // block_x)
    persistent = block_r >= facts.problem.reduced
    return replace(made, block_x=block_x, block_r=block_r, persistent=persistent, tails=(), align=1)
