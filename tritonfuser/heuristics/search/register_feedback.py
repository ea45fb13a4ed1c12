"""Register feedback: other params for a compiled kernel that takes too many registers, or spills.

The params of the least predicted time tend to be some for which the model predicts too few
registers. Then fewer programs are resident than it expected, so that less latency is hidden, or
threads spill: smaller tiles, or another number of warps, may be faster. A kernel that spills a
little may spill nothing if it prefetches into shared memory instead.
"""

from __future__ import annotations

from dataclasses import replace

from ..cost.model import may_exceed
from ..cost.registers import programs_per_sm
from ..cost.sides import is_long
from ..params import KernelParams, TransposeParams
from ..problem import Problem
from .choice import can_vary, much_faster
from .compiled_registers import CompiledRegisters
from .load_registers import register_limit_for_loads
from .thresholds import seconds_to_beat
from .warps import Kernels, with_warps_beyond

FEWER_SPILLED = 16
"""By how many words of a thread more warps with the same tile must reduce spills: their threads
have fewer elements. H200, backwards of layer norms with dropout in bfloat16, rows of 8193, 8194 and
8200, which spill 29 to 31 words with 8 warps: 0.80, 0.82 and 0.72 of the time with 16, which spill
2 to 7. 26 others, which spill few words or none, take 1.06 times as long with more warps."""


def takes_too_many(kernel: CompiledRegisters, programs: int) -> bool:
    """Whether a kernel exceeds its predicted registers so that fewer programs are resident than
    predicted, or by more than the estimate usually errs; or spills much.

    H200, 230 kernels of random definitions with 4 to 17 measured schedules each. If the heuristics'
    schedules that take 1.1 times the predicted registers are chosen again among the measured ones,
    23 are, of which 19 change, to 0.80 of the time (geometric mean; 0.38 to 1.06). By fewer
    resident programs alone 12 change, to 0.77; whatever registers they take 29, to 0.88 (up to
    1.47).

    Parameters
    ----------
    programs : int
        Programs of the grid for each multiprocessor: no more can be resident.
    """
    time = kernel.predicted
    if kernel.spills_much:
        return True
    if time is None or kernel.register_factor <= 1:
        return False
    wanted = min(float(time.registers), float(time.register_limit))
    device, warps = kernel.problem.device, kernel.params.num_warps
    expected, found = (programs_per_sm(device, warps, n) for n in (wanted, kernel.registers))
    is_more = not may_exceed(time.registers, kernel.registers)
    return is_more or min(found, programs) < min(expected, programs)


def rechosen_params(kernel: CompiledRegisters, programs: int) -> KernelParams | None:
    """The params that the model chooses now that it knows the registers of a kernel.

    A kernel that spills a little gets the other prefetch. None if it takes no more registers than
    expected, or no params are much faster. Parameters are those of ``takes_too_many``.
    """
    if not can_vary(kernel.problem, kernel.params):
        return None
    other_prefetch = kernel.other_prefetch
    if other_prefetch is not None:
        return other_prefetch
    if not takes_too_many(kernel, programs):
        return None
    # The spills of one kernel say little of the registers of others: these keep their estimate.
    work = kernel.work if kernel.spills_much else kernel.corrected_work
    found = much_faster(kernel.problem, work, kernel.start, kernel.seconds)
    if found is None or has_short_pieces(kernel.problem, found):
        return None
    return replace(found, max_registers=register_limit_for_loads(kernel.problem, work, found))


def with_more_warps(kernel: CompiledRegisters, programs: int) -> KernelParams | None:
    """The params of a kernel that spills, with the next number of warps for its tile.

    None for kernels that spill little or are limited for occupancy, and where the model predicts
    more time. It does not depend on ``programs``.
    """
    problem, params = kernel.problem, replace(kernel.params, max_registers=0)
    if kernel.spilled < FEWER_SPILLED or kernel.is_limited_for_occupancy:
        return None
    if not can_vary(problem, params):
        return None
    found = next(with_warps_beyond(problem, params), None)
    kernels = Kernels(problem, kernel.work)
    before, after = kernels.time(params), None if found is None else kernels.time(found)
    if before is None or after is None:
        return None
    alike = kernels.within_model_error(float(after.seconds), float(before.seconds))
    return found if alike else None


def has_short_pieces(problem: Problem, params: KernelParams) -> bool:
    """Whether both sides of a flat tile are short, so that all tensors have short contiguous runs.

    H200, a transposed sum in bfloat16 by tiles of 16 x 16, which take 32 registers in place of 86:
    86.9 us, 71.6 by tiles of 64 x 64.
    """
    if not isinstance(params, TransposeParams):
        return False
    return not is_long(max(params.block_x, params.block_y), problem.narrowest)


def is_much_faster(other: CompiledRegisters, kernel: CompiledRegisters) -> bool:
    """Whether the model predicts much less time for another kernel, by the registers of both."""
    return other.seconds <= seconds_to_beat(kernel.problem, kernel.seconds)


def why_better(other: CompiledRegisters, kernel: CompiledRegisters) -> str:
    """Why a kernel is better than the one whose registers led to it, for a report; empty if it is
    not. It is not if it spills more, unless it is limited for occupancy; if it has the other
    prefetch and still spills; or if it is not much faster by the model."""
    time = kernel.predicted
    if time is None or (other.spilled > kernel.spilled and not other.is_limited_for_occupancy):
        return ""
    if replace(other.params, max_registers=0) == kernel.other_prefetch:
        spills = f"spills nothing, and {kernel.params} {kernel.spilled} words of a thread"
        return "" if other.spilled else spills
    if not is_much_faster(other, kernel):
        return ""
    return (
        f"{1e6 * other.seconds:.3g} us by the cost model, {1e6 * kernel.seconds:.3g} us by "
        f"{kernel.params}, whose kernel takes {kernel.registers} registers a thread, "
        f"{float(time.registers):.0f} predicted"
    )


def why_spills_less(other: CompiledRegisters, kernel: CompiledRegisters) -> str:
    """Why a kernel of more warps is better: it spills much less. Empty if it does not."""
    if other.spilled + FEWER_SPILLED > kernel.spilled:
        return ""
    return f"spills {other.spilled} words of a thread, and {kernel.params} {kernel.spilled}"
