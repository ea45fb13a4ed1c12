"""``max_registers`` for loops limited by load latency, so that the loads of a step are hoisted.

Without a limit ptxas aims at full occupancy: 32 registers at 2048 threads of a multiprocessor. If a
step needs more, it serializes loads. A limit allows it more registers at lower occupancy; it takes
no more of them than the loads need.

H200, bfloat16, without a limit and with one: sums of the rows of 168 x 149881 took 68.0 us (32
registers) and 22.9 (47); of 620 x 158025 142 and 63; of the columns of 1128 x 33901 45 and 32 (72
and 80 registers), but 40 with a limit so high that two programs were resident in place of three;
moments of the columns of 1120 x 33901 400 us (80 registers, 32 serialized loads) and 40 (107).
The backward of a softmax over rows of 49 with sums over the rows took 37 us (64 registers: loads of
the next step were issued after the reductions of this one), and 28 (110).
"""

from __future__ import annotations

from functools import lru_cache

from ...device import DeviceProperties
from ..cost.memory.runs import contiguous_run_along
from ..cost.memory.traffic import is_linear
from ..cost.model import KernelTime
from ..cost.registers import allocated_registers, hoisted_registers, registers_for_threads
from ..cost.tiles import KernelTile, tile_of
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

LOWER_OCCUPANCY_FACTOR = 1.5
"""Registers of a limit that lowers occupancy, as a multiple of the predicted ones. Also the least
of a limit for a loop over rows that prefetches: its loads stay in registers all through a step.
H200, 21 backwards of norms and softmaxes with all registers that occupancy leaves: the three that
have such a limit by this rule take 0.75, 0.98 and 1.00 of the time, the others 1.03 (geometric
mean; 0.91 to 1.37)."""

KEPT_OCCUPANCY_FACTOR = 1.25
"""Least registers of a limit that keeps occupancy, as a multiple of the predicted ones."""

ONE_LOAD_FACTOR = 1.1
"""``KEPT_OCCUPANCY_FACTOR`` for kernels that load one tensor: with fewer registers the compiler may
spill."""

COMPUTE_RESOURCES = ("instructions", "special functions")
"""Resources that profit from occupancy more than from loads in flight."""

FEWEST_STEPS = 3
"""Fewest steps of a loop for which occupancy is lowered. With fewer, programs wait mainly for their
first loads and their last sums, which other programs hide. H200, sums of the rows of 5528 x 21851
in two steps and a tail: 68 us with four resident programs, 75 with two."""


@lru_cache(maxsize=4096)
def register_limit_for_loads(problem: Problem, work: ElementWork, params: HeuristicParams) -> int:
    """The register limit with which the loads of a step can be hoisted. 0 for none.

    If all programs are resident, the limit keeps them so. Otherwise it lowers occupancy, for more
    bytes in flight of each program, unless the model predicts that the kernel is compute-bound.
    Programs that loop over rows are always resident.
    """
    if not isinstance(params, KernelParams) or not _loads_to_registers(params):
        return 0
    if not problem.device.limits_registers:
        return 0
    tile = tile_of(problem, params)
    if not tile.loops or tile.steps <= 1:
        return 0
    time = kernel_seconds(problem, params, work)
    return 0 if time is None else _register_limit(problem, params, tile, time)


def _register_limit(
    problem: Problem, params: KernelParams, tile: KernelTile, time: KernelTime
) -> int:
    """The register limit of a loop that loads into registers, by its predicted time."""
    threads = params.num_warps * problem.device.warp_size
    wanted = float(time.registers)
    if not all(_has_one_address(problem, stream, tile) for stream in problem.full_loads):
        # Hoisted loads also need the addresses of single elements, which the model does not count.
        wanted = hoisted_registers(problem, params, wanted)
    share = ceil_div(tile.programs, problem.device.sm_count)
    left = registers_for_threads(problem.device, share * threads)
    if tile.over_rows:
        return _with_all_resident(problem.device, share, threads, LOWER_OCCUPANCY_FACTOR * wanted)
    several = len(problem.full_loads) > 1
    least = (KEPT_OCCUPANCY_FACTOR if several else ONE_LOAD_FACTOR) * wanted
    if left >= (least if several else wanted):
        return _with_all_resident(problem.device, share, threads, least)
    if tile.steps < FEWEST_STEPS:
        return 0
    is_compute_bound = time.limit in COMPUTE_RESOURCES
    factor = 1 if is_compute_bound else LOWER_OCCUPANCY_FACTOR
    limit = _with_fewer_resident(problem.device, threads, wanted * factor)
    hoists = limit >= hoisted_registers(problem, params, wanted)
    return limit if hoists or not is_compute_bound else 0


def _with_all_resident(device: DeviceProperties, share: int, threads: int, least: float) -> int:
    """The limit with which a multiprocessor holds its share of the programs. 0 if that is less than
    ``least``.

    The share is first rounded up to a power of two, so that similar sizes have similar kernels.
    """
    limits = (registers_for_threads(device, n * threads) for n in (next_power_of_2(share), share))
    return next((limit for limit in limits if limit >= least), 0)


def _with_fewer_resident(device: DeviceProperties, threads: int, wanted: float) -> int:
    """The limit with which as many programs are resident as ``wanted`` registers allow."""
    resident = max(device.registers_per_sm // (threads * allocated_registers(wanted)), 1)
    return registers_for_threads(device, resident * threads)


def _loads_to_registers(params: KernelParams) -> bool:
    """Whether steps of a loop load into registers, for themselves or for the next step."""
    if isinstance(params, InnerOuterPersistentParams):
        return params.prefetch
    return isinstance(params, ReductionParams) and params.num_stages == 1


def _has_one_address(problem: Problem, stream: Stream, tile: KernelTile) -> bool:
    """Whether the elements of a tile are at constant offsets from one address, in all tiles.

    If the columns consist of several parts, they are if no tile reaches from one part into the
    next.
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
    """Whether a tensor has one stride along a side of a tile."""
    extents = [problem.axes[place] for place in places if problem.axes[place] > 1]
    run = contiguous_run_along(stream, problem.axes, places)
    if width == 1 or len(extents) <= 1 or run == 0:
        return True
    return (run if run > 1 else extents[-1]) % width == 0
