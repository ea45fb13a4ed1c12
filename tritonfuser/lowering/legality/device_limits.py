"""Whether a device can launch a kernel, as far as its params say. A reason is the answer, or None.

How many registers a kernel takes, and most of its shared memory, is known when it is compiled.
"""

from __future__ import annotations

from ...device import MAX_THREADS_PER_BLOCK, DeviceProperties
from ...heuristics.params import HeuristicParams, KernelParams


def why_not_launched(params: HeuristicParams, device: DeviceProperties) -> str | None:
    """None, or why a device cannot launch a kernel of such params."""
    if device.is_cpu or not isinstance(params, KernelParams):
        return None
    threads = params.num_warps * device.warp_size
    if params.num_warps > device.max_warps_per_block:
        return (
            f"num_warps={params.num_warps} is {threads} threads, "
            f"a program of {device.name} has at most {MAX_THREADS_PER_BLOCK}"
        )
    held = params.waiting_bytes
    if held > device.shared_bytes_per_block:
        return (
            f"num_stages={params.num_stages} holds {held} bytes of operands in shared memory, "
            f"a program of {device.name} has {device.shared_bytes_per_block}"
        )
    return None
