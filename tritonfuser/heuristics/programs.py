"""Numbers of programs: idle SMs, work that last programs do, launches that segments share."""

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
"""A kernel that moves fewer bytes needs no more programs: moving them takes less time than one more
launch. Results that are stored may still join the kernel."""


def leaves_idle(problem: Problem, programs: int) -> bool:
    """Whether so many programs leave more than a quarter of the SMs idle.

    A kernel that moves less than ``IDLE_BYTES`` needs no more programs than it has.
    """
    if problem.on_cpu or problem.moved_bytes < IDLE_BYTES:
        return False
    return share_of_bandwidth(problem, programs) < 1


def share_of_bandwidth(problem: Problem, programs: int) -> float:
    """The share of the memory bandwidth that so many programs reach, one on each SM. Three quarters
    of the SMs reach all of it."""
    return min(4 * max(programs, 1) / (3 * problem.device.sm_count), 1.0)


def are_few(problem: Problem, programs: int) -> bool:
    """Whether there are fewer than four programs for each SM, so that SMs idle while the last
    programs end. Schedulers then give each program less work, where they can."""
    return programs < 4 * problem.device.sm_count


def programs_of(problem: Problem, params: HeuristicParams) -> int:
    """Programs of a kernel of rows or columns, by its params; 1 of any other."""
    block_x = getattr(params, "block_x", 0)
    return ceil_div(problem.parallel, block_x) if block_x else 1


def idle_reason(problem: Problem, programs: int) -> str:
    """The reason for refusing a kernel of so many programs."""
    return f"{programs} programs leave {problem.device.sm_count} SMs idle"


FOLLOWING_S = 0.9e-6
"""Cost of a launch that overlaps with the end of the kernel before it (programmatic dependent
launch), in seconds, without the time of the kernel itself."""


def following_s(device: DeviceProperties) -> float:
    """The cost of one more launch in a row, in seconds, without the time of the kernel itself."""
    return FOLLOWING_S if device.overlaps_launches else device.launch_s


# --- the last programs ---------------------------------------------------------------------------

ARRIVAL_S = 1.2e-6
"""Seconds from the last store of a program until a program knows that it is the last at a counter:
a fence, an atomic add in the L2 cache, and the result passed to all threads. H200, in CUDA graphs:
12 reductions of 0.1 to 10 MB took 0.26 us longer so (median) than by a second kernel that starts
while the first one ends: a sum of 0.3 MB 2.76 us instead of 2.46, of the columns of 1215 x 1152
4.46 and 4.20."""

STEP_S = 0.4e-6
"""Seconds of one more step of a last program: the latency of the L2 cache, which nothing hides."""

STEP_ELEMENTS = 32
"""Elements that a thread of a last program loads at once, so that it has few steps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finishing:
    """Facts that decide whether the last programs of a kernel compute another segment.

    Attributes
    ----------
    problem : Problem
        The problem of the segment.
    params : KernelParams
        The params that its scheduler proposes for a kernel of its own.
    launch : KernelParams
        The params of the kernel whose last programs would compute it.
    counters : int
        Number of arrival counters, each of which has one last program.
    width : int
        Positions of axis x for each last program.
    divisor : int
        A divisor of ``width`` at all sizes, if tiles must divide it; else 0.
    """

    problem: Problem
    params: KernelParams
    launch: KernelParams
    counters: int
    width: int
    divisor: int


def finishing_params(facts: Finishing) -> KernelParams | None:
    """The params for last programs that compute a segment; None if its own kernel is faster.

    Last programs save a launch, which costs little where launches overlap. But while they work, all
    others have ended: each is taken to move its bytes at one SM's share of the bandwidth, and to
    wait for the L2 cache in each step after the first.
    """
    if facts.problem.on_cpu:
        return None
    made = _params_of_last_programs(facts)
    return made if _last_programs_s(facts, made) < following_s(facts.problem.device) else None


def _last_programs_s(facts: Finishing, made: KernelParams) -> float:
    """Seconds from the last store of all other programs to the end of a last program."""
    device = facts.problem.device
    alone = facts.problem.moved_bytes / max(facts.counters, 1)
    moving = alone * device.sm_count / device.bandwidth_bytes_per_s
    return ARRIVAL_S + moving + (_steps(facts, made) - 1) * STEP_S


def _steps(facts: Finishing, made: KernelParams) -> int:
    """Successive steps of a last program."""
    block_x, block_r = (getattr(made, name, 1) for name in ("block_x", "block_r"))
    return ceil_div(facts.width, block_x) * ceil_div(facts.problem.reduced, block_r)


def _params_of_last_programs(facts: Finishing) -> KernelParams:
    """The segment's params in the launch of another kernel: one program has large tiles."""
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
"""Factors by which a program in a shared launch may have fewer, or more, warps than its tile needs.
With fewer, threads need more registers; with more, they have less work and exchange more."""

SHARED_LOSS = 0.02
"""Loss of segments in a shared launch, whose registers are the most of all segments, as a share of
the time of their bytes. H200, in CUDA graphs: the sums of the columns of 8192 x 1024, 3072 and 4096
take 34.3 us by two launches, 42.4 by six; of 256 rows 3.9 by one, 6.9 by three; softmax of 4096 x
1024 and 4096 x 512 7.9 by one, 9.4 by two. All in bfloat16."""

OTHER_WARPS_LOSS = 0.3
"""``SHARED_LOSS`` if a segment has to run with another number of warps. H200: the sums of rows
of 4096 x 1024, a softmax of 2048 x 768 and maxima of 1000 x 333 took 15.1 us by one launch, 14.5
by three."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sharing:
    """Facts that decide whether independent segments share a launch.

    Attributes
    ----------
    launch, other : KernelParams
        The params of the launch, and of the segment that would share it.
    moved : int
        Bytes that all segments of the launch move.
    device : DeviceProperties
        The device.
    """

    launch: KernelParams
    other: KernelParams
    moved: int
    device: DeviceProperties


def saves_by_sharing(facts: Sharing) -> bool:
    """Whether one launch is expected to take less time than two.

    Two successive kernels fill and drain the device twice, even if they overlap. A long kernel
    gains little from avoiding that, and may lose because it shares SMs with another segment.
    """
    if facts.device.is_cpu or facts.launch.max_registers or facts.other.max_registers:
        return False
    warps, wanted = facts.launch.num_warps, facts.other.num_warps
    if _least_warps(facts.other) > MAX_FEWER_WARPS * warps or warps > MAX_MORE_WARPS * wanted:
        return False
    return _shared_s(facts) < following_s(facts.device)


def _shared_s(facts: Sharing) -> float:
    """Seconds that segments lose in a shared launch."""
    same_warps = facts.launch.num_warps == facts.other.num_warps
    loss = SHARED_LOSS if same_warps else OTHER_WARPS_LOSS
    return loss * facts.moved / facts.device.bandwidth_bytes_per_s


def _least_warps(params: KernelParams) -> int:
    """The least warps that a tile needs. For a flat tile, one vector of 32-bit elements a thread:
    it may have more warps only because the device has room for them."""
    vectors = TUNED_WARP_SIZE * VECTOR_BYTES // 4
    if isinstance(params, PointwiseParams):
        return min(max(params.block_x // vectors, 1), params.num_warps)
    return params.num_warps
