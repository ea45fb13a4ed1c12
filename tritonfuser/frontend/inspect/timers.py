"""Clocks that count what runs take, for benchmarks: called, they give cumulative seconds."""

from __future__ import annotations

import time
from typing import Any

import torch

from ...cache.calls import profiling
from ...cache.calls.profiling import Timing


class KernelTimer:
    """Seconds that kernels ran on the GPU, whoever launched them; on a CPU those of the host.

    What pytest-benchmark takes for a ``timer``: the difference of two calls is what the kernels
    between them took. On a GPU they are traced by torch.profiler, which asks CUPTI; where that
    saw none, by CUDA events around what was in the stream.

    Attributes
    ----------
    current_time : float
        What the last call returned.
    """

    def __init__(self) -> None:
        self.current_time = 0.0
        self._trace: Any = None
        self._events: tuple[Any, Any] | None = None
        self._host: float | None = None

    def __call__(self) -> float:
        """Seconds so far."""
        self.current_time += self._stop()
        self._start()
        return self.current_time

    def cleanup(self) -> None:
        """Stop tracing."""
        self._stop()

    def _start(self) -> None:
        if not torch.cuda.is_available():
            self._host = time.perf_counter()
            return
        self._trace = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True
        )
        self._trace.start()
        event: Any = torch.cuda.Event
        self._events = event(enable_timing=True), event(enable_timing=True)
        self._events[0].record()

    def _stop(self) -> float:
        """Seconds since the start; 0 where it was not started."""
        if self._trace is not None and self._events is not None:
            return self._stop_trace(self._trace, self._events)
        started, self._host = self._host, None
        return 0.0 if started is None else time.perf_counter() - started

    def _stop_trace(self, trace: Any, events: tuple[Any, Any]) -> float:
        self._trace = self._events = None
        events[1].record()
        torch.cuda.synchronize()
        trace.stop()
        traced = sum(float(event.self_device_time_total) for event in trace.key_averages())
        return traced * 1e-6 if traced else float(events[0].elapsed_time(events[1])) * 1e-3


class HostTimer:
    """Seconds that calls of definitions took on the host, launches included, kernels not.

    The events that time the kernels of a call are recorded meanwhile: some microseconds each.
    What pytest-benchmark takes for a ``timer``. It listens from its first call to ``cleanup()``.

    Attributes
    ----------
    current_time : float
        What the last call returned.
    """

    def __init__(self) -> None:
        self.current_time = 0.0
        self._took: list[float] = []
        self._listening = False

    def __call__(self) -> float:
        """Seconds so far."""
        if not self._listening:
            self._listening = True
            profiling.add_listener(self._heard)
        took, self._took = self._took, []
        self.current_time += sum(took)
        return self.current_time

    def cleanup(self) -> None:
        """Stop listening."""
        if self._listening:
            self._listening = False
            profiling.remove_listener(self._heard)

    def _heard(self, timing: Timing) -> None:
        self._took.append(timing.host_seconds)
