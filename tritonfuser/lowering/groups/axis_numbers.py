"""The numbers of a group's row axes, by which params name them.

They are those of dims, which stay the same where other sizes give other axes: a dim of one position
has no axis, and keeps its number.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import Value
from ...symbolic.index_expr import Axis
from ..segments.store import Store
from .anchor_maker import AnchorMaker, across_dims
from .fusion_group import FusionGroup


def numbered_axes(group: FusionGroup, maker: AnchorMaker) -> tuple[Axis | None, ...]:
    """The axes of a group's rows by number; None for a dim of one position.

    They are those of the first value that has all of them, of what is reduced without the reduced
    dims. A value without dims is passed over: others may have dims of one position. Boxes have axes
    of their own, which are numbered in their order, by the dims that they are parts of. Where a
    kernel is built around an op, that says the order, and none has a number.
    """
    if group.core is not None:
        return ()
    for value, left_out in _values(group):
        found = [
            axis
            for dim, atoms in enumerate(maker.axes.atoms(value))
            if dim not in left_out
            for axis in (map(maker.axes.axis, atoms) if atoms else (None,))
        ]
        if found and {axis for axis in found if axis is not None} == {*group.parallel}:
            return tuple(found)
    if group.reduced:
        return group.parallel
    boxes = (_of_box(store, group.parallel) for store in group.stores)
    numbered = (found for found in boxes if found and _named(found) == group.parallel)
    return next(numbered, group.parallel)


def _of_box(store: Store, parallel: tuple[Axis, ...]) -> tuple[Axis | None, ...]:
    """The axes of each dim of what is stored; None for a dim along which it has one position."""
    dims = (sorted(item.axes(), key=parallel.index) for item in store.index)
    return tuple(axis for axes in dims for axis in axes or (None,))


def _named(numbered: tuple[Axis | None, ...]) -> tuple[Axis, ...]:
    return tuple(axis for axis in numbered if axis is not None)


def _values(group: FusionGroup) -> Iterator[tuple[Value, tuple[int, ...]]]:
    """Values that may run along all axes, each with the dims to skip."""
    for member in group.members:
        yield next(member.node.operands()), across_dims(member.node)
    for member in group.outer:
        yield member.operand, ()
    for store in group.stores:
        yield store.value, ()
