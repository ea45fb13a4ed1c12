"""Times of several contenders on one GPU, taken in turns, the L2 cache cold."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

Run = Callable[[], Any]
FLUSH_BYTES = 256 << 20
"""More than the L2 cache of any GPU: reading or writing it leaves nothing else there."""
COPY_BYTES = 1 << 31
"""Large enough that the copy's launch does not show."""
BUDGET = 0.25
"""Seconds on the GPU for a case, its contenders together."""
FEWEST, MOST = 9, 40
"""Rounds."""
CLOCK = 2e9
"""Cycles a second of a GPU, roughly: the length of a pause depends on it, and nothing else."""


@dataclass(frozen=True)
class Times:
    """Seconds of a call: the median, and the quartiles."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The distance of the quartiles, as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


def quartiles(found: Sequence[float]) -> Times:
    """Of two times or more."""
    low, median, high = statistics.quantiles(found, n=4, method="inclusive")
    return Times(median, low, high)


def copy_bandwidth() -> float:
    """Bytes a second, read and written, of a large device-to-device copy."""
    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda").random_()
    copy = partial(torch.empty_like(source).copy_, source)
    # Twice, since the clocks of a GPU that was idle take a while to rise.
    seconds = min(interleaved({"copy": copy}, "cuda")["copy"].median for _ in "12")
    del source, copy
    torch.cuda.empty_cache()
    return 2 * COPY_BYTES / seconds


def interleaved(runs: Mapping[str, Run], device: str) -> dict[str, Times]:
    """The times of each run: in every round each has one turn, and another is first.

    Warm up before. Without a GPU the clock is the host's, and few rounds have to do.
    """
    if not runs:
        return {}
    if device != "cuda":
        return {name: quartiles([host_seconds(run) for _ in "123"]) for name, run in runs.items()}
    with collected():
        meter = _Meter()
        pauses = {name: meter.pause(run) for name, run in runs.items()}
        once = [meter.seconds(run, pauses[name]) + meter.flush for name, run in runs.items()]
        rounds = min(max(math.ceil(BUDGET / sum(once)), FEWEST), MOST)
        return {
            name: quartiles(found) for name, found in meter.rounds(runs, pauses, rounds).items()
        }


def host_seconds(run: Run) -> float:
    """Seconds until a call returns."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def synchronize(device: str) -> None:
    """Wait for a GPU; elsewhere nothing is under way."""
    if device == "cuda":
        torch.cuda.synchronize()


def free(device: str) -> None:
    """Give memory back, of what autograd and compilers hold in cycles too."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


@contextmanager
def collected() -> Iterator[None]:
    """No garbage is collected inside; there may be much of it in a process that compiled."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Meter:
    """Times calls between two CUDA events.

    Before them other memory is read, which leaves the cache without a line of the call's and
    without one to be written back: on an H200 a copy of 64 MiB takes 18.4 us behind it, and 21.0
    behind a fill of the same memory, of which the last 60 MB are written in the time of the copy.
    And the GPU pauses until the host has queued the whole call, so that slow launches do not count
    as time on the GPU.
    """

    def __init__(self) -> None:
        self._other = torch.zeros(FLUSH_BYTES // 4, device="cuda")
        self.flush = self.seconds(self._other.amax, 0)

    def pause(self, run: Run) -> int:
        """Cycles in which the host has surely queued a call."""
        torch.cuda.synchronize()
        host = statistics.median(self._queued(run) for _ in range(3))
        return int(1.5 * host * CLOCK)

    def _queued(self, run: Run) -> float:
        seconds = host_seconds(run)
        torch.cuda.synchronize()
        return seconds

    def seconds(self, run: Run, pause: int) -> float:
        """The median of three calls."""
        return statistics.median(read() for read in [self._take(run, pause) for _ in range(3)])

    def rounds(
        self, runs: Mapping[str, Run], pauses: Mapping[str, int], count: int
    ) -> dict[str, list[float]]:
        """All the times of each run."""
        order = list(runs)
        taken: dict[str, list[Callable[[], float]]] = {name: [] for name in order}
        for number in range(count):
            first = number % len(order)
            for name in order[first:] + order[:first]:
                taken[name].append(self._take(runs[name], pauses[name]))
        return {name: [read() for read in reads] for name, reads in taken.items()}

    def _take(self, run: Run, pause: int) -> Callable[[], float]:
        """Queue a call; what is returned waits for it and reads the clock."""
        cuda: Any = torch.cuda
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        self._other.amax()
        if pause:
            cuda._sleep(pause)
        start.record()
        run()
        end.record()

        def read() -> float:
            end.synchronize()
            return float(start.elapsed_time(end)) * 1e-3

        return read
