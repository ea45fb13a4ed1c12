"""More warps for a tile whose loads might not fit in registers."""

from __future__ import annotations

from collections.abc import Iterator

from ...device import DeviceProperties
from ...lazy import cached_property
from ..cost.axis_order import in_order
from ..cost.constants import constants_of
from ..cost.counts import Number
from ..cost.kernels import Times
from ..cost.least.times import least_of_problem
from ..cost.model import KernelTime, is_as_short, may_exceed
from ..cost.registers import HOISTED_RATIO, register_limit
from ..cost.tiles import Launches
from ..integers import ceil_div
from ..params import HeuristicParams, KernelParams
from ..problem import ElementWork, Problem
from ..streams import Stream
from .near import params_near
from .spaces import SPACES

MOST_WARPS = 16
"""Most warps of a program that is predicted. With more, a thread has 64 registers at most, and the
estimate of registers is too rough for so few."""

MODEL_ERROR = 1.03
"""Ratio of predicted times, each with a launch, that is within the error of the model."""


class Kernels:
    """The kernels of a problem: predicted times, once for each params, and whether they spill."""

    def __init__(self, problem: Problem, work: ElementWork) -> None:
        self.problem = problem
        self.launch_s = constants_of(problem.device).launch_s
        self._times, self._work = Times(problem, work), work
        self._found: dict[HeuristicParams, KernelTime | None] = {}

    def in_order(self, params: KernelParams) -> Kernels:
        """The kernels of the problem with its axes in the order of params."""
        return Kernels(in_order(self.problem, params), self._work)

    @cached_property
    def least_s(self) -> float:
        """A lower bound of the seconds of a kernel, by any params, with a launch."""
        return least_of_problem(self.problem, self._work)

    def time(self, params: HeuristicParams) -> KernelTime | None:
        """The time of a kernel. None without a kernel, and in the interpreter."""
        try:
            return self._found[params]
        except KeyError:
            found = self._found[params] = self._times(params)
            return found

    def may_spill_registers(
        self, params: KernelParams, time: KernelTime, ratio: float = 1.0
    ) -> bool:
        """Whether a kernel may spill: by its predicted registers, or if those with hoisted loads
        exceed ``ratio`` times the limit."""
        hoisted = self._times.hoisted_registers(params, time.registers)
        return time.may_spill or bool(may_exceed(hoisted / ratio, time.register_limit))

    def exceeds_registers(self, params: KernelParams, time: KernelTime) -> bool:
        """Whether a kernel is likely to spill, so that it is not chosen."""
        return self.may_spill_registers(params, time, HOISTED_RATIO)

    def reread_bytes(self, params: KernelParams) -> dict[Stream, float]:
        """Bytes of each tensor that programs load again, after the L2 cache has evicted them."""
        return self._times.reread_bytes(params)

    def sector_refetch_bytes(self, params: KernelParams) -> float:
        """Bytes that a kernel with rows moves again, because the L2 cache evicts the rest of
        partially used sectors before its use."""
        return self._times.sector_refetch_bytes(params)

    def registers_per_element(self, in_registers: bool) -> float:
        """Lower bound of the registers per element of a thread: if it alone exceeds the limit, so
        does ``exceeds_registers``. For the rules' order of axes.

        Parameters
        ----------
        in_registers : bool
            Whether rows stay in registers.
        """
        return self._times.registers_per_element(in_registers)

    def least_seconds(self, many: Launches) -> Number:
        """Lower bounds of the times of kernels, an array, for the rules' order of axes. Infinite
        if the least registers alone make ``exceeds_registers`` true."""
        return self._times.least_seconds(many)

    def within_model_error(self, seconds: float, others: float) -> bool:
        """Whether a kernel is as fast as another, or slower by no more than the model's error."""
        return seconds + self.launch_s <= MODEL_ERROR * (others + self.launch_s)


def are_many_warps(warps: int) -> bool:
    """Whether this is more than ``MOST_WARPS``."""
    return warps > MOST_WARPS


def spread_over_warps(kernels: Kernels, params: HeuristicParams) -> HeuristicParams:
    """Params with enough warps to keep the loads of a tile in registers.

    The tile stays, so the contiguous runs that it reads do too. Warps are added only while the
    model predicts no longer time. A thread with fewer elements takes fewer registers, so as many
    programs are resident and more warps hide latency.

    sm_90, 707 kernels of random definitions: 123 may run out of registers, among them 30 of the 37
    that spill or take more than 160. H200, 371 pairs of measured schedules, one that may run out
    and one with twice its warps: with more warps they took 0.80 times as long (geometric mean; 1.05
    at the ninth decile). Norm backwards with rows in registers took 1.18 by 16 warps in place of 8.
    Predictions of a longer time are right: columns of 1089536 x 112 took 124 us by 8 warps, 93 by 4
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
    """Params with the next legal number of warps whose program has more registers in all."""
    wider = with_warps_beyond(problem, params)
    return next((p for p in wider if _has_more_room(problem.device, p, params)), None)


def with_warps_beyond(problem: Problem, params: KernelParams) -> Iterator[KernelParams]:
    """Params of the same tile with the next legal numbers of warps, up to ``MOST_WARPS``."""
    near = params_near(SPACES[params.scheduler](problem), params, ("num_warps",))
    kernels = (each for each in near if isinstance(each, KernelParams))
    wider = (each for each in kernels if each.num_warps > params.num_warps)
    yield from (each for each in wider if not are_many_warps(each.num_warps))


def _has_more_room(device: DeviceProperties, params: KernelParams, than: KernelParams) -> bool:
    """Whether a program has more registers in all than with other params of fewer warps.

    It has not if these have all registers of a multiprocessor already: H100, nine kernels by 16
    warps in place of 8 took 1.01 times as long (geometric mean), one that then spilled 1.56.
    """
    return _registers(device, params) > _registers(device, than)


def _registers(device: DeviceProperties, params: KernelParams) -> int:
    """Registers of a program by its limit, in units of allocation for a warp."""
    return params.num_warps * ceil_div(register_limit(device, params), 8)
