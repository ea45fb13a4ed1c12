"""Whether a kernel issues all its loads before it computes anything."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...heuristics.integers import TUNED_WARP_SIZE
from ...heuristics.one_wave import run_at_once
from ...symbolic.sizes import hint
from ..segments import Segment
from .nest import Nest

MAX_HELD_ELEMENTS = 16
"""Elements of a tile that a thread may have. All loads of as many are in registers at once."""


def with_loads_first(nest: Nest, segment: Segment) -> Nest:
    """The nest, with all loads first where params say so, where all its programs run at once, and
    in each step of a loop without a pipeline.

    They wait for memory at the same time then, so that each time they wait counts in full. Where
    there are more, those that wait are hidden behind others, of which registers hold more where
    loads are made when they are needed.

    A loop waits for memory in each step, and waits again behind a division, whose rare cases are a
    branch, or behind a change of layout, which is a barrier: ptxas moves no load across either.
    H200, two sums along 448 rows of 290976 with two divisions between the loads of a step, and
    what is around them: 5.0 ms, and 2.8 with the loads first. What is loaded before a loop is held
    all through it, and stays.
    """
    problem = segment.problem
    if problem is None or not segment.params.has_kernel:
        return nest
    given = getattr(segment.params, "loads_first", None)
    if given is not None:
        return replace(nest, loads_first=given)
    if nest.loop:
        return replace(nest, loads_first=segment.kernel_params.num_stages == 1)
    warps = segment.kernel_params.num_warps
    programs = prod(hint(count) for _, count in nest.grid)
    blocks = (tile for tile in nest.tiles if tile.block is not None and tile != nest.rest)
    tile = prod(tile.width for tile in blocks if not tile.is_behind)
    few = tile <= MAX_HELD_ELEMENTS * warps * TUNED_WARP_SIZE
    return replace(nest, loads_first=few and run_at_once(problem.device, programs, warps))
