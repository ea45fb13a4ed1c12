"""Params that are chosen again: the kernel of the first ones takes more registers, or spills.

Chosen are params of the least predicted time, among them those for which the model predicts too few
registers. Fewer programs run at a time then than it expected, there is less to hide what each of
them waits for, or they spill: smaller tiles, or other warps, may be faster. What spills a little
may spill nothing with its loads elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..cost.model import KernelTime, may_exceed
from ..cost.registers import programs_at_once
from ..cost.sides import is_long
from ..params import KernelParams, TransposeParams
from ..problem import ElementWork, Problem
from ..schedulers import kernel_seconds
from .choice import can_vary, much_faster
from .load_registers import limit_for_loads
from .other_prefetch import in_shared_memory, with_other_prefetch
from .thresholds import seconds_to_beat
from .warps import Kernels, with_warps_beyond

SPILLED_MUCH = 32
"""Words that a thread spills from which on the model chooses params again. What spills fewer may
keep them for long. H200: of seven kernels that spill 2 to 30 words six take 1.20 to 1.34 times as
long under the params that the model then prefers, one 0.93 times; of two that spill 48 and 296
words 0.49 and 0.51 times, and the definitions they are of with them."""

FEWER_SPILLED = 16
"""Words of a thread that a kernel of the same tile and more warps has to spill less.

