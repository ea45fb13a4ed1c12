"""Whether a matrix product is better a kernel with what follows it, or torch's and a kernel more.

The figures are of an H200 and of products of bfloat16 in tiles of 128 x 256, by programs that stay
and fetch with descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..device import LAUNCH_S, DeviceProperties
from .problem import Product

SLOWER = 0.045
"""Share of cuBLAS's time that a generated kernel takes longer: 185 us for 177 at 4096 cubed."""

MOST_SLOWER = 10e-6
"""Seconds that it takes longer at most: large products run into the same limit of power."""

BEHIND = 0.017e-12
"""Seconds that an element takes behind the product, times the square of the number of ops: one
program a multiprocessor hides little latency, and values that wait take registers. Measured were
0.9 to 1.1 ps an element with 7 ops, 5.8 ps with 15 and 21 ps with 31."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Company:
    """What goes with a product in its kernel.

    Attributes
    ----------
    ops : int
        Computed behind it for each element of the result.
    follows : bool
        Whether a kernel would have to follow a product of torch's.
    before_bytes : int
        Bytes of the operands that are computed on the way.
    parts : int
        In how many parts K is cut, whose sum is another kernel.
    """

    ops: int
    follows: bool
    before_bytes: int = 0
    parts: int = 1


def gain(product: Product, company: Company, device: DeviceProperties) -> float:
    """Seconds that one kernel should save over torch's product and the kernels around it."""
    bandwidth = device.bandwidth_bytes_per_s
    elements = product.batch * product.m * product.n
    operands = product.left_bytes * product.m + product.right_bytes * product.n
    work = max(
        2.0 * elements * product.k / device.product_flops_per_s,
        product.batch * product.k * operands / bandwidth,
    )
    beside = elements * product.beside / bandwidth
    apart = 0.0
    if company.follows:
        apart += LAUNCH_S + elements * product.left_bytes / bandwidth + beside
    if company.before_bytes:
        apart += LAUNCH_S + 2 * company.before_bytes / bandwidth
    together = min(SLOWER * work, MOST_SLOWER) + max(BEHIND * company.ops**2 * elements, beside)
    if company.parts > 1:
        together += LAUNCH_S + 8 * company.parts * elements / bandwidth
    return apart - together
