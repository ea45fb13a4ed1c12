"""Register feedback: other params for a compiled kernel that takes too many registers, or spills.

The params of the least predicted time tend to be some for which the model predicts too few
registers. Then fewer programs are resident than it expected, so that less latency is hidden, or
threads spill: smaller tiles, or another number of warps, may be faster. A kernel that spills a
little may spill nothing if it prefetches into shared memory instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..cost.model import KernelTime, may_exceed
from ..cost.registers import programs_per_sm
from ..cost.sides import is_long
from ..params import KernelParams, TransposeParams
from ..problem import ElementWork, Problem
from ..schedulers import kernel_seconds
from .choice import can_vary, much_faster
from .load_registers import register_limit_for_loads
from .other_prefetch import in_shared_memory, with_other_prefetch
from .thresholds import seconds_to_beat
from .warps import Kernels, with_warps_beyond

SPILLED_MUCH = 32
"""Spilled words of a thread from which on the model chooses params again. Fewer words may be values
that are rarely used. H200: of seven kernels that spill 2 to 30 words six take 1.20 to 1.34 times as
long with the params that the model then prefers, one 0.93 times. Two that spill 48 and 296 words
take 0.49 and 0.51 times as long, as do the definitions that they are of."""

FEWER_SPILLED = 16
"""By how many words of a thread more warps with the same tile must reduce spills: their threads
have fewer elements. H200, backwards of layer norms with dropout in bfloat16, rows of 8193, 8194 and
8200, which spill 29 to 31 words with 8 warps: 0.80, 0.82 and 0.72 of the time with 16, which spill
2 to 7. 26 others, which spill few words or none, take 1.06 times as long with more warps."""


@dataclass(frozen=True, slots=True)
class CompiledRegisters:
    """The registers of a compiled kernel, and what the model predicted it by.

    Attributes
    ----------
    problem : Problem
        The facts that it was scheduled by.
    work : ElementWork
        Its instructions.
    params : KernelParams
        Its params, with the register limit that it was compiled with.
    registers : int
        Registers that a thread takes. 0 if that is not known.
    spilled : int
        32-bit words that a thread spills.
    """

    problem: Problem
    work: ElementWork
    params: KernelParams
    registers: int
    spilled: int = 0

    @property
    def predicted(self) -> KernelTime | None:
        """The time that the model predicted by estimated registers. None if it predicts none."""
        return kernel_seconds(self.problem, self.params, self.work)

    @property
    def spills_much(self) -> bool:
        """Whether it spills so much that other params may be faster."""
        return self.spilled >= SPILLED_MUCH

    @property
    def register_factor(self) -> float:
        """Ratio of the registers that it would take without a limit to the predicted ones. 1 if
        either is not known.

        H200, 69 kernels of random definitions that spill 64 to 160 words: they take 0.96 times as
        long as the model predicts by this factor, relative to other params without spills (median).
        """
        time = self.predicted
        wanted = self.registers + (self.spilled if self.spills_much else 0)
        known = time is not None and time.registers and self.registers
        return wanted / float(time.registers) if time is not None and known else 1.0

    @property
    def corrected_work(self) -> ElementWork:
        """The work with the factor by which the model predicts the registers of this kernel."""
        return replace(self.work, registers=self.register_factor)

    @property
    def seconds(self) -> float:
        """The time that the model predicts by the known registers. 0 if it predicts none."""
        time = kernel_seconds(self.problem, self.params, self.corrected_work)
        return 0.0 if time is None else float(time.seconds)

    @property
    def other_prefetch(self) -> KernelParams | None:
        """For a kernel that spills a little: its params with loads prefetched into shared memory in
        place of registers, or the other way round. None for kernels that do not prefetch or are
        limited for occupancy, and where the model predicts more time.

        H200, backwards of norms of random sizes that spill 2 to 30 words: the eight that then spill
        nothing take 0.72 to 0.96 times as long (0.82 in the geometric mean). Six that still spill
        take 0.72 to 1.46 times as long.
        """
        if not self.spilled or self.spills_much or self.is_limited_for_occupancy:
            return None
        found = with_other_prefetch(self.problem, self.params)
        if found is None:
            return None
        kernels, found = Kernels(self.problem, self.work), replace(found, max_registers=0)
        before, after = self.predicted, kernels.time(found)
        if before is None or after is None:
            return None
        alike = kernels.within_model_error(float(after.seconds), float(before.seconds))
        return found if alike else None

    @property
    def is_limited_for_occupancy(self) -> bool:
        """Whether its register limit makes several programs resident; it may spill for that."""
        limit, device = self.params.max_registers, self.problem.device
        return bool(limit) and programs_per_sm(device, self.params.num_warps, limit) > 1

    @property
    def start(self) -> KernelParams:
        """The params that a search for others starts from.

        The order of axes and the register limit are left open, since they are found for each params
        anew. A kernel that spills prefetches into shared memory instead of registers.
        """
        free: dict[str, Any] = {"axes": (), "across": (), "first": "", "max_registers": 0}
        if self.spills_much and self.params.prefetches:
            free |= in_shared_memory(self.problem, self.params)
        free = {name: value for name, value in free.items() if hasattr(self.params, name)}
        return replace(self.params, **free)


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
