"""Whether torch or a generated kernel computes a matrix product."""

from __future__ import annotations

from ....device import DeviceProperties
from ....heuristics.product import Product
from ....heuristics.product_gain import FusedWork, gain
from ....symbolic.choices import choose, env_among


def torch_is_faster(product: Product, fused: FusedWork, device: DeviceProperties) -> bool:
    """Whether torch is expected to compute a product faster than a kernel with what is fused."""
    env = env_among(product.batch, product.m)
    return choose(env, saves_no_time, (product, fused, device))


def saves_no_time(facts: tuple[Product, FusedWork, DeviceProperties]) -> bool:
    """Whether one kernel for a product and what is fused with it saves no time."""
    return gain(*facts) <= 0
