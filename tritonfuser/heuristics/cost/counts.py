"""``Counts``: the input of the cost model, all that ``counting.py`` counts of a kernel.

A ``Number`` is a float, or an array with an entry for each of many kernels, for a fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Number = Any
"""A float, or an array of them with an entry for each kernel."""


class Counts(NamedTuple):
    """What a kernel counts.

    Attributes
    ----------
    programs, warps : float
        Programs of the grid, warps of each.
    threads : float
        Of a program.
    steps, passes : float
        Steps of a program's loop over its elements, 1 without a loop, and how often it runs.
    stages : float
        Steps whose loads are in flight, 1 without a pipeline.
    prefetches : float
        1 where loads are begun a step ahead, into registers.
    elements : float
        Of a tile for each thread, those that are masked too. At least 1.
    computed : float
        Share of the elements of a tile of which these are. The compiler drops what a thread has
        behind the end of every row.
    valid : float
        Share of the elements of all tiles that exist.
    moved_bytes : float
        Bytes of the tensors, each element once, and of flat kernels those fetched more than once.
    loaded_bytes, stored_bytes : float
        Bytes of a tile of a program, in a step. What one of several passes over a row stores, or
        loads alone, counts in all of them by its share: here and below, but for ``loaded_bytes``.
    fetched_bytes : float
        Those of the loaded ones that the L1 cache does not have.
    again_bytes : float
        Those of them that each pass over a row loads.
    sector_bytes : float
        The same of whole sectors, loads and stores together.
    lines : float
        Lines of the L1 cache that loads and stores of a step touch.
    accesses : float
        Loads and stores of all warps in a step.
    index_instructions : float
        Of all warps in a step, for the digits of positions.
    written_bytes : float
        Bytes of the sectors that stores of a step write, of those that they write in part twice.
    partly_bytes : float
        Of those of a flat kernel, the ones that warps write in part: see ``Traffic``.
    slice_bytes : float
        Bytes of a step that come from the one slice of the L2 cache that gives most of a tensor,
        where loads pass by the L1 cache.
    extra_bytes : float
        Bytes of a step beside runs that are shorter than a pair of sectors.
    opened_bytes, window_bytes, requested_again, hit_bytes, hit_lines : float
        Of tensors that are read at indices of others: see ``Windows``. The third for all programs,
        the others for a program, in a step.
    loads : float
        Tensors that are loaded.
    loaded : float
        Elements of all tensors that a step loads for each of its own.
    instructions, special : float
        Of an element in all passes: all of them, those of the pipe of special functions.
    draws : float
        Random numbers of an element.
    reductions : float
        Over the lanes of a program, once for each row or in each step.
    reduced_steps : float
        How often they are done: for each piece of a row.
    staged : float
        1 where threads have whole rows, which go through shared memory: a program computes nothing
        until all its threads have written what they loaded there.
    lanes : float
        Lanes that a reduction is over.
    results : float
        Results of a reduction for each thread.
    row_lanes : float
        Groups of warps that have different rows of a step, where columns are reduced too.
    row_values : float
        Partial results of columns for each thread, which they exchange. 0 where they do not.
    exchange_clocks : float
        Clocks of shared memory for the partial results of columns that the warps of a program
        exchange.
    columns : float
        Reductions over rows.
    scans : float
        Those of ``reductions`` that are scans.
    addresses : float
        Addresses of a thread's loads of a step that are no offsets from one another.
    held : float
        Elements of a thread of the end of a row, which it keeps while a loop reads the rest.
    row_words : float
        32-bit words of a thread of what lies along rows alone, as weights. Where tiles begin at
        vectors, wherever their rows do, each row has its own.
    kept_tensors : float
        Tensors whose elements stay in registers until their row is reduced.
    accumulators : float
        Numbers that an element of a step carries along a row.
    alone : float
        1 where no step is loaded with the next: its loads have masks, or the warps of a program
        meet in it, to reduce its rows or to change the layout of what is loaded.
    words : float
        32-bit words that are loaded for an element.
    is_flat : float
        1 for a kernel without rows.
    taken : float
        Registers that a thread takes for each that is predicted.
    register_limit : float
        Registers that a thread may have at most.
    waiting_s : float
        Seconds that a program waits for others.
    """

    loads: Number
    draws: Number
    reductions: Number
    columns: Number
    scans: Number
    words: Number
    is_flat: Number
    taken: Number
    programs: Number
    steps: Number
    passes: Number
    valid: Number
    instructions: Number
    special: Number
    reduced_steps: Number
    kept_tensors: Number
    accumulators: Number
    alone: Number
    staged: Number
    lanes: Number
    results: Number
    row_lanes: Number
    row_values: Number
    exchange_clocks: Number
    warps: Number
    threads: Number
    stages: Number
    prefetches: Number
    elements: Number
    computed: Number
    moved_bytes: Number
    loaded_bytes: Number
    fetched_bytes: Number
    again_bytes: Number
    stored_bytes: Number
    sector_bytes: Number
    lines: Number
    accesses: Number
    index_instructions: Number
    written_bytes: Number
    partly_bytes: Number
    slice_bytes: Number
    extra_bytes: Number
    opened_bytes: Number
    window_bytes: Number
    requested_again: Number
    hit_bytes: Number
    hit_lines: Number
    loaded: Number
    addresses: Number
    held: Number
    row_words: Number
    register_limit: Number
    waiting_s: Number


class ProblemCounts(NamedTuple):
    """The first fields of ``Counts``, in its order: those that no params change."""

    loads: float
    draws: float
    reductions: float
    columns: float
    scans: float
    words: float
    is_flat: float
    taken: float


class TileCounts(NamedTuple):
    """The next ones, in its order: those that all kernels with the same tile have."""

    programs: Number
    steps: Number
    passes: Number
    valid: Number
    instructions: Number
    special: Number
    reduced_steps: Number
    kept_tensors: Number
    accumulators: Number
    alone: Number
    staged: Number


class LeastCounts(NamedTuple):
    """The fields of ``Counts`` that are known before it is known what tiles touch of memory.

    What depends on that, as how threads lie along memory, is the least that it may be. So each
    field is at most that of ``Counts``, and the time of a kernel grows with each; but for
    ``hit_lines``, which are at most so many.
    """

    loads: float
    draws: float
    reductions: float
    columns: float
    scans: float
    words: float
    is_flat: float
    taken: float
    programs: Number
    steps: Number
    passes: Number
    valid: Number
    instructions: Number
    special: Number
    reduced_steps: Number
    kept_tensors: Number
    accumulators: Number
    alone: Number
    staged: Number
    lanes: Number
    results: Number
    row_lanes: Number
    row_values: Number
    exchange_clocks: Number
    warps: Number
    threads: Number
    stages: Number
    prefetches: Number
    elements: Number
    computed: Number
    moved_bytes: float
    accesses: Number
    lines: Number
    addresses: Number
    fetched_bytes: Number
    loaded: Number
    held: Number
    register_limit: Number
    waiting_s: float
    hit_lines: Number
    written_bytes: Number
    row_words: float = 0.0
    loaded_bytes: float = 0.0
    index_instructions: float = 0.0


class HeldOfElement(NamedTuple):
    """The fields of ``Counts`` that say how many registers an element takes."""

    is_flat: float
    kept_tensors: float
    accumulators: float
    columns: float
    words: float
    staged: float = 0.0
