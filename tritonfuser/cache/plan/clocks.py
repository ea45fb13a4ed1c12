"""Clocks for the steps of a run: CUDA events on a GPU, the host's own clock on a CPU."""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch

HOLD_CYCLES = 100_000
HOLD_CYCLES_A_STEP = 60_000
"""How long the GPU waits before a run, so that the host has queued all of it: 50 us, 30 us a step.

Else a short kernel would seem to take as long as its launch does on the host.
"""

DEFAULT_STREAM = 7
"""What CUPTI and the traces of torch.profiler call the default stream."""


class Clock(Protocol):
    """Given to the timed variant of a plan's function, which starts and stops it by step."""

    def start(self, step: int) -> None:
        """Just before a step."""

    def stop(self, step: int) -> None:
        """Just after a step."""

    def finish(self) -> None:
        """Behind the last step."""

    def total(self) -> float:
        """Seconds of the whole run."""

    def seconds(self) -> tuple[float, ...]:
        """Seconds of each step."""

    @property
    def stream(self) -> int:
        """Where the steps ran: the number of a stream."""


class HostClock:
    """Steps that are done when they return."""

    stream = 0

    def __init__(self, steps: int) -> None:
        self._starts = [0.0] * steps
        self._took = [0.0] * steps
        self._began = time.perf_counter()
        self._ended = self._began

    def start(self, step: int) -> None:
        self._starts[step] = time.perf_counter()

    def stop(self, step: int) -> None:
        self._took[step] = time.perf_counter() - self._starts[step]

    def finish(self) -> None:
        self._ended = time.perf_counter()

    def total(self) -> float:
        return self._ended - self._began

    def seconds(self) -> tuple[float, ...]:
        return tuple(self._took)


class EventClock:
    """Steps that a GPU does later: events in its stream, read when all of them have passed."""

    def __init__(self, steps: int, device: torch.device) -> None:
        self._stream = torch.cuda.current_stream(device)
        self._starts = [_event() for _ in range(steps)]
        self._stops = [_event() for _ in range(steps)]
        self._began, self._ended = _event(), _event()
        with torch.cuda.device(device):
            hold: Any = torch.cuda._sleep
            hold(HOLD_CYCLES + HOLD_CYCLES_A_STEP * steps)
        self._began.record(self._stream)

    def start(self, step: int) -> None:
        self._starts[step].record(self._stream)

    def stop(self, step: int) -> None:
        self._stops[step].record(self._stream)

    def finish(self) -> None:
        self._ended.record(self._stream)

    def total(self) -> float:
        self._ended.synchronize()
        return _seconds(self._began, self._ended)

    def seconds(self) -> tuple[float, ...]:
        self._ended.synchronize()
        return tuple(_seconds(a, b) for a, b in zip(self._starts, self._stops, strict=True))

    @property
    def stream(self) -> int:
        return int(self._stream.cuda_stream) or DEFAULT_STREAM


def clock_for(device: torch.device, steps: int) -> Clock:
    """The clock of a device, running."""
    return HostClock(steps) if device.type == "cpu" else EventClock(steps, device)


def _event() -> Any:
    made: Any = torch.cuda.Event
    return made(enable_timing=True)


def _seconds(start: Any, stop: Any) -> float:
    return float(start.elapsed_time(stop)) * 1e-3
