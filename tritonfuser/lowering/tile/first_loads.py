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
    """The nest, with all loads first where params say so, or where all its programs run at once.

    They wait for memory at the same time then, so that each time they wait counts in full. Where
    there are more, those that wait are hidden behind others, of which registers hold more where
    loads are made when they are needed. A loop waits in each step, and what is loaded before it is
    held all through it.
    """
    problem = segment.problem
    if problem is None or nest.loop or not segment.params.has_kernel:
        return nest
    given = getattr(segment.params, "loads_first", None)
    if given is not None:
        return replace(nest, loads_first=given)
    warps = segment.kernel_params.num_warps
    programs = prod(hint(count) for _, count in nest.grid)
    blocks = (tile for tile in nest.tiles if tile.block is not None and tile != nest.rest)
    tile = prod(tile.width for tile in blocks if not tile.is_behind)
    few = tile <= MAX_HELD_ELEMENTS * warps * TUNED_WARP_SIZE
    return replace(nest, loads_first=few and run_at_once(problem.device, programs, warps))
