"""Whether materializing values of fewer axes than their kernels saves time.

A rotary embedding multiplies [B, H, T, D] by sines of [T, D]. A kernel over all elements computes
each sine B * H times. One kernel more computes it once, and the others load it, mostly from the L2
cache. That pays where kernels are bound by their instructions, not by memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....device import LEAST_KERNEL_S, DeviceProperties


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance:
    """What neighbouring values cost: all that is computed between tensors in memory.

    Attributes
    ----------
    bytes_moved : int
        Bytes of the tensors that are read and written.
    instructions : int
        Instructions of all elements, each as often as it is computed.
    kept_bytes : int
        Bytes of the values that would be put in memory.
    kept_instructions : int
        Instructions of all elements with those values in memory, their loads among them.
    """

    bytes_moved: int
    instructions: int
    kept_bytes: int
    kept_instructions: int


def gain(balance: Balance, device: DeviceProperties) -> float:
    """Seconds that are saved by putting the values in memory."""
    more = balance.bytes_moved + 2 * balance.kept_bytes
    now = _seconds(balance.bytes_moved, balance.instructions, device)
    return (
        now - _seconds(more, balance.kept_instructions, device) - device.launch_s - LEAST_KERNEL_S
    )


def _seconds(moved: int, instructions: int, device: DeviceProperties) -> float:
    """Of memory or of the instructions, whichever takes longer."""
    return max(moved / device.bandwidth_bytes_per_s, instructions / device.instructions_per_s)
