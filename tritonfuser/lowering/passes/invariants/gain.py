"""Whether materializing loop invariants saves time.

A rotary embedding multiplies [B, H, T, D] by sines of [T, D]. A kernel over all elements computes
each sine B * H times. One more kernel computes each sine once, and the others load it, mostly from
the L2 cache. That pays if kernels are bound by instructions, not by memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....device import LEAST_KERNEL_S, DeviceProperties


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance:
    """The cost of a component (``components.py``), with and without some values in memory.

    Attributes
    ----------
    bytes_moved : int
        Bytes of the tensors that are read and written.
    instructions : int
        Instructions of all elements, each counted as often as it is computed.
    stored_bytes : int
        Bytes of the values that would be materialized.
    instructions_after : int
        Instructions of all elements if those values are in memory, with their loads.
    """

    bytes_moved: int
    instructions: int
    stored_bytes: int
    instructions_after: int


def gain(balance: Balance, device: DeviceProperties) -> float:
    """Seconds that materializing the values saves; negative for a loss."""
    more = balance.bytes_moved + 2 * balance.stored_bytes
    now = _seconds(balance.bytes_moved, balance.instructions, device)
    return (
        now - _seconds(more, balance.instructions_after, device) - device.launch_s - LEAST_KERNEL_S
    )


def _seconds(moved: int, instructions: int, device: DeviceProperties) -> float:
    """The time of memory or of the instructions, whichever is longer."""
    return max(moved / device.bandwidth_bytes_per_s, instructions / device.instructions_per_s)
