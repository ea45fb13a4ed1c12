"""The seconds of a kernel around a matrix product."""

from __future__ import annotations

from collections.abc import Callable

from ...device import MAX_REGISTERS_PER_THREAD
from ..integers import ceil_div
from ..params import HeuristicParams, MatmulParams
from ..problem import ElementWork, Problem
from ..product import product_of
from .constants import constants_of
from .model import SHARPNESS, KernelTime

FULL_TILE = 128 * 256
"""Elements of the result in a tile from which on tensor cores are busy all the time."""

COPY_ENGINE_BYTES = 64.0
"""Bytes from the L2 cache to a multiprocessor in a clock, past its L1 cache: the data sheet's."""


def product_times(
    problem: Problem, work: ElementWork
) -> Callable[[HeuristicParams], KernelTime | None]:
    """The times of the kernels of a matrix product, by params."""
    return lambda params: product_time(problem, params, work)


def product_time(problem: Problem, params: HeuristicParams, work: ElementWork) -> KernelTime | None:
    """A matrix product: the tensor cores or the bytes, in whole waves of programs.

    A tile loads its rows of the left operand and its columns of the right one from the L2 cache.
    """
    product, device, c = product_of(problem), problem.device, constants_of(problem.device)
    if product is None or not isinstance(params, MatmulParams) or problem.on_cpu:
        return None
    tiles = (
        product.batch * ceil_div(product.m, params.block_m) * ceil_div(product.n, params.block_n)
    )
    waves = ceil_div(tiles, device.sm_count)
    tile = params.block_m * params.block_n
    flops = 2 * tile * product.k * waves * device.sm_count
    # A small tile waits for its operands.
    reached = min(tile / FULL_TILE, 1.0) ** 0.5
    sides = params.block_m * product.left_bytes + params.block_n * product.right_bytes
    fabric = device.sm_count * COPY_ENGINE_BYTES * device.clock_hz
    moved = float(problem.moved_bytes)
    resources = {
        "tensor cores": flops / (device.product_flops_per_s * reached),
        "memory": moved / (device.bandwidth_bytes_per_s * c.bandwidth),
        "L2 cache": tiles * sides * product.k / fabric,
        "latency": waves * c.latency_s * ceil_div(product.k, params.block_k) / params.num_stages,
    }
    busy = sum(seconds**SHARPNESS for seconds in resources.values()) ** (1 / SHARPNESS)
    return KernelTime(resources, busy + c.start_s + c.kernel_s, 0.0, MAX_REGISTERS_PER_THREAD)
