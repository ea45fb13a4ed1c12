"""The facts of one kernel that schedulers decide by: extents, memory traffic, device.

A kernel has two axes. Axis x runs over its results, or over its rows. Axis r runs along a row: over
the elements that are reduced or scanned.
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
"""Random words of one draw. In rows of a length that is no multiple of it they move between
lanes."""

MANY_LOADS = 5
"""Loads of an element from which on a thread of a flat kernel has fewer elements: one vector of
each tensor. H200, rotary embedding of 8 x 4096 x 32 x 128: 166 us with 8 warps and one vector, 175
with 4 and several; its backward 170 and 198. Where tiles have two sides, each load along another
side has addresses of its own: with 16 elements, kernels of 8 loads and more took 128 to 255
registers."""

MANY_OPS = 24
"""Ops of an element from which on it has fewer too. How many of their results a thread has at a
time is the compiler's order: the cost model counts registers by the logarithm of the ops."""

L2_SPEEDUP = 2
"""Bandwidth of the L2 cache over that of memory, about (64 bytes a clock of each of an H100's
multiprocessors, and what it copies)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Core:
    """The op that a kernel is built around: all else that it computes comes before it or after it.

    A class for each such op has its facts.

    Attributes
    ----------
    scheduler : str
        The scheduler that the kernel is by.
    words : str
        What the op is.
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
    """Instructions that a kernel needs for an element, and its reductions.

    Attributes
    ----------
    before, after : float
        Instructions of what the kernel's reductions need, without any of their results, and of all
        else. In kernels that read rows more than once the former are in every pass.
    reducing : float
        Instructions of the reductions.
    special_before, special_after : float
        Those of ``before`` and ``after`` that the pipe of special functions takes.
    reductions : int
        Reductions along rows, and scans.
    carried : int
        Reductions whose result so far every element of a step carries along a row. Means and
        variances are carried by threads.
    draws : int
        Random numbers.
    registers : float
        Registers that a thread takes for each that the cost model predicts. Above 1 where a
        compiled kernel of the segment took more.
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

    What follows from its facts is found once, when it is first asked for: choosing params asks for
    some of it dozens of times.

    Attributes
    ----------
    parallel : int
        Positions of axis x. 0 or more.
    reduced : int
        Positions of axis r. 1 where nothing is reduced or scanned.
    reduction_depth : int
        Reductions along r on the longest chain in which each needs the one before. 0 for none.
    reduction_passes : int
        Passes over a row that they take, if each ends its own: results of neighbouring rows are
        reduced without one (``co_reduced``). 0 for as many as ``reduction_depth``.
    full_outputs : bool
        Some result runs over both axes.
    dependent_outputs, independent_outputs : bool
        Some result over both axes needs a reduction of the kernel; some needs none.
    scans : bool
        The kernel has a scan along r.
    outer_members : int
        Reductions over x (over the rows), which a kernel may have in addition to those along r.
    outer_loops : int
        Loops over the rows, one after the other, that they take with what needs their results.
    outer_batch : int
        Positions of x that the reductions over x keep: each has a result of its own. 1 for none.
    rows_split : bool
        The reductions over x are the first of two steps: each reduces one share of the rows. The
        shares are among ``outer_batch``.
    may_split : bool
        Reductions of the kernel may still be done in two steps.
    shares : float
        Parts of reductions that are split over programs, as a multiple of those that their
        scheduler wants.
    co_reduced : int
        Neighbouring rows whose results are reduced once more, so that one program must hold them
        all. 1 for none.
    order : tuple of tuple of int
        The numbers of the axes of x by which params name them, outermost first, in groups whose
        order is free. Empty where something else says the order.
    axes : tuple of int
        The extents of the axes of a kernel, outermost first: those of x, then those of a row.
    row_axes : int
        How many of them, the last ones, are those of a row. 0 of a flat kernel.
    across : tuple of int
        The places among ``axes`` of those that are the second side of a flat kernel's tiles, in the
        order of memory of the tensors that lie along them (a transpose). Empty for none.
    crossing : int
        Positions of the axes of ``across``. 1 for none.
    result_bytes : int
        Bytes of the results of reductions that are stored.
    streams : tuple of Stream
        The tensors that are read and written.
    results : tuple of Stream
        Where the results of reductions along rows lie that are stored, one for each row: their
        bytes are among ``result_bytes``.
    ops_per_element : int
        Ops of the kernel.
    accumulators : int
        Numbers that a lane carries along a row for all reductions: 2 for a mean and variance.
    published_sums : int
        Sums of a row that programs sharing it have to exchange. 0 where they cannot share rows.
    draws_random : bool
        Random numbers are drawn for each element.
    online_softmax : bool
        The reductions are a maximum and sums of exponentials below it.
    vector_elements : int
        Elements of a vectorized load, where rows are contiguous and tiles can be moved to begin at
        one. 1 elsewhere.
    one_run : bool
        The dims of each reduction are one run of every tensor that runs along them: one after the
        other, the steps along them go on where those along the next one end.
    row_varies : bool
        The length of a row varies between runs, so it is not cut into a block and tails.
    rows_vary : bool
        The number of rows does.
    core : Core or None
        The op that the rest is fused with. None where there is no such op.
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
        # What nearly all problems differ in: they are keys, with many facts of many tensors.
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
        """Whether the kernel has axes, and none of a row."""
        return bool(self.axes) and not self.row_axes

    @cached_property
    def gathers(self) -> bool:
        """Whether a tensor is read at indices of another."""
        return any(stream.held_bytes for stream in self.streams)

    @cached_property
    def places(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The places among ``axes`` of those of x, and of those of a row."""
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

        A program with one row would fetch a sector for each of its elements, from the L2 cache
        where other programs want its other elements. Tensors for which that takes less time than a
        launch do not count.
        """
        launch = self.device.launch_s
        return not self.on_cpu and self._seconds_of_sectors(self.crossing_streams) > launch

    @property
    def crossing_loses(self) -> bool:
        """Whether the sectors that such tensors take in a kernel with one row a program cost more
        than kernels with other tiles, which read all tensors once more."""
        once = self.moved_bytes / self.device.bandwidth_bytes_per_s
        return self.crosses and self._seconds_of_sectors(self.crossing_streams) > once

    @cached_property
    def moved_bytes(self) -> int:
        """Bytes that a kernel reads and writes, each element once."""
        return sum(s.fetched_bytes for s in self.streams)

    @cached_property
    def crossing_streams(self) -> tuple[Stream, ...]:
        """The large tensors that are contiguous along the other axis than most of the bytes."""
        inner = self.inner
        steps = ((s, s.x_stride if inner else s.r_stride) for s in self.large_streams)
        return tuple(s for s, step in steps if step == 1)

    @property
    def scatters(self) -> bool:
        """Whether a large tensor is contiguous along neither axis, but along one further out.

        Any tile of the two axes fetches a sector for each of its elements. As for ``crosses``,
        tensors for which that takes less time than a launch do not count.
        """
        known = [s for s in self.large_streams if s.x_stride and s.r_stride]
        apart = [s for s in known if 1 not in (s.x_stride, s.r_stride)]
        return not self.on_cpu and self._seconds_of_sectors(apart) > self.device.launch_s

    def _seconds_of_sectors(self, streams: Sequence[Stream]) -> float:
        """Seconds to fetch a sector from the L2 cache for each element of tensors."""
        fetched = sum(s.total_bytes * SECTOR_BYTES // s.item_bytes for s in streams)
        return fetched / (L2_SPEEDUP * self.device.bandwidth_bytes_per_s)

    def scaled(self, parts: int) -> int:
        """Parts of a reduction, of which the heuristics want so many: ``shares`` times as many."""
        return 1 + round(self.shares * (parts - 1))

    @property
    def passes_to_reduce(self) -> int:
        """Passes over a row until all its reductions are known."""
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
        """Whether they should have few elements because of what is computed of each."""
        return self.ops_per_element > MANY_OPS

    @cached_property
    def full_streams(self) -> tuple[Stream, ...]:
        """The tensors that run over both axes."""
        return tuple(s for s in self.streams if s.along_x and s.along_r)

    @cached_property
    def full_loads(self) -> tuple[Stream, ...]:
        """The tensors over both axes that are read."""
        return tuple(s for s in self.full_streams if not s.is_store)

    @cached_property
    def loaded_words(self) -> float:
        """Registers that hold what is loaded for a position of both axes, vectors as they are."""
        return sum(max(s.item_bytes / WORD_BYTES, 0.5) for s in self.full_loads)

    @cached_property
    def full_stores(self) -> tuple[Stream, ...]:
        """The tensors over both axes that are written."""
        return tuple(s for s in self.full_streams if s.is_store)

    @cached_property
    def large_streams(self) -> tuple[Stream, ...]:
        """The full streams without those of less than a quarter of the bytes of the largest."""
        full = self.full_streams
        most = max((s.total_bytes for s in full), default=0)
        return tuple(s for s in full if 4 * s.total_bytes >= most)

    @cached_property
    def large_loads(self) -> tuple[Stream, ...]:
        """The large tensors that are read."""
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
