"""``max_registers`` for loops that wait for loads, so that all loads of a step are issued first.

Where nobody says how many registers a thread may have, ptxas takes few enough that all threads of a
multiprocessor have room, 32 at 2048 threads, and where a step needs more it begins one load after
another. A limit says that fewer threads may have more; it takes no more of them than loads need.

H200, bfloat16: sums of the rows of 168 x 149881 took 68.0 us without a limit (32 registers), 22.9
with one (47); of 620 x 158025 142 and 63; of the columns of 1128 x 33901 45 and 32 (72 and 80
registers), but 40 with a limit so high that two programs ran at a time in the place of three;
moments of the columns of 1120 x 33901 400 us (80 registers, 32 loads one by one) and 40 (107).
The backward of a softmax over rows of 49 with sums over the rows took 37 us (64 registers: loads of
the next step were begun behind the reductions of this one), and 28 (110).
"""

from __future__ import annotations

from functools import lru_cache

from ...device import DeviceProperties
from ..cost.footprint import contiguous_run_along
from ..cost.registers import most_registers, registers_given, registers_left
from ..cost.tiles import KernelTile, tile_of
from ..cost.traffic import is_linear
from ..integers import ceil_div, next_power_of_2
from ..params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    KernelParams,
    ReductionParams,
)
from ..problem import ElementWork, Problem
from ..schedulers import kernel_seconds
from ..streams import Stream

MOST_OFF = 1.5
"""A limit that lets fewer programs be resident leaves this many times the predicted registers, as
does one for a loop over rows that begins the loads of the next step: those wait in registers all
through a step. H200, 21 backwards of norms and softmaxes under all registers that there is room
for: the three that have such a limit by this take 0.75, 0.98 and 1.00 of the time, the others 1.03
(geometric mean; 0.91 to 1.37)."""

ENOUGH = 1.25
"""A limit is set where it leaves at least this many times the predicted registers."""

LEAST_OFF = 1.1
"""``ENOUGH`` where one tensor is read: with fewer registers than that the compiler may spill."""

BUSY = ("instructions", "special functions")
"""Resources that need warps more than loads on their way: with more registers there are fewer."""

FEWEST_STEPS = 3
"""Steps from which on it pays that fewer programs run at a time. Short ones wait for their first
loads and their last sums, which others hide. H200, sums of the rows of 5528 x 21851 in two steps
and a tail: 68 us by four programs at a time, 75 by two."""


@lru_cache(maxsize=4096)
def limit_for_loads(problem: Problem, work: ElementWork, params: HeuristicParams) -> int:
    """The limit on registers with which the loads of a step can be begun together. 0 for none.

    Programs that all run at a time have what their number leaves, so that they still do. Of more
    programs fewer run at a time, each with more bytes on their way; unless what the model says
    they do most is to compute. Programs that loop over rows are as many as run at a time.
    """
    if not isinstance(params, KernelParams) or not _loads_to_registers(params):
        return 0
    if not problem.device.limits_registers:
        return 0
    tile = tile_of(problem, params)
    if not tile.loops or tile.steps <= 1:
        return 0
    time = kernel_seconds(problem, params, work)
    if time is None:
        return 0
    threads = params.num_warps * problem.device.warp_size
    wanted = float(time.registers)
    if not all(_has_one_address(problem, stream, tile) for stream in problem.full_loads):
        # Addresses of single elements are begun together too: what is loaded is not all.
        wanted = most_registers(problem, params, wanted)
    share = ceil_div(tile.programs, problem.device.sm_count)
    left = registers_left(problem.device, share * threads)
    if tile.over_rows:
        return _with_all_resident(problem.device, share, threads, MOST_OFF * wanted)
    several = len(problem.full_loads) > 1
    least = (ENOUGH if several else LEAST_OFF) * wanted
    if left < (least if several else wanted):
        if tile.steps < FEWEST_STEPS:
            return 0
        waits = time.limit not in BUSY
        taken = registers_given(wanted * (MOST_OFF if waits else 1))
        together = max(problem.device.registers_per_sm // (threads * taken), 1)
        left = registers_left(problem.device, together * threads)
        return left if waits or left >= most_registers(problem, params, wanted) else 0
    return _with_all_resident(problem.device, share, threads, least)


def _with_all_resident(device: DeviceProperties, share: int, threads: int, least: float) -> int:
    """The limit with which a multiprocessor has room for its share of the programs. 0 where that
    leaves less than ``least``.

    That of powers of two first, so that sizes which are alike have kernels that are.
    """
    limits = (registers_left(device, n * threads) for n in (next_power_of_2(share), share))
    return next((limit for limit in limits if limit >= least), 0)


def _loads_to_registers(params: KernelParams) -> bool:
    """Whether steps of a loop load what the next instructions, or the next step, take."""
    if isinstance(params, InnerOuterPersistentParams):
        return params.prefetch
    return isinstance(params, ReductionParams) and params.num_stages == 1


def _has_one_address(problem: Problem, stream: Stream, tile: KernelTile) -> bool:
    """Whether the elements of a tile are at offsets from one address, which all tiles have alike.

    Of parts of columns side by side they are where no tile reaches from one part into the next.
    """
    if is_linear(problem, stream):
        return True
    if stream.x_stride is None or stream.r_stride is None:
        return False
    if any(term.div > 1 or term.is_indexed for term in stream.stride_terms):
        return False
    sides = zip(problem.places, (tile.x, tile.r), strict=True)
    return all(_has_one_stride(problem, stream, places, width) for places, width in sides)


def _has_one_stride(problem: Problem, stream: Stream, places: tuple[int, ...], width: int) -> bool:
    """Whether neighbours of a tile along one side are equally far apart in memory."""
    extents = [problem.axes[place] for place in places if problem.axes[place] > 1]
    run = contiguous_run_along(stream, problem.axes, places)
    if width == 1 or len(extents) <= 1 or run == 0:
        return True
    return (run if run > 1 else extents[-1]) % width == 0
