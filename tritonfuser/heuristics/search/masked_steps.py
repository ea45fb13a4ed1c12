"""Loops over columns: masks in every step, or a peeled last step without masks.

A peeled step takes registers. If these reduce the few programs that a multiprocessor runs at a
time, the masks cost less.
"""

from __future__ import annotations

from dataclasses import replace

from ..cost.registers import limits_for_more_programs
from ..cost.tiles import tile_of
from ..integers import ceil_div
from ..params import HeuristicParams, ReductionParams
from ..row_tiling import peeled_step
from .warps import Kernels

PEELED_REGISTERS = 16
"""Registers that a peeled step may take: its addresses, and what it loads before the sums of the
loop are reduced. H200, 51 loops over columns: four have masks for it, and take 1.02 times as long
by a step behind the loop (geometric mean; 0.95 to 1.12); the others take 0.88 times."""


def with_masks_for_programs(kernels: Kernels, params: HeuristicParams) -> HeuristicParams:
    """Params without the peeled step, if its registers cost one of few programs at a time."""
    problem = kernels.problem
    if not isinstance(params, ReductionParams) or problem.inner or params.persistent:
        return params
    if not params.tails or params.tails != peeled_step(problem, params.block_r):
        return params
    time = kernels.time(params)
    if time is None:
        return params
    wanted = min(float(time.registers), float(time.register_limit))
    of_sm = ceil_div(tile_of(problem, params).programs, problem.device.sm_count)
    limits = limits_for_more_programs(problem.device, params.num_warps, wanted)[: max(of_sm - 1, 0)]
    costs_program = bool(limits) and wanted + PEELED_REGISTERS > limits[-1]
    return replace(params, tails=()) if costs_program else params


def has_masks_for_programs(params: HeuristicParams, rules: HeuristicParams) -> bool:
    """Whether params are the rules' without their peeled step."""
    if not isinstance(params, ReductionParams) or not isinstance(rules, ReductionParams):
        return False
    masked = replace(rules, tails=(), axes=params.axes, max_registers=params.max_registers)
    return bool(rules.tails) and params == masked
