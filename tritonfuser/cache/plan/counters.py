"""Arrival counters of a stream, which kernels with last-program work use.

A kernel finds its counters at zero and leaves them so, and kernels of one stream run one after
another. So a stream has the same counters for all of them, and nothing is filled before a launch. A
kernel in a CUDA graph has counters that nobody else has: a graph is replayed in any stream. They
are cut off memory that was filled before, since a fill would become a part of the graph.

A kernel that does not reach its end leaves the counters anywhere. CUDA then ends the context, and
all memory is lost with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch

FEWEST = 1 << 12
"""Counters of a stream, at least."""

RESERVED = 1 << 18
"""Counters of a device for kernels in graphs: 1 MiB."""

ALIGNED = 32
"""The counters of a kernel begin at a multiple of so many: a cache line."""

_SHARED_HANDLE = 2
"""``cudaStreamPerThread``: one handle for another stream in each thread."""

Counters = tuple[int, object]
"""An address, and what keeps its memory alive."""


class StreamCounters:
    """The counters of one device, called with the handle of its current stream and a number.

    Parameters
    ----------
    device : torch.device
        The device, torch's current one in every call.
    is_captured : function
        Whether the current stream is captured into a CUDA graph.
    """

    def __init__(
        self,
        device: torch.device,
        is_captured: Callable[[], bool] = torch.cuda.is_current_stream_capturing,
    ) -> None:
        self._device = device
        self._is_captured = is_captured
        self._of_streams: dict[int, tuple[torch.Tensor, int, int]] = {}
        self._reserved = self._zeros(RESERVED)
        self._used = iter(range(0, RESERVED, ALIGNED))
        if device.type == "cuda":
            # Graphs are replayed in streams that do not wait for this one.
            torch.cuda.current_stream(device).synchronize()

    def __call__(self, stream: int, count: int) -> Counters:
        """So many counters at zero, for one launch."""
        if self._is_captured():
            return self._for_graph(count)
        found = self._of_streams.get(stream)
        if found is None or found[1] < count:
            return self._new(stream, count)
        return found[2], None

    def left(self) -> int:
        """The sum of all counters, for tests: 0 while no kernel runs."""
        found = [self._reserved, *(made for made, *_ in self._of_streams.values())]
        return sum(int(counters.abs().sum()) for counters in found)

    def _new(self, stream: int, count: int) -> Counters:
        made = self._zeros(max(count, FEWEST))
        if stream != _SHARED_HANDLE:
            self._of_streams[stream] = made, made.numel(), made.data_ptr()
        return made.data_ptr(), made

    def _for_graph(self, count: int) -> Counters:
        """Counters that nobody else has: reserved ones, or filled at each replay."""
        places = [next(self._used, None) for _ in range(-(-max(count, 1) // ALIGNED))]
        first, last = places[0], places[-1]
        together = first is not None and last == first + ALIGNED * (len(places) - 1)
        if first is None or not together:
            made = self._zeros(count)
            return made.data_ptr(), made
        return self._reserved.data_ptr() + first * self._reserved.element_size(), None

    def _zeros(self, count: int) -> torch.Tensor:
        return torch.zeros(count, dtype=torch.int32, device=self._device)


@cache
def counters_on(device: torch.device) -> StreamCounters:
    """The counters of a device, made outside of any capture: where a plan is made."""
    return StreamCounters(device)
