"""Where the loads wait that a loop over rows begins ahead: in registers, or in shared memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..cost.tiles import tile_of
from ..params import InnerOuterPersistentParams, KernelParams
from ..problem import Problem

PIPELINE_STAGES = 3
"""Stages at most of the pipeline that takes the place of loads into registers where these are too
many: the loads of the next two steps are in shared memory then."""

IN_REGISTERS: dict[str, Any] = {"num_stages": 1, "prefetch": True}
"""Fields of loads that wait in registers."""


def in_shared_memory(problem: Problem, params: KernelParams) -> dict[str, Any]:
    """Fields of loads that wait in shared memory; of none where it has no room for those of a step
    more."""
    tile = tile_of(problem, params)
    fitting = problem.max_stages(tile.x * tile.r)
    return {"num_stages": min(PIPELINE_STAGES, fitting), "prefetch": False}


def begun_elsewhere(problem: Problem, params: KernelParams) -> KernelParams | None:
    """Params of a loop whose loads wait in shared memory in the place of registers, or the other
    way round. None where none are begun ahead, or have no room there."""
    if not isinstance(params, InnerOuterPersistentParams):
        return None
    fields = in_shared_memory(problem, params) if params.prefetch else IN_REGISTERS
    found = replace(params, **fields)
    return None if found.num_stages == params.num_stages else found
