"""Whether a matrix product is faster fused than by torch with separate kernels around it.

The figures are of an H200 and products of bfloat16, in tiles of 128 x 256 by persistent programs
that load with descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..device import DeviceProperties
from .product import Product

SLOWDOWN = 0.045
"""Share of cuBLAS's time that a generated product takes longer (H200, 4096 cubed: 185 us, cuBLAS
177)."""

MAX_SLOWDOWN_S = 10e-6
"""Seconds that a generated product takes longer at most. Large ones reach the same power limit as
cuBLAS."""

EPILOGUE_S_PER_ELEMENT = 0.017e-12
"""Seconds of the epilogue for each element of the result, times its number of ops squared.

One program a multiprocessor hides little latency, and live values take registers. Measured on an
H200: 0.9 to 1.1 ps an element with 7 ops, 5.8 ps with 15, 21 ps with 31."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FusedWork:
    """What would share a kernel with a product.

    Attributes
    ----------
    epilogue_ops : int
        Ops computed for each element of the result.
    has_epilogue : bool
        A separate kernel would have to follow torch's product.
    prologue_bytes : int
        Bytes of the operands that the prologue computes. 0 for no prologue.
    k_parts : int
        Parts that K is split into. One more kernel sums them up where there are several.
    """

    epilogue_ops: int
    has_epilogue: bool
    prologue_bytes: int = 0
    k_parts: int = 1


def gain(product: Product, fused: FusedWork, device: DeviceProperties) -> float:
    """Seconds that one kernel should save over torch's product and the kernels around it."""
    bandwidth = device.bandwidth_bytes_per_s
    elements = product.batch * product.m * product.n
    epilogue = elements * product.epilogue_bytes / bandwidth
    apart = 0.0
    if fused.has_epilogue:
        apart += device.launch_s + elements * product.left_bytes / bandwidth + epilogue
    if fused.prologue_bytes:
        apart += device.launch_s + 2 * fused.prologue_bytes / bandwidth
    slowdown = min(SLOWDOWN * _product_seconds(product, device), MAX_SLOWDOWN_S)
    computed = EPILOGUE_S_PER_ELEMENT * fused.epilogue_ops**2 * elements
    together = slowdown + max(computed, epilogue)
    if fused.k_parts > 1:
        together += device.launch_s + 8 * fused.k_parts * elements / bandwidth
    return apart - together


def _product_seconds(product: Product, device: DeviceProperties) -> float:
    """Seconds of torch's product: of its arithmetic or of its operands, whichever takes longer."""
    flops = 2.0 * product.batch * product.m * product.n * product.k
    operands = product.left_bytes * product.m + product.right_bytes * product.n
    loaded = product.batch * product.k * operands
    return max(flops / device.product_flops_per_s, loaded / device.bandwidth_bytes_per_s)