Its threads have fewer elements. H200, backwards of layer norms with dropout in bfloat16, rows of
8193, 8194 and 8200, which spill 29 to 31 words by 8 warps: 0.80, 0.82 and 0.72 of the time by 16,
which spill 2 to 7. Of 26 others, which spill none or few, more warps take 1.06 times as long."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A compiled kernel.

    Attributes
    ----------
    problem : Problem
        What it was scheduled by.
    work : ElementWork
        What it computes.
    params : KernelParams
        Its params, with the register limit that it was compiled with.
    registers : int
        Those that a thread takes. 0 where that is not known.
    spilled : int
        32-bit words that it keeps in memory for want of more.
    """

    problem: Problem
    work: ElementWork
    params: KernelParams
    registers: int
    spilled: int = 0

    @property
    def predicted(self) -> KernelTime | None:
        """The time that the model predicted before. None where it knows none."""
        return kernel_seconds(self.problem, self.params, self.work)

    @property
    def spills_much(self) -> bool:
        """Whether it spills so much that other params may be faster."""
        return self.spilled >= SPILLED_MUCH

    @property
    def factor(self) -> float:
        """The registers that it wants over the predicted ones. 1 where one of both is not known.

        H200, 69 kernels of random definitions that spill 64 to 160 words: they take 0.96 times as
        long as the model predicts by this, beside those of other params that spill none (median).
        """
        time = self.predicted
        wanted = self.registers + (self.spilled if self.spills_much else 0)
        known = time is not None and time.registers and self.registers
        return wanted / float(time.registers) if time is not None and known else 1.0

    @property
    def known_work(self) -> ElementWork:
        """The work, so that the model predicts the registers that this kernel takes."""
        return replace(self.work, registers=self.factor)

    @property
    def seconds(self) -> float:
        """The time that the model predicts, knowing the registers. 0 where it knows none."""
        time = kernel_seconds(self.problem, self.params, self.known_work)
        return 0.0 if time is None else float(time.seconds)

    @property
    def loads_elsewhere(self) -> KernelParams | None:
        """The params of one that spills a little, with the loads that it begins ahead in shared
        memory in the place of registers, or the other way round. None where it begins none, where
        its limit is for one more program, or where the model predicts more time for it.

        H200, backwards of norms of random sizes that spill 2 to 30 words: the eight that spill none
        for it take 0.72 to 0.96 times as long (0.82 in the geometric mean). Six that spill some all
        the same take 0.72 to 1.46 times as long.
        """
        if not self.spilled or self.spills_much or self.leaves_room:
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
    def leaves_room(self) -> bool:
        """Whether its limit leaves registers for more than one program of a multiprocessor, for
        which it may spill."""
        limit, device = self.params.max_registers, self.problem.device
        return bool(limit) and programs_at_once(device, self.params.num_warps, limit) > 1

    @property
    def near(self) -> KernelParams:
        """The params near which others are looked for.

        Without what is found for each of them anew, the order of axes and the limit. Of what spills
        without loads that wait in registers: these wait in shared memory.
        """
        free: dict[str, Any] = {"axes": (), "across": (), "first": "", "max_registers": 0}
        if self.spills_much and self.params.prefetches:
            free |= in_shared_memory(self.problem, self.params)
        free = {name: value for name, value in free.items() if hasattr(self.params, name)}
        return replace(self.params, **free)


def takes_more(kernel: Taken, programs: int) -> bool:
    """Whether a kernel takes more registers than their estimate errs by, so many that fewer
    programs run at a time on a multiprocessor, or many more than there are.

    H200, 230 kernels of random definitions with 4 to 17 measured schedules each: of the heuristics'
    schedules 23 are chosen again among these where they take 1.1 times as many, and 19 taken, at
    0.80 of the time (geometric mean; 0.38 to 1.06). Where fewer programs run alone it is 12, at
    0.77; whatever registers they take 29, at 0.88 (to 1.47).

    Parameters
    ----------
    programs : int
        Programs of the grid for each multiprocessor: no more can run.
    """
    time = kernel.predicted
    if kernel.spills_much:
        return True
    if time is None or kernel.factor <= 1:
        return False
    wanted = min(float(time.registers), float(time.register_limit))
    device, warps = kernel.problem.device, kernel.params.num_warps
    expected, found = (programs_at_once(device, warps, n) for n in (wanted, kernel.registers))
    is_more = not may_exceed(time.registers, kernel.registers)
    return is_more or min(found, programs) < min(expected, programs)


def chosen_again(kernel: Taken, programs: int) -> KernelParams | None:
    """The params that the model chooses now that it knows the registers of a kernel.

    Those of a kernel that spills a little begin loads elsewhere. None where it takes no more than
    expected, and where nothing is much faster. Parameters are those of ``takes_more``.
    """
    if not can_vary(kernel.problem, kernel.params):
        return None
    elsewhere = kernel.loads_elsewhere
    if elsewhere is not None:
        return elsewhere
    if not takes_more(kernel, programs):
        return None
    # What one kernel spills says little of what others want: these are judged by their own.
    work = kernel.work if kernel.spills_much else kernel.known_work
    found = much_faster(kernel.problem, work, kernel.near, kernel.seconds)
    if found is None or has_short_pieces(kernel.problem, found):
        return None
    return replace(found, max_registers=limit_for_loads(kernel.problem, work, found))


def with_more_warps(kernel: Taken, programs: int) -> KernelParams | None:
    """The params of a kernel that spills, with the next number of warps for its tile.

    None where it spills little, where its limit is for one more program, or where the model
    predicts more time for them, whatever the ``programs``.
    """
    problem, params = kernel.problem, replace(kernel.params, max_registers=0)
    if kernel.spilled < FEWER_SPILLED or kernel.leaves_room or not can_vary(problem, params):
        return None
    found = next(with_warps_beyond(problem, params), None)
    kernels = Kernels(problem, kernel.work)
    before, after = kernels.time(params), None if found is None else kernels.time(found)
    if before is None or after is None:
        return None
    alike = kernels.within_model_error(float(after.seconds), float(before.seconds))
    return found if alike else None


def has_short_pieces(problem: Problem, params: KernelParams) -> bool:
    """Whether a tile of two sides has neither a long one, so that all tensors are in short pieces.

    H200, a transposed sum in bfloat16 by tiles of 16 x 16, which take 32 registers in place of 86:
    86.9 us, 71.6 by tiles of 64 x 64.
    """
    if not isinstance(params, TransposeParams):
        return False
    return not is_long(max(params.block_x, params.block_y), problem.narrowest)


def is_much_faster(other: Taken, kernel: Taken) -> bool:
    """Whether the model predicts much less time for another, knowing the registers of both."""
    return other.seconds <= seconds_to_beat(kernel.problem, kernel.seconds)


def why_better(other: Taken, kernel: Taken) -> str:
    """Why a kernel that was chosen for the registers of another is better. Empty where it is not:
    it spills more, if not for one more program, or is not much faster by the model, or spills
    where its loads are elsewhere so that it would not."""
    time = kernel.predicted
    if time is None or (other.spilled > kernel.spilled and not other.leaves_room):
        return ""
    if replace(other.params, max_registers=0) == kernel.loads_elsewhere:
        spills = f"spills nothing, and {kernel.params} {kernel.spilled} words of a thread"
        return "" if other.spilled else spills
    if not is_much_faster(other, kernel):
        return ""
    return (
        f"{1e6 * other.seconds:.3g} us by the cost model, {1e6 * kernel.seconds:.3g} us by "
        f"{kernel.params}, whose kernel takes {kernel.registers} registers a thread, "
        f"{float(time.registers):.0f} predicted"
    )


def why_spills_less(other: Taken, kernel: Taken) -> str:
    """Why a kernel of more warps is better: it spills much less. Empty where not."""
    if other.spilled + FEWER_SPILLED > kernel.spilled:
        return ""
    return f"spills {other.spilled} words of a thread, and {kernel.params} {kernel.spilled}"
