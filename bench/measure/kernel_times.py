"""What the kernels of a call take on the GPU, and how many there are: the profiler's word.

The gaps between kernels, which are the host's, are left out; where a kernel starts before the one
before it has ended, the time counts once. Before each call the L2 cache is overwritten, so that a
call finds nothing of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._C._autograd import DeviceType

from .timing import FLUSH_BYTES

_FROM_HOST = "Memcpy HtoD"


@dataclass(frozen=True)
class KernelTimes:
    """Of one call: how many kernels ran, and for how many seconds any of them did."""

    count: float
    seconds: float

    def times(self, calls: int) -> KernelTimes:
        """Of several calls."""
        return KernelTimes(calls * self.count, calls * self.seconds)


def kernel_times(run: Callable[[], Any], calls: int = 10) -> KernelTimes:
    """The mean of some calls; run it once before, so that nothing is compiled here.

    Copies from the host are left out, fills and copies on the GPU count as kernels.
    """
    overwritten = _cache()
    found = _ran(lambda: (overwritten.zero_(), run()), calls)
    own = [ran for ran in found if not _is_foreign(ran.name)]
    return KernelTimes(len(own) / calls, busy((ran.start, ran.end) for ran in own) / calls)


def warm_up() -> None:
    """Start the profiler, which takes a process seconds the first time."""
    _clearing()


def busy(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of the spans lasts."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _is_foreign(name: str) -> bool:
    return name in _clearing() or name.startswith(_FROM_HOST)


@cache
def _clearing() -> frozenset[str]:
    """The names of what overwriting the cache runs, and of the profiler's own entries."""
    return frozenset(ran.name for ran in _ran(_cache().zero_, 1))


def _cache() -> torch.Tensor:
    # Of a type that no program fills: the kernel's name tells it from a program's own.
    return torch.empty(FLUSH_BYTES // 16, dtype=torch.complex128, device="cuda")


@dataclass(frozen=True)
class _Ran:
    """One kernel, by the profiler's clock, in seconds."""

    name: str
    start: float
    end: float


def _ran(run: Callable[[], Any], calls: int) -> list[_Ran]:
    """What ran on the GPU in some calls."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        for _ in range(calls):
            run()
        torch.cuda.synchronize()
    return [
        _Ran(event.name, event.time_range.start * 1e-6, event.time_range.end * 1e-6)
        for event in profile.events()
        if event.device_type != DeviceType.CPU and event.time_range.elapsed_us() > 0
    ]
