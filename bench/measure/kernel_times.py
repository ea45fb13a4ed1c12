"""Number and GPU time of the kernels of a call, by torch's profiler.

Gaps between kernels are host time and do not count. Overlapping kernels count once. The L2 cache is
overwritten before each call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import torch
from torch._C._autograd import DeviceType

from .timing import FLUSH_BYTES

_FROM_HOST = "Memcpy HtoD"


@dataclass(frozen=True)
class KernelTimes:
    """Kernels of one call.

    Attributes
    ----------
    count : float
        Kernels per call.
    seconds : float
        Seconds per call during which at least one kernel ran.
    """

    count: float
    seconds: float

    def times(self, calls: int) -> KernelTimes:
        """The kernels of several calls."""
        return KernelTimes(calls * self.count, calls * self.seconds)


def kernel_times(run: Callable[[], Any], calls: int = 10) -> KernelTimes:
    """The mean over ``calls`` calls; call ``run`` once before, so that nothing compiles here.

    Copies from the host do not count; fills and copies on the GPU count as kernels.
    """
    return all_kernel_times({"run": run}, calls)["run"]


def all_kernel_times(
    runs: Mapping[str, Callable[[], Any]], calls: int = 10
) -> dict[str, KernelTimes]:
    """The same of several, whose calls take turns: one start of the profiler for all of them."""
    overwritten = _cache()

    def turn() -> None:
        for run in runs.values():
            overwritten.zero_()
            run()

    return by_turns(list(runs), ran_kernels(turn, calls), _clearing(), calls)


def by_turns(
    names: Sequence[str], found: Iterable[Ran], clearing: Collection[str], calls: int
) -> dict[str, KernelTimes]:
    """Kernels by whose turn they ran in.

    Raises
    ------
    RuntimeError
        There are not as many turns as calls: some of the profiler's records are lost.
    """
    turns = _turns(found, clearing, calls * len(names))
    return {
        name: KernelTimes(
            sum(len(turn) for turn in turns[place :: len(names)]) / calls,
            sum(busy((ran.start, ran.end) for ran in turn) for turn in turns[place :: len(names)])
            / calls,
        )
        for place, name in enumerate(names)
    }


def single_kernel_times(
    runs: Sequence[Callable[[], Any]], calls: int = 7
) -> list[list[tuple[str, float]]]:
    """(name, seconds) of each kernel of several functions: the median over calls, in launch order.

    The calls take turns. A kernel that starts before the one before it has ended counts from that
    end on.

    Raises
    ------
    RuntimeError
        Records of the profiler are lost.
    """
    overwritten = _cache()

    def turn() -> None:
        for run in runs:
            overwritten.zero_()
            run()

    turns = _turns(ran_kernels(turn, calls), _clearing(), calls * len(runs))
    return [medians(turns[place :: len(runs)]) for place in range(len(runs))]


def medians(turns: Sequence[Sequence[Ran]]) -> list[tuple[str, float]]:
    """Name and median seconds of each kernel of a function, by the kernels of each call.

    Raises
    ------
    RuntimeError
        Calls differ in their number of kernels.
    """
    if len({len(turn) for turn in turns}) != 1:
        raise RuntimeError("calls of one function differ in their number of kernels")
    times = [list(_apart(turn)) for turn in turns]
    return [
        (ran.name, median(found[place] for found in times)) for place, ran in enumerate(turns[0])
    ]


def _apart(turn: Sequence[Ran]) -> Iterator[float]:
    """The seconds of each kernel behind the end of those before it."""
    until = float("-inf")
    for ran in turn:
        yield max(0.0, ran.end - max(ran.start, until))
        until = max(until, ran.end)


def _turns(found: Iterable[Ran], clearing: Collection[str], count: int) -> list[list[Ran]]:
    """The kernels of each turn, in order; a kernel that overwrites the cache begins one."""
    turns: list[list[Ran]] = []
    for ran in sorted(found, key=lambda ran: ran.start):
        if ran.name in clearing:
            turns.append([])
        elif turns and not ran.name.startswith(_FROM_HOST):
            turns[-1].append(ran)
    if len(turns) != count:
        raise RuntimeError(f"expected {count} turns in the profiler's records, got {len(turns)}")
    return turns


def warm_up() -> None:
    """Start the profiler once: the first start in a process takes seconds."""
    _clearing()


def busy(spans: Iterable[tuple[float, float]]) -> float:
    """The length of the union of time spans."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


@cache
def _clearing() -> frozenset[str]:
    """Names of the kernels that overwrite the cache, and of the profiler's own entries."""
    return frozenset(ran.name for ran in ran_kernels(_cache().zero_, 1))


def _cache() -> torch.Tensor:
    # No measured program fills complex tensors: the kernel's name identifies it.
    return torch.empty(FLUSH_BYTES // 16, dtype=torch.complex128, device="cuda")


@dataclass(frozen=True)
class Ran:
    """One kernel; start and end in seconds of the profiler's clock."""

    name: str
    start: float
    end: float


def ran_kernels(run: Callable[[], Any], calls: int) -> list[Ran]:
    """The kernels that ran on the GPU during ``calls`` calls."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        for _ in range(calls):
            run()
        torch.cuda.synchronize()
    return [
        Ran(event.name, event.time_range.start * 1e-6, event.time_range.end * 1e-6)
        for event in profile.events()
        if event.device_type != DeviceType.CPU and event.time_range.elapsed_us() > 0
    ]
