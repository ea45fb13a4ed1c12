"""The writer of each kind of kernel body: a table by the kind of kernel axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..access.read_footprint import Read
from ..kernel_source import CooperativeWorkspace
from ..segments import Store
from ..tile.cooperative_nest import CooperativeNest
from ..tile.nest import Nest
from ..tile.product_nest import ProductNest
from .cooperative_body import CooperativeBody
from .kernel_body import KernelBody
from .kernel_writers import KernelFacts
from .lines import Line
from .products.body import ProductBody


class Body(Protocol):
    """Writes the body of one kernel."""

    @property
    def loaded(self) -> Sequence[Read]:
        """All loads by addresses. They are known when the body is written."""

    @property
    def stored(self) -> Sequence[Store]:
        """All stores, at the positions of the kernel. They are known when the body is written."""

    @property
    def workspace(self) -> CooperativeWorkspace | None:
        """The memory that programs of the kernel exchange results in, if they do."""

    def write(self) -> list[Line]:
        """All lines of the function body."""


_BODIES: dict[type[Nest], Callable[[KernelFacts, Any], Body]] = {
    Nest: KernelBody,
    CooperativeNest: CooperativeBody,
    ProductNest: ProductBody,
}


def body_of(facts: KernelFacts, nest: Nest) -> Body:
    """The writer of a kernel body, by the class of its axes."""
    return _BODIES[type(nest)](facts, nest)
