"""More warps for a tile whose loads might otherwise spill registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...device import DeviceProperties
from ...lazy import cached_property
from ..cost.axis_order import in_order
from ..cost.constants import constants_of
from ..cost.counts import Number
from ..cost.kernels import Times
from ..cost.least.times import least_of_problem
from ..cost.model import KernelTime, is_as_short, may_exceed
from ..cost.registers import LATER, register_limit
from ..cost.tiles import Launches
from ..integers import ceil_div
from ..params import HeuristicParams, KernelParams
from ..problem import ElementWork, Problem
from ..streams import Stream
from .near import params_near
from .spaces import SPACES

MOST_WARPS = 16
"""Warps of a program at most. A thread of more has 64 registers, of which any estimate is rough."""

ALIKE = 1.03
"""Factor within which predicted times, with a launch, are alike."""


class Kernels:
    """The kernels of a problem: predicted times, and whether they may spill.

    Times are found once for each params.
    """

    def __init__(self, problem: Problem, work: ElementWork) -> None:
        self.problem = problem
        self.launch_s = constants_of(problem.device).launch_s
        self._times, self._work = Times(problem, work), work
        self._found: dict[HeuristicParams, KernelTime | None] = {}

    def in_order(self, params: KernelParams) -> Kernels:
        """The kernels whose axes are in the order of params, where it is left to the rules."""
        return Kernels(in_order(self.problem, params), self._work)

    @cached_property
    def least_s(self) -> float:
        """Seconds below which no params are predicted, with a launch."""
        return least_of_problem(self.problem, self._work)

    def time(self, params: HeuristicParams) -> KernelTime | None:
        """The time of a kernel. None where none runs, and in the interpreter."""
        try:
            return self._found[params]
        except KeyError:
            found = self._found[params] = self._times(params)
            return found

    def may_spill_registers(
        self, params: KernelParams, time: KernelTime, times: float = 1.0
    ) -> bool:
        """Whether a kernel may spill: by its predicted registers, or if those with all loads of a
        step issued first exceed ``times`` the limit."""
        most = self._times.most_registers(params, time.registers)
        return time.may_spill or bool(may_exceed(most / times, time.register_limit))

    def exceeds_registers(self, params: KernelParams, time: KernelTime) -> bool:
        """Whether a kernel is likely to spill, so that it is not chosen."""
        return self.may_spill_registers(params, time, LATER)

    def reread_bytes(self, params: KernelParams) -> dict[Stream, float]:
        """Bytes of each tensor that programs load again, after the L2 cache evicted them."""
        return self._times.reread_bytes(params)

    def sector_refetch_bytes(self, params: KernelParams) -> float:
        """Bytes that a kernel with rows moves again, because the L2 cache evicts the rest of
        partially used sectors before its use."""
        return self._times.sector_refetch_bytes(params)

    def registers_each(self, in_registers: bool) -> float:
        """Registers for each element of a thread, of which ``exceeds_registers`` holds where they
        are more than there are. By whether rows stay in registers; for the rules' order of axes."""
        return self._times.registers_each(in_registers)

    def least_seconds(self, params: Sequence[KernelParams]) -> Number:
        """Seconds below which the times of kernels are not predicted, an array: with the axes in
        the order of the rules. Infinite where ``exceeds_registers`` holds already by the least
        registers of a thread."""
        return self._times.least_seconds(params)

    def least_seconds_of_row_kernels(self, many: Launches) -> Number:
        """The same of kernels with rows, whose params need not be made."""
        return self._times.least_seconds_of_row_kernels(many)

    def within_model_error(self, seconds: float, others: float) -> bool:
        """Whether a kernel takes no longer than another by more than the model can tell."""
        return seconds + self.launch_s <= ALIKE * (others + self.launch_s)


def are_many_warps(warps: int) -> bool:
    """Whether this is more than ``MOST_WARPS``, for which registers are estimated."""
    return warps > MOST_WARPS


def spread_over_warps(kernels: Kernels, params: HeuristicParams) -> HeuristicParams:
    """Params with as many warps as keep the loads of a tile in registers.

    Of the same tile, so that it reads the same runs of memory, and as long as the model predicts no
    longer time. With fewer elements in a thread as many programs have room, so there are more warps
    to hide what each of them waits for.

    sm_90, 707 kernels of random definitions: 123 may run out of registers, among them 30 of the 37
    that spill or take more than 160. H200, 371 pairs of measured schedules, one with twice the
    warps of the other, which may run out: with more warps they took 0.80 times as long (geometric
    mean; 1.05 at the ninth decile). Rows kept by 16 warps in place of 8, norm backwards, took 1.18.
    Where a longer time is predicted it is: columns of 1089536 x 112 took 124 us by 8 warps, 93 by 4
    (1.02 times by the model), those of 174080 x 64 took 18.5 by 4, 14 by 2.
    """
    if not isinstance(params, KernelParams):
        return params
    first = now = kernels.time(params)
    while now is not None and kernels.may_spill_registers(params, now):
        more = _with_more_warps(kernels.problem, params)
        now = None if more is None else kernels.time(more)
        if first is None or now is None or more is None:
            break
        if not is_as_short(now.seconds, first.seconds):
            break
        params = more
    return params


def _with_more_warps(problem: Problem, params: KernelParams) -> KernelParams | None:
    """Params with the next legal number of warps that leaves the tile more registers."""
    wider = with_warps_beyond(problem, params)
    return next((p for p in wider if _has_more_room(problem.device, p, params)), None)


def with_warps_beyond(problem: Problem, params: KernelParams) -> Iterator[KernelParams]:
    """Params of the same tile with the next legal numbers of warps, as far as registers are
    estimated for them."""
    near = params_near(SPACES[params.scheduler](problem), params, ("num_warps",))
    kernels = (each for each in near if isinstance(each, KernelParams))
    wider = (each for each in kernels if each.num_warps > params.num_warps)
    yield from (each for each in wider if not are_many_warps(each.num_warps))


def _has_more_room(device: DeviceProperties, params: KernelParams, than: KernelParams) -> bool:
    """Whether the registers of all threads hold more than those of fewer threads.

    Threads of which fewer have all registers of a multiprocessor do not: H100, nine kernels by 16
    warps in place of 8 took 1.01 times as long (geometric mean), one that then spilled 1.56.
    """
    return _registers(device, params) > _registers(device, than)


def _registers(device: DeviceProperties, params: KernelParams) -> int:
    """Registers of a program, in units of 8 a lane, in which they are allocated."""
    return params.num_warps * ceil_div(register_limit(device, params), 8)
