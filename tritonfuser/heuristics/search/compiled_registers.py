"""The registers of a compiled kernel, beside those that the cost model predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..cost.model import KernelTime
from ..cost.registers import programs_per_sm
from ..params import KernelParams
from ..problem import ElementWork, Problem
from ..schedulers import kernel_seconds
from .other_prefetch import in_shared_memory, with_other_prefetch
from .warps import Kernels

SPILLED_MUCH = 32
"""Spilled words of a thread from which on the model chooses params again. Fewer words may be values
that are rarely used. H200: of seven kernels that spill 2 to 30 words six take 1.20 to 1.34 times as
long with the params that the model then prefers, one 0.93 times. Two that spill 48 and 296 words
take 0.49 and 0.51 times as long, as do the definitions that they are of."""


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
