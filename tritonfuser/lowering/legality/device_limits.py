"""Whether a device can launch a kernel, as far as its params say. A reason is the answer, or None.

How many registers a kernel takes, and most of its shared memory, is known when it is compiled.
"""

from __future__ import annotations

from ...device import MAX_THREADS_PER_BLOCK, DeviceProperties
from ...heuristics.params import HeuristicParams, KernelParams, MatmulParams

OPERAND_BYTES = 2
"""Bytes of an element of the operands of a product: Half or BFloat16."""


def why_not_launched(params: HeuristicParams, device: DeviceProperties) -> str | None:
    """None, or why a device cannot launch a kernel of such params."""
    if device.is_cpu or not isinstance(params, KernelParams):
        return None
    threads = params.num_warps * device.warp_size
    if threads > MAX_THREADS_PER_BLOCK:
        return (
            f"num_warps={params.num_warps} is {threads} threads, "
            f"a program of {device.name} has at most {MAX_THREADS_PER_BLOCK}"
        )
    held = _waiting_bytes(params)
    if held > device.shared_bytes_per_block:
        return (
            f"num_stages={params.num_stages} holds {held} bytes of operands in shared memory, "
            f"a program of {device.name} has {device.shared_bytes_per_block}"
        )
    return None


def _waiting_bytes(params: KernelParams) -> int:
    """Bytes of both operands of a product that are in flight while one step is multiplied."""
    if not isinstance(params, MatmulParams):
        return 0
    step = (params.block_m + params.block_n) * params.block_k * OPERAND_BYTES
    return (params.num_stages - 1) * step
