"""Numbers of programs: idle SMs, work of last programs, launches shared by segments."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..device import VECTOR_BYTES, DeviceProperties
from .integers import TUNED_WARP_SIZE, ceil_div, next_power_of_2
from .params import (
    HeuristicParams,
    KernelParams,
    PointwiseParams,
    ReductionParams,
)
from .problem import Problem

IDLE_BYTES = 1 << 19
"""Bytes that a kernel moves from which it matters how many programs do so. Fewer bytes take less
time than one more launch. Results that are stored may still join the kernel."""


def leaves_idle(problem: Problem, programs: int) -> bool:
    """Whether so many programs leave more than a quarter of the SMs without one.

    A kernel that moves less than ``IDLE_BYTES`` needs no more programs than it has.
    """
    if problem.on_cpu or problem.moved_bytes < IDLE_BYTES:
        return False
    return share_of_bandwidth(problem, programs) < 1


def share_of_bandwidth(problem: Problem, programs: int) -> float:
    """The share of the bandwidth of memory that so many programs reach: three quarters of the SMs
    reach all of it."""
    return min(4 * max(programs, 1) / (3 * problem.device.sm_count), 1.0)


def are_few(problem: Problem, programs: int) -> bool:
    """Whether there are fewer than four programs an SM, so that SMs idle while the last ones end.

    Programs are taken to be alike. They have then less to do, where they can.
    """
    return programs < 4 * problem.device.sm_count


def programs_of(problem: Problem, params: HeuristicParams) -> int:
    """Programs of a kernel of rows or columns, by its params; 1 of any other."""
    block_x = getattr(params, "block_x", 0)
    return ceil_div(problem.parallel, block_x) if block_x else 1


def idle_reason(problem: Problem, programs: int) -> str:
    """The reason for refusing a kernel of so many programs."""
    return f"{programs} programs leave {problem.device.sm_count} SMs idle"


FOLLOWING_S = 0.9e-6
"""Seconds that a kernel takes longer which starts while the one before it ends, without its own
time."""


def following_s(device: DeviceProperties) -> float:
    """The cost of one more launch in a row, in seconds, without the time of the kernel itself."""
    return FOLLOWING_S if device.overlaps_launches else device.launch_s


# --- the last programs ---------------------------------------------------------------------------

ARRIVAL_S = 1.2e-6
"""Seconds from the last store of a program until the last program at a counter knows that it is:
a fence, an atomic add in the L2 cache, and the result passed to all threads. H200, in CUDA graphs:
12 reductions of 0.1 to 10 MB took 0.26 us longer so (median) than by a second kernel that starts
while the first one ends: a sum of 0.3 MB 2.76 us instead of 2.46, of the columns of 1215 x 1152
4.46 and 4.20."""

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
    if facts.problem.on_cpu:
        return None
    made = _params_of_last_programs(facts)
    return made if _last_programs_s(facts, made) < following_s(facts.problem.device) else None


def _last_programs_s(facts: Finishing, made: KernelParams) -> float:
    """Seconds from the last store of the others to the end of a last program."""
    device = facts.problem.device
    alone = facts.problem.moved_bytes / max(facts.counters, 1)
    moving = alone * device.sm_count / device.bandwidth_bytes_per_s
    return ARRIVAL_S + moving + (_steps(facts, made) - 1) * STEP_S


def _steps(facts: Finishing, made: KernelParams) -> int:
    """Steps of a last program, one behind the other."""
    block_x, block_r = (getattr(made, name, 1) for name in ("block_x", "block_r"))
    return ceil_div(facts.width, block_x) * ceil_div(facts.problem.reduced, block_r)


def _params_of_last_programs(facts: Finishing) -> KernelParams:
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


# --- programs divided among segments -------------------------------------------------------------

MAX_FEWER_WARPS = 2
MAX_MORE_WARPS = 4
"""Factors by which a program may have fewer warps than its tile is for, or more. With fewer its
threads need more registers; with more they have less to do, and exchange more."""

SHARED_LOSS = 0.02
"""Share of the time of their bytes that segments are taken to lose where the registers of one are
those of all. H200, in CUDA graphs: the sums of the columns of 8192 x 1024, 3072 and 4096 take 34.3
us by two launches, 42.4 by six; of 256 rows 3.9 by one, 6.9 by three; softmax of 4096 x 1024 and
4096 x 512 7.9 by one, 9.4 by two. All in bfloat16."""

OTHER_WARPS_LOSS = 0.3
"""``SHARED_LOSS`` where a segment runs with the number of warps of another. H200: the sums of rows
of 4096 x 1024, a softmax of 2048 x 768 and maxima of 1000 x 333 took 15.1 us by one launch, 14.5
by three."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sharing:
    """What decides whether segments that need nothing of one another share a launch.

    Attributes
    ----------
    launch, other : KernelParams
        Those of the launch, and those of the segment that would share it.
    moved : int
        Bytes that all of them move.
    device : DeviceProperties
        The device.
    """

    launch: KernelParams
    other: KernelParams
    moved: int
    device: DeviceProperties


def saves_by_sharing(facts: Sharing) -> bool:
    """Whether one launch is expected to take less time than two.

    Two kernels in a row fill the device and drain it twice, even where they overlap. One that is
    long gains little by that, and may lose to what it shares a multiprocessor with.
    """
    if facts.device.is_cpu or facts.launch.max_registers or facts.other.max_registers:
        return False
    warps, wanted = facts.launch.num_warps, facts.other.num_warps
    if _least_warps(facts.other) > MAX_FEWER_WARPS * warps or warps > MAX_MORE_WARPS * wanted:
        return False
    return _shared_s(facts) < following_s(facts.device)


def _shared_s(facts: Sharing) -> float:
    """Seconds that segments lose because the registers, or the warps, of one are those of all."""
    alike = facts.launch.num_warps == facts.other.num_warps
    loss = SHARED_LOSS if alike else OTHER_WARPS_LOSS
    return loss * facts.moved / facts.device.bandwidth_bytes_per_s


def _least_warps(params: KernelParams) -> int:
    """The warps that a tile is for. A flat one may have fewer, of a vector of 32-bit elements a
    thread: few elements have more warps for no other reason than that there is room for them."""
    vectors = TUNED_WARP_SIZE * VECTOR_BYTES // 4
    if isinstance(params, PointwiseParams):
        return min(max(params.block_x // vectors, 1), params.num_warps)
    return params.num_warps
