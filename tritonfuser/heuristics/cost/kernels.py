"""``Times``: the predicted time of any params for one problem (matrix products excepted)."""

from __future__ import annotations

from ..params import HeuristicParams, KernelParams
from ..problem import ElementWork, Problem
from ..streams import Stream
from .axis_order import in_order
from .constants import constants_of
from .counting import Counting
from .model import KernelTime, kernel_time, wanted_registers


class Times:
    """The times of the kernels of a problem by the model: facts are counted once for all params."""

    def __init__(self, problem: Problem, work: ElementWork) -> None:
        self._problem, self._work = problem, work
        self._constants = constants_of(problem.device)
        self._orders: dict[tuple[object, object], Counting] = {}

    def __call__(self, params: HeuristicParams) -> KernelTime | None:
        """The time of the kernel of these params. None where none runs, and in the interpreter.

        A reduction of no elements, or a result of none, takes the time of its start.
        """
        if not isinstance(params, KernelParams) or self._problem.on_cpu:
            return None
        counts = self._counting(params).counts(params)
        return kernel_time(counts, self._problem.device, self._constants)

    def least_registers(self, params: KernelParams) -> float:
        """Registers that a thread wants at least, however threads lie along memory."""
        return float(wanted_registers(self._counting(params).held(params), self._constants))

    def reread_bytes(self, params: KernelParams) -> dict[Stream, float]:
        """Bytes of tensors that programs of rows load again, and that the L2 cache has lost."""
        return self._counting(params).reread_bytes(params)

    def most_registers(self, params: KernelParams, wanted: float) -> float:
        """Registers of a thread if all loads of a step are issued first: see ``LoadedAtOnce``."""
        return self._counting(params).most_registers(params, wanted)

    def _counting(self, params: KernelParams) -> Counting:
        """The counts of the problem with its axes in the order of the params."""
        order = getattr(params, "axes", ()), getattr(params, "across", ())
        if order not in self._orders:
            self._orders[order] = Counting(in_order(self._problem, params), self._work)
        return self._orders[order]


def predicted(problem: Problem, params: HeuristicParams, work: ElementWork) -> KernelTime | None:
    """The time of one kernel: see ``Times``."""
    return Times(problem, work)(params)
