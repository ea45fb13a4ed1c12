"""Whether a kernel issues all its loads before it computes anything."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...device import VECTOR_BYTES, WORD_BYTES
from ...heuristics.cost.tiles import tile_of
from ...heuristics.integers import TUNED_WARP_SIZE
from ...heuristics.params import KernelParams
from ...heuristics.problem import Problem
from ...symbolic.choices import choose
from ..problem_sizes import env_of
from ..segments.segment import Segment
from .nest import Nest

MAX_ELEMENTS = 16
"""Most elements of a tile for each thread, for which loads come first by default."""

MAX_LOADED_BYTES = 512
"""Most bytes that a thread loads before it computes: half of the registers that it can have."""

MAX_WORDS = 64
"""The same in 32-bit words, for rows with several weights."""


def with_loads_first(nest: Nest, segment: Segment) -> Nest:
    """The nest with ``loads_first``: as params say; otherwise if a thread loads little, and in
    loops without a pipeline.

    All loads then wait for memory at the same time. ptxas does not do this by itself: it moves no
    load across a store, the branches of a division or a barrier, so that a kernel which stores one
    box before it loads another one waits twice. H200, of 46 definitions with and without: a cat of
    rotated halves 73 us and 58, softmaxes 662 and 597, 314 and 294; eleven kernels gained 4% or
    more, one of 55 us lost 6%, and one of 64 elements a thread 17%. Of others, one that loads 272
    bytes a thread took 107 us and 85, one of 672 bytes 81 and 86.

    A loop waits for memory in each step, and again after a division, whose rare cases are a branch,
    and after a layout conversion, which has a barrier. H200, two sums along 448 rows of 290976 with
    two divisions between the loads of a step, and the kernels around them: 5.0 ms, and 2.8 with the
    loads first. Loads before the loop stay where they are used: registers would hold their results
    all through the loop.
    """
    problem = segment.problem
    if problem is None or not segment.params.has_kernel:
        return nest
    given = getattr(segment.params, "loads_first", None)
    if given is not None:
        return replace(nest, loads_first=given)
    if nest.loop:
        return replace(nest, loads_first=segment.kernel_params.num_stages == 1)
    threads = segment.kernel_params.num_warps * TUNED_WARP_SIZE
    blocks = (tile for tile in nest.tiles if tile.block is not None and tile != nest.rest)
    elements = prod(tile.width for tile in blocks if not tile.is_behind)
    each = sum(stream.item_bytes for stream in problem.streams if not stream.is_store)
    few = elements <= MAX_ELEMENTS * threads and elements * each <= MAX_LOADED_BYTES * threads
    facts = problem, segment.kernel_params
    return replace(nest, loads_first=few or choose(env_of(problem), _weights_wait, facts))


def _weights_wait(facts: tuple[Problem, KernelParams]) -> bool:
    """Whether the rows of a program share several weights, which would be loaded after a reduction.

    Each weight would then be waited for separately, and would be converted from a layout of its own
    to that of the rows, through shared memory. H200, two RMS norms of rows of 80, one of the other:
    242 us, and 158; five layer norms of rows of 80 to 4097, 0.94 of the time (geometric mean; 0.80
    to 1.01). A second full tensor would occupy registers all through the reductions: nine kernels
    with one take 1.02 of the time (0.94 to 1.25, there by 143 registers for 90).

    A single row has the layout of its weights, each of which takes as many registers as the row:
    layer norms of rows of 8192 to 12289, one a program, take 1.07 to 1.41 times as long.
    """
    problem, params = facts
    loads = [stream for stream in problem.streams if not stream.is_store]
    weights = [stream for stream in loads if stream.along_r and not stream.along_x]
    if len(weights) < 2 or not problem.reduction_depth or not problem.inner:
        return False
    if len(problem.full_loads) > 1:
        return False
    tile, threads = tile_of(problem, params), params.num_warps * TUNED_WARP_SIZE
    if tile.x == 1:
        return False
    elements = max(tile.x * tile.r / threads, 1.0)
    vector = VECTOR_BYTES // min(stream.item_bytes for stream in loads)
    along = tile.r / min(threads, max(tile.r // vector, 1))
    words = 0.0
    for stream in loads:
        count = elements if stream.along_r else elements / along
        words += (count if stream.along_x else along) * stream.item_bytes / WORD_BYTES
    return words <= MAX_WORDS
