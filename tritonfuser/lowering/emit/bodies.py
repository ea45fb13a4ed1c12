"""The writer of each kind of kernel body: a table by the kind of kernel axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tile.cooperative_nest import CooperativeNest
from ..tile.nest import Nest
from ..tile.product_nest import ProductNest
from .body import Body
from .cooperative_body import CooperativeBody
from .kernel_body import KernelBody
from .kernel_writers import KernelFacts
from .products.body import ProductBody

_BODIES: dict[type[Nest], Callable[[KernelFacts, Any], Body]] = {
    Nest: KernelBody,
    CooperativeNest: CooperativeBody,
    ProductNest: ProductBody,
}


def body_of(facts: KernelFacts, nest: Nest) -> Body:
    """The writer of a kernel body, by the class of its axes."""
    return _BODIES[type(nest)](facts, nest)
