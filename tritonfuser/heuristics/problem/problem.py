"""``Problem``: the facts of one kernel that schedulers decide by: extents, memory traffic, device.

A kernel has two axes. Axis x runs over rows, or over all elements of a kernel without reductions.
Axis r runs along a row: over the elements that are reduced or scanned.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...lazy import cached_property
from .core import Core
from .tensors import TensorFacts

MANY_OPS = 24
"""From so many ops for an element on, a thread has fewer elements too. How many of their results
are live at a time depends on the compiler's order: the cost model counts registers by the logarithm
of the ops."""


@dataclass(frozen=True, kw_only=True)
class Problem(TensorFacts):
    """One segment as schedulers see it. Extents are hints where sizes vary.

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
    parts_factor : float
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
    parts_factor: float = 1.0
    co_reduced: int = 1
    order: tuple[tuple[int, ...], ...] = ()
    axes: tuple[int, ...] = ()
    row_axes: int = 0
    across: tuple[int, ...] = ()
    crossing: int = 1
    result_bytes: int = 0
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
    def is_flat(self) -> bool:
        """Whether the kernel has no rows (``axes`` are known, and none belongs to r)."""
        return bool(self.axes) and not self.row_axes

    @cached_property
    def places(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The indices into ``axes`` of those of x, and of those of r."""
        first = len(self.axes) - self.row_axes
        return tuple(range(first)), tuple(range(first, len(self.axes)))

    def scaled(self, parts: int) -> int:
        """The number of parts that a scheduler wants, times ``parts_factor``."""
        return 1 + round(self.parts_factor * (parts - 1))

    @property
    def passes_to_reduce(self) -> int:
        """Passes over a row until the results of all its reductions are known."""
        return 1 if self.online_softmax else self.reduction_passes or self.reduction_depth

    @cached_property
    def normalizes(self) -> bool:
        """Whether a reduction's result is used along the reduced axis."""
        return self.reduction_depth > 1 or self.dependent_outputs

    @property
    def has_many_ops(self) -> bool:
        """Whether threads should have few elements because of the number of ops."""
        return self.ops_per_element > MANY_OPS
