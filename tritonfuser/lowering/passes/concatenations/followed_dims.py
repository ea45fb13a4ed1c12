"""The dims of operands that run along one dim of a result."""

from __future__ import annotations

from collections.abc import Iterator

from ....ir import Node, Value
from ....symbolic.index_expr import Axis, digit
from ...access.read_footprint import Read, reads

Place = tuple[Value, int | None]
"""A tensor, and the dim of it that runs along the rows; None where it is the same along them."""


def operands_along(node: Node, dim: int | None) -> Iterator[Place]:
    """The tensors that an op reads, with the dim of each that runs along one of the result."""
    axes = [Axis(f"d{place}", size) for place, size in enumerate(node.out.tensor.sizes)]
    for read in reads(node, Read(node.out, tuple(map(digit, axes)))):
        if not read.value.is_tensor:
            continue
        along = [
            n for n, item in enumerate(read.index) if dim is not None and axes[dim] in item.axes()
        ]
        if not along or dim is None:
            yield read.value, None
        elif read.index[along[0]] == digit(axes[dim]):
            yield read.value, along[0]
