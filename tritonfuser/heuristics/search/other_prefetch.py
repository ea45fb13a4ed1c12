"""The two ways to prefetch the loads of a loop over rows: into registers, or into shared memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..cost.tiles import tile_of
from ..params import InnerOuterPersistentParams, KernelParams
from ..problem import Problem

PIPELINE_STAGES = 3
"""Most stages of the pipeline that replaces a prefetch into registers where these do not suffice:
the loads of the next two steps are then in shared memory."""

IN_REGISTERS: dict[str, Any] = {"num_stages": 1, "prefetch": True}
"""Fields of params that prefetch into registers."""


def in_shared_memory(problem: Problem, params: KernelParams) -> dict[str, Any]:
    """Fields of params that prefetch into shared memory; that do not prefetch if it has no room for
    the loads of one more step."""
    tile = tile_of(problem, params)
    fitting = problem.max_stages(tile.x * tile.r)
    return {"num_stages": min(PIPELINE_STAGES, fitting), "prefetch": False}


def with_other_prefetch(problem: Problem, params: KernelParams) -> KernelParams | None:
    """The params with shared memory in place of registers for prefetched loads, or the other way
    round. None for kernels without a loop over rows, and where shared memory has no room."""
    if not isinstance(params, InnerOuterPersistentParams):
        return None
    fields = in_shared_memory(problem, params) if params.prefetch else IN_REGISTERS
    found = replace(params, **fields)
    return None if found.num_stages == params.num_stages else found
