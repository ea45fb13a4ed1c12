"""``Problem``: the facts of one kernel that schedulers decide by: extents, memory traffic, device.

A kernel has two axes. Axis x runs over rows, or over all elements of a kernel without reductions.
Axis r runs along a row: over the elements that are reduced or scanned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..device import SECTOR_BYTES, WORD_BYTES, DeviceProperties
from ..lazy import cached_property
from .params import HeuristicParams
from .streams import Stream

RANDOM_WORDS = 4
"""Random words of one Philox counter. Where the length of rows is no multiple of it, they have to
be exchanged between lanes."""

MANY_LOADS = 5
"""From so many loaded tensors on, a thread of a flat kernel has fewer elements: one vector of each
tensor. H200, rotary embedding of 8 x 4096 x 32 x 128: 166 us with 8 warps and one vector, 175
with 4 and several; its backward 170 and 198. Where tiles have two sides, each load along another
side has addresses of its own: with 16 elements, kernels of 8 loads and more took 128 to 255
registers."""

MANY_OPS = 24
"""From so many ops for an element on, a thread has fewer elements too. How many of their results
are live at a time depends on the compiler's order: the cost model counts registers by the logarithm
of the ops."""

L2_SPEEDUP = 2
"""Bandwidth of the L2 cache as a multiple of that of memory, about: on an H100, 64 bytes a clock
for each multiprocessor, over the bandwidth of a copy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Core:
    """The op that a kernel is built around, with a prologue before it and an epilogue after it.

    The base of one class for each such op, which has the op's facts.

    Attributes
    ----------
    scheduler : str
        The name of the scheduler of such kernels.
    words : str
        The name of the op in texts.
    """

    scheduler: ClassVar[str]
    words: ClassVar[str]

    def sizes(self) -> Iterator[int]:
        """The facts that may vary between runs."""
        raise NotImplementedError

    def why_not_params(self, params: HeuristicParams) -> tuple[str, str] | None:
        """None, or why a kernel around the op would be wrong under params, and what to change."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, slots=True)
class ElementWork:
    """Instructions of a kernel for each element of its loop nest, and its reductions.

    Attributes
    ----------
    before, after : float
        Instructions before and after the reductions: of operands of reductions, and of all other
        values. In kernels that read rows more than once, the former are repeated in every pass.
    reducing : float
        Instructions of the reductions.
    special_before, special_after : float
        Those of ``before`` and ``after`` that the special function unit executes.
    reductions : int
        Reductions along rows, and scans.
    carried : int
        Those of ``reductions`` with an accumulator for every element of a step. Means and variances
        have accumulators for each thread instead.
    draws : int
        Random numbers.
    registers : float
        Factor on the registers that the cost model predicts. Above 1 where a compiled kernel of the
        segment took more.
    """

    before: float = 0.0
    after: float = 0.0
    reducing: float = 0.0
    special_before: float = 0.0
    special_after: float = 0.0
    reductions: int = 0
    carried: int = 0
    draws: int = 0
    registers: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One segment as schedulers see it. Extents are hints where sizes vary.

    Derived facts are cached properties: choosing params asks for some of them dozens of times.

    Attributes
    ----------
    parallel : int
        Positions of axis x. 0 or more.
    reduced : int
        Positions of axis r. 1 where nothing is reduced or scanned.
    reduction_depth : int
        Length of the longest chain of reductions along r in which each depends on the one before.
        0 for no reduction.
    reduction_passes : int
        Passes over a row that these reductions take. Fewer than ``reduction_depth`` where results
        of neighbouring rows are reduced (``co_reduced``), which takes no pass. 0 for as many as
        ``reduction_depth``.
    full_outputs : bool
        Some result runs along both axes.
    dependent_outputs, independent_outputs : bool
        Some result along both axes depends on a reduction of the kernel; some does not.
    scans : bool
        The kernel has a scan along r.
    outer_members : int
        Reductions over x (over the rows), which a kernel may have in addition to those along r.
    outer_loops : int
        Successive loops over the rows that these take, together with values that depend on their
        results.
    outer_batch : int
        Extent of the part of x that the reductions over x do not reduce (a batch): each position
        has a result of its own. 1 for none.
    rows_split : bool
        The reductions over x are first steps of split reductions: each reduces one share of the
        rows. The shares are part of ``outer_batch``.
    may_split : bool
        Reductions of the kernel may still be split into two steps.
    shares : float
        Factor on the number of parts that schedulers want for split reductions.
    co_reduced : int
        Number of neighbouring rows whose results are reduced once more, so that one program must
        have all of them. 1 for none.
    order : tuple of tuple of int
        The numbers by which params name the axes of x, outermost first, in groups. Params may
        reorder axes within a group. Empty where the order is fixed.
    axes : tuple of int
        The extents of the axes of the loop nest, outermost first: those that x consists of, then
        those that r consists of.
    row_axes : int
        How many of ``axes``, the last ones, belong to r. 0 for a flat kernel.
    across : tuple of int
        Indices into ``axes`` of those along the second side of a flat kernel's tiles, in the memory
        order of the tensors that are contiguous along them (a transpose). Empty for none.
    crossing : int
        Extent of the axes of ``across`` together. 1 for none.
    result_bytes : int
        Bytes of stored results of reductions.
    streams : tuple of Stream
        The tensors that are read and written, without these results.
    results : tuple of Stream
        The stored results of reductions along rows, one element for each row. Their bytes are part
        of ``result_bytes``.
    ops_per_element : int
        Number of ops of the kernel.
    accumulators : int
        Accumulators of all reductions for each lane: a mean with a variance has 2.
    published_sums : int
        Partial sums that programs which share a row have to exchange for it. 0 where programs
        cannot share rows.
    draws_random : bool
        Random numbers are drawn for each element.
    online_softmax : bool
        The reductions are a maximum and sums of exponentials below it, which one pass computes.
    vector_elements : int
        Elements of a vectorized load, where rows are contiguous but may begin inside vectors, and
        tiles can be shifted to begin at vectors. 1 elsewhere.
    one_run : bool
        Each tensor can be indexed by a single stride along the dims of each reduction: the stride
        of a dim is the stride of the next one times its extent.
    row_varies : bool
        The length of a row varies between runs, so that it is not divided into a block and tails.
    rows_vary : bool
        The number of rows varies between runs.
    core : Core or None
        The op that the kernel is built around. None for most kernels.
    device : DeviceProperties
        The device to schedule for.
    """

    parallel: int
    reduced: int = 1
    reduction_depth: int = 0
    reduction_passes: int = 0
    full_outputs: bool = False
    dependent_outputs: bool = False
    independent_outputs: bool = False
    scans: bool = False
    outer_members: int = 0
    outer_loops: int = 1
    outer_batch: int = 1
    rows_split: bool = False
    may_split: bool = True
    shares: float = 1.0
    co_reduced: int = 1
    order: tuple[tuple[int, ...], ...] = ()
    axes: tuple[int, ...] = ()
    row_axes: int = 0
    across: tuple[int, ...] = ()
    crossing: int = 1
    result_bytes: int = 0
    streams: tuple[Stream, ...] = ()
    results: tuple[Stream, ...] = ()
    ops_per_element: int = 1
    accumulators: int = 1
    published_sums: int = 0
    draws_random: bool = False
    online_softmax: bool = False
    vector_elements: int = 1
    one_run: bool = False
    row_varies: bool = False
    rows_vary: bool = False
    core: Core | None = None
    device: DeviceProperties

    def __hash__(self) -> int:
        return self._key

    @cached_property
    def _key(self) -> int:
        # A few facts in which nearly all problems differ: hashing all of them would be slow.
        tensors = tuple(stream.total_bytes for stream in self.streams)
        return hash((self.axes, self.parallel, self.reduced, self.across, self.order, tensors))

    def sizes(self) -> list[int]:
        """The facts that may vary between runs."""
        found = [self.parallel, self.reduced, self.outer_batch, self.co_reduced, self.crossing]
        found.append(self.result_bytes)
        found += self.axes
        for stream in (*self.streams, *self.results):
            found += stream.sizes()
        if self.core is not None:
            found += self.core.sizes()
        return found

    @cached_property
    def on_cpu(self) -> bool:
        """The kernel runs in Triton's interpreter."""
        return self.device.is_cpu

    @cached_property
    def is_flat(self) -> bool:
        """Whether the kernel has no rows (``axes`` are known, and none belongs to r)."""
        return bool(self.axes) and not self.row_axes

    @cached_property
    def gathers(self) -> bool:
        """Whether a tensor is read at indices of another one."""
        return any(stream.held_bytes for stream in self.streams)

    @cached_property
    def places(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The indices into ``axes`` of those of x, and of those of r."""
        first = len(self.axes) - self.row_axes
        return tuple(range(first)), tuple(range(first, len(self.axes)))

    @cached_property
    def inner(self) -> bool:
        """Whether most of the bytes are contiguous along axis r."""
        full = self.full_streams
        along_r = sum(s.total_bytes for s in full if s.r_stride == 1)
        along_x = sum(s.total_bytes for s in full if s.x_stride == 1)
        return along_r >= along_x

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

    @cached_property
    def moved_bytes(self) -> int:
        """Bytes that the kernel reads and writes, each element once."""
        return sum(s.fetched_bytes for s in self.streams)

    @cached_property
    def crossing_streams(self) -> tuple[Stream, ...]:
        """The large tensors that are contiguous along the other axis than most of the bytes."""
        inner = self.inner
        steps = ((s, s.x_stride if inner else s.r_stride) for s in self.large_streams)
        return tuple(s for s, step in steps if step == 1)

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

    def scaled(self, parts: int) -> int:
        """The number of parts that a scheduler wants, times ``shares``."""
        return 1 + round(self.shares * (parts - 1))

    @property
    def passes_to_reduce(self) -> int:
        """Passes over a row until the results of all its reductions are known."""
        return 1 if self.online_softmax else self.reduction_passes or self.reduction_depth

    @cached_property
    def normalizes(self) -> bool:
        """Whether a reduction's result is used along the reduced axis."""
        return self.reduction_depth > 1 or self.dependent_outputs

    @cached_property
    def has_many_loads(self) -> bool:
        """Whether threads of a flat kernel should have few elements of each tensor."""
        return sum(not stream.is_store for stream in self.streams) >= MANY_LOADS

    @property
    def has_many_ops(self) -> bool:
        """Whether threads should have few elements because of the number of ops."""
        return self.ops_per_element > MANY_OPS

    @cached_property
    def full_streams(self) -> tuple[Stream, ...]:
        """The tensors that run along both axes."""
        return tuple(s for s in self.streams if s.along_x and s.along_r)

    @cached_property
    def full_loads(self) -> tuple[Stream, ...]:
        """The loaded tensors among ``full_streams``."""
        return tuple(s for s in self.full_streams if not s.is_store)

    @cached_property
    def loaded_words(self) -> float:
        """Registers for what is loaded at one position of both axes; 16-bit elements take half of
        one."""
        return sum(max(s.item_bytes / WORD_BYTES, 0.5) for s in self.full_loads)

    @cached_property
    def full_stores(self) -> tuple[Stream, ...]:
        """The stored tensors among ``full_streams``."""
        return tuple(s for s in self.full_streams if s.is_store)

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
    def narrowest(self) -> int:
        """Bytes of the smallest item of the tensors that run along x."""
        return min((s.item_bytes for s in self.streams if s.along_x), default=4)

    @cached_property
    def widest(self) -> int:
        """Bytes of the largest item of all tensors."""
        return max((s.item_bytes for s in self.streams), default=4)

    def max_stages(self, elements: int) -> int:
        """Most pipeline stages of a loop with ``elements`` a step that fit in shared memory.

        The loads of all stages but one are in flight.
        """
        room = self.device.stage_bytes_per_block
        step = elements * sum(s.item_bytes for s in self.full_loads)
        return 1 + room // max(step, 1)
