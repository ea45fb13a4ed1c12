"""How a kernel's loads and stores run through memory, as functions of its loop axes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from ...ir import Value
from ...shapes import Index
from ...symbolic.index_expr import Affine, Axis, Digit, unbound
from ...symbolic.sizes import hint


@dataclass(frozen=True)
class Traffic:
    """One tensor read or written at one index: its offset over the loop axes, in elements.

    ``rank`` is the value's place in the fusion, which does not depend on its number.
    """

    value: Value
    offset: Affine
    is_store: bool = False
    rank: int = 0

    @cached_property
    def steps(self) -> dict[Axis, int]:
        """Elements between neighbours along each axis that enters as a plain digit."""
        return {d.base: c for d, c in self.offset.terms if isinstance(d.base, Axis) and _whole(d)}

    @property
    def item_bytes(self) -> int:
        """Bytes of one element in memory."""
        return self.value.dtype.info.bytes

    @cached_property
    def bytes(self) -> int:
        """Bytes of the elements touched, each once."""
        return self.item_bytes * prod(hint(axis.extent) for axis in self.offset.axes())

    @cached_property
    def order(self) -> tuple[bool, int, str]:
        """Loads before stores, in the values' order."""
        return self.is_store, self.rank, repr(self.offset)

    @cached_property
    def fastest(self) -> Axis | None:
        """The axis along which it steps through memory in the smallest steps."""
        moving = {axis: abs(hint(step)) for axis, step in self.steps.items() if hint(step)}
        return min(moving, key=lambda axis: moving[axis], default=None)

    def runs_along(self, axes: tuple[Axis, ...]) -> bool:
        return not self.offset.axes().isdisjoint(axes)


def _whole(digit: Digit) -> bool:
    return digit.div == 1


def offset_of(index: Index, strides: tuple[int, ...]) -> Affine:
    """Elements from the start of the buffer."""
    total = Affine()
    for item, stride in zip(index, strides, strict=True):
        total = total + item * stride
    return unbound(total)


def order_axes(axes: tuple[Axis, ...], traffic: list[Traffic]) -> tuple[Axis, ...]:
    """The axes outermost first, as the tensor with most bytes over them lies in memory."""
    best = max(
        (t for t in traffic if t.runs_along(axes)),
        key=lambda t: (t.bytes, t.is_store, -t.rank),
        default=None,
    )
    if best is None:
        return axes
    place = {axis: i for i, axis in enumerate(axes)}
    return tuple(sorted(axes, key=lambda a: (-abs(hint(best.steps.get(a, 1 << 62))), place[a])))


def fast_axes(traffic: list[Traffic]) -> dict[Axis, int]:
    """Bytes that lie along each axis in memory, for axes that are some tensor's fastest."""
    found: dict[Axis, int] = {}
    for item in traffic:
        axis = item.fastest
        if axis is not None:
            found[axis] = found.get(axis, 0) + item.bytes
    return found
