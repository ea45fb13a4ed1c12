"""Number and GPU time of the kernels of a call, by torch's profiler.

Gaps between kernels are host time and do not count. Overlapping kernels count once. The L2 cache is
overwritten before each call.
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
    overwritten = _cache()
    found = _ran(lambda: (overwritten.zero_(), run()), calls)
    own = [ran for ran in found if not _is_foreign(ran.name)]
    return KernelTimes(len(own) / calls, busy((ran.start, ran.end) for ran in own) / calls)


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


def _is_foreign(name: str) -> bool:
    return name in _clearing() or name.startswith(_FROM_HOST)


@cache
def _clearing() -> frozenset[str]:
    """Names of the kernels that overwrite the cache, and of the profiler's own entries."""
    return frozenset(ran.name for ran in _ran(_cache().zero_, 1))


def _cache() -> torch.Tensor:
    # No measured program fills complex tensors: the kernel's name identifies it.
    return torch.empty(FLUSH_BYTES // 16, dtype=torch.complex128, device="cuda")


@dataclass(frozen=True)
class _Ran:
    """One kernel; start and end in seconds of the profiler's clock."""

    name: str
    start: float
    end: float


def _ran(run: Callable[[], Any], calls: int) -> list[_Ran]:
    """The kernels that ran on the GPU during ``calls`` calls."""
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
