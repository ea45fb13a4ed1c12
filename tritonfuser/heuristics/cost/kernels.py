"""``Times``: the predicted time of any params for one problem (matrix products excepted)."""

from __future__ import annotations

from ...lazy import cached_property
from ..params import HeuristicParams, KernelParams
from ..problem import ElementWork, Problem
from ..streams import Stream
from .axis_order import in_order
from .constants import constants_of
from .counting import Counting
from .model import FILLED, KernelTime, kernel_time, least_time, may_exceed, wanted_registers


class Times:
    """The times of the kernels of a problem by the model: facts are counted once for all params."""

    def __init__(self, problem: Problem, work: ElementWork) -> None:
        self._problem, self._work = problem, work
        self._constants = constants_of(problem.device)
        self._orders: dict[tuple[object, object], Counting] = {}

    @cached_property
    def _of_problem(self) -> Counting:
        """The counts of the problem with its axes as they are."""
        return Counting(self._problem, self._work)

    def __call__(self, params: HeuristicParams) -> KernelTime | None:
        """The time of the kernel of these params. None where none runs, and in the interpreter.

        A reduction of no elements, or a result of none, takes the time of its start.
        """
        if not isinstance(params, KernelParams) or self._problem.on_cpu:
            return None
        counts = self._counting(params).counts(params)
        return kernel_time(counts, self._problem.device, self._constants)

    def registers_each(self, in_registers: bool) -> float:
        """Registers that an element takes at least, with the share that has to be free.

        Parameters
        ----------
        in_registers : bool
            Whether rows stay in registers. Others are read by loops.
        """
        counting = self._of_problem
        return counting.registers_each(self._constants, in_registers) / FILLED

    def least(self, params: KernelParams) -> KernelTime:
        """A time that the kernel is not predicted to be below, and the least registers, however
        threads lie along memory. It takes less to find than the time."""
        counts = self._counting(params).least(params)
        registers = float(wanted_registers(counts, self._constants))
        return least_time(counts, registers, self._problem.device, self._constants)

    def least_seconds(self, params: KernelParams) -> float | None:
        """Seconds of ``least``. None where the least registers may exceed the limit if all loads of
        a step are issued first."""
        counting, device = self._counting(params), self._problem.device
        counts = counting.least(params)
        registers = float(wanted_registers(counts, self._constants))
        if may_exceed(counting.most_registers(params, registers), counts.register_limit):
            return None
        return float(least_time(counts, registers, device, self._constants).seconds)

    def reread_bytes(self, params: KernelParams) -> dict[Stream, float]:
        """Bytes of tensors that programs of rows load again, and that the L2 cache has lost."""
        return self._counting(params).reread_bytes(params)

    def most_registers(self, params: KernelParams, wanted: float) -> float:
        """Registers of a thread if all loads of a step are issued first: see ``LoadedAtOnce``."""
        return self._counting(params).most_registers(params, wanted)

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
