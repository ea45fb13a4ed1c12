"""``Times``: the predicted time of any params for one problem (matrix products excepted)."""

from __future__ import annotations

from math import inf

import numpy as np

from ...lazy import cached_property
from ..params import HeuristicParams, KernelParams
from ..problem import ElementWork, Problem
from ..streams import Stream
from .axis_order import in_order
from .constants import constants_of
from .counting import Counting
from .counts import Number
from .least.counting import LeastCounting
from .least.times import least_time
from .model import FILLED, KernelTime, kernel_time, may_exceed, wanted_registers
from .numbers import ARRAYS
from .registers import HOISTED_RATIO
from .tiles import Launches


class Times:
    """Predicted times of a problem's kernels. Its facts are counted once for all params."""

    def __init__(self, problem: Problem, work: ElementWork) -> None:
        self._problem, self._work = problem, work
        self._constants = constants_of(problem.device)
        self._orders: dict[tuple[object, object], Counting] = {}

    @cached_property
    def _of_problem(self) -> LeastCounting:
        """The counts of the problem with its axes as they are."""
        return LeastCounting(self._problem, self._work)

    def __call__(self, params: HeuristicParams) -> KernelTime | None:
        """The time of the kernel with these params. None for segments without a kernel, and for
        the interpreter.

        Without elements, the time of the kernel's start is left.
        """
        if not isinstance(params, KernelParams) or self._problem.on_cpu:
            return None
        counts = self._counting(params).counts(params)
        return kernel_time(counts, self._problem.device, self._constants)

    def registers_per_element(self, in_registers: bool) -> float:
        """Lower bound of the registers per element in a kernel that does not spill; with the share
        ``1 - FILLED`` that stays free.

        Parameters
        ----------
        in_registers : bool
            Whether rows stay in registers; otherwise loops read them.
        """
        counting = self._of_problem
        return counting.registers_per_element(self._constants, in_registers) / FILLED

    def least_of(self, many: Launches) -> KernelTime:
        """Lower bounds of the times of kernels and of their registers, as arrays. They are found
        all at once, so much faster than the times."""
        counts = self._of_problem.least_of(many)
        registers = wanted_registers(counts, self._constants, ARRAYS)
        return least_time(counts, registers, self._problem.device, self._constants)

    def least_seconds(self, many: Launches) -> Number:
        """Seconds of ``least_of``. Infinite for kernels that are not chosen because they are likely
        to spill: even the least registers may exceed the limit, or those with hoisted loads exceed
        ``HOISTED_RATIO`` times the limit."""
        least = self.least_of(many)
        hoisted = self._of_problem.hoisted_registers_of(many, least.registers)
        needed = np.maximum(hoisted / HOISTED_RATIO, least.registers)
        return np.where(may_exceed(needed, least.register_limit), inf, least.seconds)

    def reread_bytes(self, params: KernelParams) -> dict[Stream, float]:
        """Bytes of each tensor that programs of a kernel with rows load again, after the L2 cache
        evicted them."""
        return self._counting(params).reread_bytes(params)

    def sector_refetch_bytes(self, params: KernelParams) -> float:
        """Bytes that a kernel with rows moves again, because the L2 cache evicts the rest of
        partially used sectors before its use."""
        return self._counting(params).sector_refetch_bytes(params)

    def hoisted_registers(self, params: KernelParams, wanted: float) -> float:
        """Registers of a thread with hoisted loads: see ``HoistedLoads``."""
        return self._counting(params).hoisted_registers(params, wanted)

    def _counting(self, params: KernelParams) -> Counting:
        """The counts of the problem with its axes in the order of the params."""
        order = getattr(params, "axes", ()), getattr(params, "across", ())
        if not any(order):  # left to the rules
            return self._of_problem
        if order not in self._orders:
            self._orders[order] = Counting(in_order(self._problem, params), self._work)
        return self._orders[order]


def predicted(problem: Problem, params: HeuristicParams, work: ElementWork) -> KernelTime | None:
    """The time of one kernel: see ``Times``."""
    return Times(problem, work)(params)
