"""Interleaved timing of several calls on one GPU with a cold L2 cache."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

Run = Callable[[], Any]
FLUSH_BYTES = 256 << 20
"""Larger than the L2 cache of any GPU: reading this much evicts everything else."""
GPU_SECONDS_PER_CASE = 0.25
"""GPU seconds per case, for all contenders together."""
MIN_ROUNDS, MAX_ROUNDS = 9, 40
"""Least and most rounds."""
CYCLES_PER_SECOND = 2e9
"""Approximate GPU clock in Hz; used only for the length of the pause before a call."""


@dataclass(frozen=True)
class Times:
    """Seconds per call: the median and the quartiles."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The interquartile range over the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


def quartiles(found: Sequence[float]) -> Times:
    """The median and quartiles of at least two times."""
    low, median, high = statistics.quantiles(found, n=4, method="inclusive")
    return Times(median, low, high)


def interleaved(
    runs: Mapping[str, Run], device: str, rounds: int | None = None
) -> dict[str, Times]:
    """Time several calls in rounds: each call runs once a round, and the first one rotates.

    The calls must be warm. Without a GPU the host's clock and three rounds are used.

    Parameters
    ----------
    rounds : int, optional
        At least 2. By default as many as take ``GPU_SECONDS_PER_CASE`` in all.
    """
    if not runs:
        return {}
    if device != "cuda":
        return {name: quartiles([host_seconds(run) for _ in "123"]) for name, run in runs.items()}
    with collected():
        meter = _Meter()
        pauses = {name: meter.pause(run) for name, run in runs.items()}
        if rounds is None:
            once = [meter.seconds(run, pauses[name]) + meter.flush for name, run in runs.items()]
            rounds = min(max(math.ceil(GPU_SECONDS_PER_CASE / sum(once)), MIN_ROUNDS), MAX_ROUNDS)
        return {
            name: quartiles(found) for name, found in meter.rounds(runs, pauses, rounds).items()
        }


def host_seconds(run: Run) -> float:
    """Seconds until a call returns."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def synchronize(device: str) -> None:
    """Wait for the GPU; does nothing for a CPU."""
    if device == "cuda":
        torch.cuda.synchronize()


def free(device: str) -> None:
    """Release cached memory, including tensors in reference cycles of autograd and compilers."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


@contextmanager
def collected() -> Iterator[None]:
    """Context without garbage collection, which is slow in a process that has compiled."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Meter:
    """Times calls between two CUDA events.

    Before the call other memory is read, which evicts the call's lines from L2 and leaves no dirty
    lines. H200: a copy of 64 MiB takes 18.4 us after such a read, and 21.0 us after a fill, whose
    last 60 MB are written back during the copy. Then the GPU sleeps until the host has queued the
    whole call, so that launch overhead does not count as GPU time.
    """

    def __init__(self) -> None:
        self._other = torch.zeros(FLUSH_BYTES // 4, device="cuda")
        self.flush = self.seconds(self._other.amax, 0)

    def pause(self, run: Run) -> int:
        """GPU cycles to sleep while the host queues a call."""
        torch.cuda.synchronize()
        host = statistics.median(self._queued(run) for _ in range(3))
        return int(1.5 * host * CYCLES_PER_SECOND)

    def _queued(self, run: Run) -> float:
        seconds = host_seconds(run)
        torch.cuda.synchronize()
        return seconds

    def seconds(self, run: Run, pause: int) -> float:
        """The median seconds of three calls."""
        return statistics.median(read() for read in [self._take(run, pause) for _ in range(3)])

    def rounds(
        self, runs: Mapping[str, Run], pauses: Mapping[str, int], count: int
    ) -> dict[str, list[float]]:
        """The seconds of every call in every round, by name."""
        order = list(runs)
        taken: dict[str, list[Callable[[], float]]] = {name: [] for name in order}
        for number in range(count):
            first = number % len(order)
            for name in order[first:] + order[:first]:
                taken[name].append(self._take(runs[name], pauses[name]))
        return {name: [read() for read in reads] for name, reads in taken.items()}

    def _take(self, run: Run, pause: int) -> Callable[[], float]:
        """Queue a call; the returned function waits for it and returns its seconds."""
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
