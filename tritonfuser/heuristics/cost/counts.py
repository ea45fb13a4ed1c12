"""``Counts``: the input of the cost model, all that ``counting.py`` counts of a kernel.

A ``Number`` is a float, or an array with an entry for each of many kernels (for a fit).
"""

from __future__ import annotations

from typing import Any, NamedTuple, NewType

Number = Any
"""A float, or an array of them with an entry for each kernel."""


class Counts(NamedTuple):
    """What the cost model has to know of one kernel.

    A *step* is one iteration of a program's loop, or the whole program where it has no loop. A
    *pass* is one run of that loop over a row. Bytes, lines, accesses and instructions are those of
    one step of one program, unless it says otherwise. What only one of several passes loads or
    stores counts by its share in each of them (not in ``loaded_bytes``).

    Attributes
    ----------
    programs, warps : float
        Programs of the grid, and warps of each.
    threads : float
        Threads of a program.
    steps, passes : float
        Steps of a pass, 1 without a loop; and the number of passes.
    stages : float
        ``num_stages`` of the pipeline of the loop; 1 without a pipeline.
    prefetches : float
        1 where each step prefetches the loads of the next one into registers.
    elements : float
        Elements of the tile for each thread, masked ones included. At least 1.
    computed : float
        Share of the elements of a tile that ``elements`` counts. The compiler drops elements of a
        thread that are behind the end of every row.
    valid : float
        Share of the elements of all tiles that exist.
    moved_bytes : float
        Bytes from and to memory of the whole kernel: each element once, and what is fetched again.
    loaded_bytes, stored_bytes : float
        Bytes that threads load and store.
    fetched_bytes : float
        Of the loaded bytes, those that miss the L1 cache.
    reloaded_bytes : float
        Of the fetched bytes, those that every pass over a row loads.
    sector_bytes : float
        Bytes of the sectors that loads and stores touch.
    lines : float
        Lines of the L1 cache that loads and stores touch.
    accesses : float
        Load and store instructions of all warps.
    index_instructions : float
        Instructions of all warps for quotients and remainders of positions.
    written_bytes : float
        Bytes of the sectors that stores write. A sector that a store writes in part counts twice.
    partial_sector_bytes : float
        Of these, bytes of the sectors at both ends of each store of a warp, which it writes in part
        (``partial_sector_bytes_of``).
    slice_bytes : float
        Bytes from the most loaded slice of the L2 cache, where loads bypass the L1 cache.
    extra_bytes : float
        Bytes of partially used pairs of sectors that the step itself does not use.
    opened_bytes, window_bytes, repeat_request_bytes, hit_bytes, hit_lines : float
        Reads that may hit caches: see ``Windows``. ``repeat_request_bytes`` is of all programs.
    loads : float
        Number of tensors that are loaded.
    loaded : float
        Elements of all tensors that are loaded for each element of the tile.
    instructions, special : float
        Instructions for an element in all passes: all of them, and those of the special function
        unit.
    draws : float
        Random numbers for an element.
    reductions : float
        Reductions along rows, which threads of a program do together.
    reduced_steps : float
        How often these are done: once for each piece of a row, or in each step.
    staged : float
        1 where each thread has whole rows, which go through shared memory: no thread computes until
        all threads of the program have written there what they loaded.
    lanes : float
        Lanes that share one row.
    results : float
        Results of a reduction for each thread.
    row_lanes : float
        Rows of a step that different lanes or warps have, where columns are reduced too.
    row_values : float
        Partial results of columns that each thread exchanges with others; 0 where none are.
    exchange_clocks : float
        Clocks of shared memory for the partial results of columns that the warps of a program
        exchange.
    columns : float
        Reductions over rows.
    scans : float
        Those of ``reductions`` that are scans.
    addresses : float
        Addresses in a step's loads of a thread that are not constant offsets from one another.
    tail_elements : float
        Elements of a thread in tails of a row, which stay in registers while a loop reads the rest.
    row_words : float
        32-bit words of a thread of tensors that run along axis r alone, such as weights. With
        aligned tiles (``align``) each row of a tile has its own.
    kept_tensors : float
        Tensors whose elements stay in registers until their row is reduced.
    accumulators : float
        Values that an element of a step carries along a row.
    serial_steps : float
        1 where the compiler cannot begin the loads of the next step before a step ends: loads have
        masks, or the step has a barrier, to reduce its rows or to convert layouts.
    loaded_words : float
        32-bit words that are loaded for an element.
    is_flat : float
        1 for a kernel without rows.
    register_factor : float
        Factor on the predicted registers: above 1 where a compiled kernel of the problem took more.
    register_limit : float
        Most registers that a thread may have.
    waiting_s : float
        Seconds that a program waits for others.
    """

    loads: Number
    draws: Number
    reductions: Number
    columns: Number
    scans: Number
    loaded_words: Number
    is_flat: Number
    register_factor: Number
    programs: Number
    steps: Number
    passes: Number
    valid: Number
    instructions: Number
    special: Number
    reduced_steps: Number
    kept_tensors: Number
    accumulators: Number
    serial_steps: Number
    staged: Number
    lanes: Number
    results: Number
    row_lanes: Number
    row_values: Number
    exchange_clocks: Number
    loaded_bytes: Number
    fetched_bytes: Number
    reloaded_bytes: Number
    stored_bytes: Number
    sector_bytes: Number
    partial_sector_bytes: Number
    extra_bytes: Number
    opened_bytes: Number
    window_bytes: Number
    repeat_request_bytes: Number
    hit_bytes: Number
    hit_lines: Number
    warps: Number
    threads: Number
    stages: Number
    prefetches: Number
    elements: Number
    computed: Number
    moved_bytes: Number
    lines: Number
    accesses: Number
    index_instructions: Number
    written_bytes: Number
    slice_bytes: Number
    loaded: Number
    addresses: Number
    tail_elements: Number
    row_words: Number
    register_limit: Number
    waiting_s: Number


class ProblemCounts(NamedTuple):
    """The fields of ``Counts`` that no params change: its first ones, in the same order."""

    loads: float
    draws: float
    reductions: float
    columns: float
    scans: float
    loaded_words: float
    is_flat: float
    register_factor: float


class TileCounts(NamedTuple):
    """The fields that depend on params by the tile alone: the next ones of ``Counts``, in order.

    Then come those of ``ReductionLayout``, ``StepBytes`` and ``Windows``.
    """

    programs: Number
    steps: Number
    passes: Number
    valid: Number
    instructions: Number
    special: Number
    reduced_steps: Number
    kept_tensors: Number
    accumulators: Number
    serial_steps: Number
    staged: Number


LeastCounts = NewType("LeastCounts", Counts)
"""Bounds of counts that are known without the memory footprint of tiles.

Each field is a lower bound, 0 where none is known, but ``hit_lines``, which is an upper bound. The
time of a kernel grows with each field that the bound of its time depends on (falls with
``hit_lines``), so the time of these counts is a lower bound of its time."""


class ElementCounts(NamedTuple):
    """The fields of ``Counts`` that the registers of one element depend on."""

    is_flat: float
    kept_tensors: float
    accumulators: float
    columns: float
    loaded_words: float
    staged: float = 0.0
