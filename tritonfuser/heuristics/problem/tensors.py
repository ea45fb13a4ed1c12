"""``TensorFacts``: what schedulers ask of the tensors of a kernel: widths, bytes, directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...device import SECTOR_BYTES, WORD_BYTES, DeviceProperties
from ...lazy import cached_property
from ..streams import Stream

MANY_LOADS = 5
"""From so many loaded tensors on, a thread of a flat kernel has fewer elements: one vector of each
tensor. H200, rotary embedding of 8 x 4096 x 32 x 128: 166 us with 8 warps and one vector, 175
with 4 and several; its backward 170 and 198. Where tiles have two sides, each load along another
side has addresses of its own: with 16 elements, kernels of 8 loads and more took 128 to 255
registers."""

L2_SPEEDUP = 2
"""Bandwidth of the L2 cache as a multiple of that of memory, about: on an H100, 64 bytes a clock
for each multiprocessor, over the bandwidth of a copy."""


@dataclass(frozen=True, kw_only=True)
class TensorFacts:
    """The tensors of a kernel, and what follows from them and the device alone.

    Derived facts are cached properties: choosing params asks for some of them dozens of times.

    Attributes
    ----------
    streams : tuple of Stream
        The tensors that are read and written, without stored results of reductions.
    results : tuple of Stream
        The stored results of reductions along rows, one element for each row. Their bytes are part
        of ``Problem.result_bytes``.
    device : DeviceProperties
        The device to schedule for.
    """

    streams: tuple[Stream, ...] = ()
    results: tuple[Stream, ...] = ()
    device: DeviceProperties

    @cached_property
    def on_cpu(self) -> bool:
        """The kernel runs in Triton's interpreter."""
        return self.device.is_cpu

    @cached_property
    def gathers(self) -> bool:
        """Whether a tensor is read at indices of another one."""
        return any(stream.held_bytes for stream in self.streams)

    @cached_property
    def moved_bytes(self) -> int:
        """Bytes that the kernel reads and writes, each element once."""
        return sum(s.fetched_bytes for s in self.streams)

    @cached_property
    def narrowest(self) -> int:
        """Bytes of the smallest item of the tensors that run along x."""
        return min((s.item_bytes for s in self.streams if s.along_x), default=4)

    @cached_property
    def widest(self) -> int:
        """Bytes of the largest item of all tensors."""
        return max((s.item_bytes for s in self.streams), default=4)

    @cached_property
    def has_many_loads(self) -> bool:
        """Whether threads of a flat kernel should have few elements of each tensor."""
        return sum(not stream.is_store for stream in self.streams) >= MANY_LOADS

    @cached_property
    def full_streams(self) -> tuple[Stream, ...]:
        """The tensors that run along both axes."""
        return tuple(s for s in self.streams if s.along_x and s.along_r)

    @cached_property
    def full_loads(self) -> tuple[Stream, ...]:
        """The loaded tensors among ``full_streams``."""
        return tuple(s for s in self.full_streams if not s.is_store)

    @cached_property
    def full_stores(self) -> tuple[Stream, ...]:
        """The stored tensors among ``full_streams``."""
        return tuple(s for s in self.full_streams if s.is_store)

    @cached_property
    def loaded_words(self) -> float:
        """Registers for what is loaded at one position of both axes; 16-bit elements take half of
        one."""
        return sum(max(s.item_bytes / WORD_BYTES, 0.5) for s in self.full_loads)

    @cached_property
    def large_streams(self) -> tuple[Stream, ...]:
        """The full streams with at least a quarter of the bytes of the largest one."""
        full = self.full_streams
        most = max((s.total_bytes for s in full), default=0)
        return tuple(s for s in full if 4 * s.total_bytes >= most)

    @cached_property
    def large_loads(self) -> tuple[Stream, ...]:
        """The loaded tensors among ``large_streams``."""
        return tuple(s for s in self.large_streams if not s.is_store)

    @cached_property
    def inner(self) -> bool:
        """Whether most of the bytes are contiguous along axis r."""
        full = self.full_streams
        along_r = sum(s.total_bytes for s in full if s.r_stride == 1)
        along_x = sum(s.total_bytes for s in full if s.x_stride == 1)
        return along_r >= along_x

    @cached_property
    def crossing_streams(self) -> tuple[Stream, ...]:
        """The large tensors that are contiguous along the other axis than most of the bytes."""
        inner = self.inner
        steps = ((s, s.x_stride if inner else s.r_stride) for s in self.large_streams)
        return tuple(s for s, step in steps if step == 1)

    @cached_property
    def crosses(self) -> bool:
        """Whether a large tensor is contiguous along the other axis than most of the bytes.

        A program with one row would fetch a sector for each element of it, at best from the L2
        cache, where programs of other rows fetched it. Tensors for which that takes less time than
        a launch do not count.
        """
        launch = self.device.launch_s
        return not self.on_cpu and self._seconds_of_sectors(self.crossing_streams) > launch

    @property
    def crossing_loses(self) -> bool:
        """Whether fetching these sectors takes longer than separate kernels with other tiles, which
        read all tensors once more."""
        once = self.moved_bytes / self.device.bandwidth_bytes_per_s
        return self.crosses and self._seconds_of_sectors(self.crossing_streams) > once

    @property
    def scatters(self) -> bool:
        """Whether a large tensor is contiguous along the innermost positions of neither axis.

        Any tile then fetches a sector for each of its elements. As for ``crosses``,
        tensors for which that takes less time than a launch do not count.
        """
        known = [s for s in self.large_streams if s.x_stride and s.r_stride]
        strided = [s for s in known if 1 not in (s.x_stride, s.r_stride)]
        return not self.on_cpu and self._seconds_of_sectors(strided) > self.device.launch_s

    def _seconds_of_sectors(self, streams: Sequence[Stream]) -> float:
        """Seconds to fetch one sector for each element of tensors, from the L2 cache."""
        fetched = sum(s.total_bytes * SECTOR_BYTES // s.item_bytes for s in streams)
        return fetched / (L2_SPEEDUP * self.device.bandwidth_bytes_per_s)

    def max_stages(self, elements: int) -> int:
        """Most pipeline stages of a loop with ``elements`` a step that fit in shared memory.

        The loads of all stages but one are in flight.
        """
        room = self.device.stage_bytes_per_block
        step = elements * sum(s.item_bytes for s in self.full_loads)
        return 1 + room // max(step, 1)
