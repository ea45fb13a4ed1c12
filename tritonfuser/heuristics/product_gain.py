"""Whether a fused kernel of a matrix product is faster than torch's product and separate kernels.

The figures are of an H200 and products of bfloat16, in tiles of 128 x 256 by persistent programs
that load with descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..device import DeviceProperties
from .product import Product

SLOWDOWN = 0.045
"""Extra time of a generated product, as a share of cuBLAS's time (H200, 4096 cubed: 185 us, cuBLAS
177)."""

MAX_SLOWDOWN_S = 10e-6
"""Most extra seconds of a generated product. Large ones reach the same power limit as
cuBLAS."""

EPILOGUE_S_PER_ELEMENT = 0.017e-12
"""Seconds of the epilogue for each element of the result, times its number of ops squared.

One program a multiprocessor hides little latency, and live values take registers. Measured on an
H200: 0.9 to 1.1 ps an element with 7 ops, 5.8 ps with 15, 21 ps with 31."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FusedWork:
    """The prologue and epilogue that would share a kernel with a product.

    Attributes
    ----------
    epilogue_ops : int
        Ops computed for each element of the result.
    has_epilogue : bool
        A separate kernel would have to follow torch's product.
    prologue_bytes : int
        Bytes of the operands that the prologue computes. 0 for no prologue.
    k_parts : int
        Parts that K is split into (split-K). One more kernel adds up several.
    """

    epilogue_ops: int
    has_epilogue: bool
    prologue_bytes: int = 0
    k_parts: int = 1


def gain(product: Product, fused: FusedWork, device: DeviceProperties) -> float:
    """Seconds that one fused kernel saves over torch's product and the kernels around it."""
    bandwidth = device.bandwidth_bytes_per_s
    elements = product.batch * product.m * product.n
    epilogue = elements * product.epilogue_bytes / bandwidth
    separate = 0.0
    if fused.has_epilogue:
        separate += device.launch_s + elements * product.left_bytes / bandwidth + epilogue
    if fused.prologue_bytes:
        separate += device.launch_s + 2 * fused.prologue_bytes / bandwidth
    slowdown = min(SLOWDOWN * _product_seconds(product, device), MAX_SLOWDOWN_S)
    computed = EPILOGUE_S_PER_ELEMENT * fused.epilogue_ops**2 * elements
    fused_s = slowdown + max(computed, epilogue)
    if fused.k_parts > 1:
        fused_s += device.launch_s + 8 * fused.k_parts * elements / bandwidth
    return separate - fused_s


def _product_seconds(product: Product, device: DeviceProperties) -> float:
    """Seconds of torch's product: of its arithmetic or of its operands, whichever takes longer."""
    flops = 2.0 * product.batch * product.m * product.n * product.k
    operands = product.left_bytes * product.m + product.right_bytes * product.n
    loaded = product.batch * product.k * operands
    return max(flops / device.product_flops_per_s, loaded / device.bandwidth_bytes_per_s)
