"""Matches the loop nest of an anchor with that of a group: which element each position computes.

Rows of both nests are matched by their row-major number, or axis by axis.
"""

from __future__ import annotations

from dataclasses import replace

from ...shapes.index_map import Guard, Index
from ...symbolic.index_expr import Affine, Axis, Bounded, digit, extent
from ...symbolic.queries import is_known_equal, is_known_less
from ...symbolic.row_major import linear, unravel
from ...symbolic.sizes import hint
from ...symbolic.substitution import substitute
from ..access.aliases import buffer_strides
from ..access.reads import Guards
from ..access.traffic import order_axes
from ..segments.member import Member
from .anchor import Anchor
from .anchor_maker import AnchorMaker, across_dims
from .fusion_group import FusionGroup


def in_nest_of(group: FusionGroup, anchor: Anchor, maker: AnchorMaker) -> Anchor | None:
    """The anchor in the loop nest of a group; None if the nests do not match.

    Positions of both nests are matched by their row-major number; in a flat kernel in memory order,
    so that adjacent positions of a tile are adjacent in memory. A value with fewer elements takes
    the first positions. A value over the rows of a reduction and the elements along them is matched
    as that reduction was, if the group has it. A box with axes of its own takes the group's axes of
    the same extents for them.
    """
    if anchor.member is None and group.reduced:
        rows = is_known_equal(anchor.loops.row_extent, group.loops.row_extent)
        return _along_rows(anchor, group, maker) if rows else _in_rows(anchor, group, maker)
    return _along_rows(anchor, group, maker)


def _in_rows(anchor: Anchor, group: FusionGroup, maker: AnchorMaker) -> Anchor | None:
    """A value over the rows and the elements along them, matched as a reduction of it was."""
    homes = (maker.reducer(member.node) for member in group.members)
    home = next((h for h in homes if {*h.parallel, *h.reduced} == {*anchor.parallel}), None)
    if home is None:
        return _in_rows_of_box(anchor, group, maker)
    at = dict[Axis, Affine]()
    for mine, others in ((home.parallel, group.parallel), (home.reduced, group.reduced)):
        at.update(zip(mine, unravel(_position(others), _extents(mine)), strict=True))
    return _with_axes(anchor, at, group, maker)


def _in_rows_of_box(anchor: Anchor, group: FusionGroup, maker: AnchorMaker) -> Anchor | None:
    """A box with axes of the group in place of its own."""
    own = axes_of_box(anchor, group)
    if own is None:
        return None
    return _with_axes(anchor, {axis: digit(other) for axis, other in own.items()}, group, maker)


def axes_of_box(anchor: Anchor, group: FusionGroup) -> dict[Axis, Axis] | None:
    """For each axis that only the box has, an axis that only the group has; None if they do not
    match in number and extents. For groups with rows.

    Each part of a concatenation has an axis of its own, which may be as long as the rows of the
    kernel that reduces the part.
    """
    axes = (*group.parallel, *group.reduced)
    own = [axis for axis in anchor.parallel if axis not in axes]
    free = [axis for axis in axes if axis not in anchor.parallel]
    if anchor.part is None or not group.reduced or not own or len(own) != len(free):
        return None
    pairs = dict(zip(own, free, strict=True))
    alike = all(is_known_equal(axis.extent, other.extent) for axis, other in pairs.items())
    return pairs if alike else None


def _with_axes(
    anchor: Anchor, at: dict[Axis, Affine], group: FusionGroup, maker: AnchorMaker
) -> Anchor:
    """A value over the rows and the elements along them, its axes in terms of the group's."""
    index = tuple(substitute(item, at) for item in anchor.index)
    found = replace(anchor, index=index, parallel=(*group.parallel, *group.reduced))
    return _walked_in(found, group, maker)


def _along_rows(anchor: Anchor, group: FusionGroup, maker: AnchorMaker) -> Anchor:
    """The anchor with its rows, or positions, matched with those of a group."""
    index, guards = _matched_by_axis(anchor, group, maker) or _matched_by_number(
        anchor, group, maker
    )
    member = None
    if anchor.member is not None:
        operand = next(anchor.member.node.operands()).tensor.sizes
        dims = across_dims(anchor.member.node)
        inner = iter(unravel(_position(group.reduced), tuple(operand[d] for d in dims)))
        outer = iter(index)
        place = tuple(next(inner if d in dims else outer) for d in range(len(operand)))
        member = Member(anchor.member.node, index, place, group.reduced)
    anchor = replace(
        anchor,
        index=index,
        member=member,
        parallel=group.parallel,
        reduced=group.reduced,
        guards=guards,
    )
    return _walked_in(anchor, group, maker)


def _matched_by_axis(
    anchor: Anchor, group: FusionGroup, maker: AnchorMaker
) -> tuple[Index, Guards] | None:
    """The element and the guards of a box that is slightly smaller than the nest of a flat group,
    with axes matched one by one. None for other boxes.

    A program then has the same rows of both and loads shared elements once, as for the two halves
    of a rotation of 57 elements. Matched by number, their rows would drift apart.
    """
    few = 2 * hint(anchor.loops.row_extent) < hint(group.loops.row_extent)
    if anchor.part is None or group.reduced or few:
        return None
    mine, others = _stored_axes(anchor, maker), _flat_axes(group, maker)
    shorter = [
        (axis, other)
        for axis, other in zip(mine, others, strict=False)
        if not is_known_equal(axis.extent, other.extent)
    ]
    fits = all(is_known_less(axis.extent, other.extent) for axis, other in shorter)
    if len(mine) != len(others) or not shorter or not fits:
        return None
    at = {axis: digit(other) for axis, other in zip(mine, others, strict=True)}
    guards = tuple(Guard(at[axis], 0, axis.extent) for axis, _ in shorter)
    at |= {axis: digit(Bounded(at[axis], axis.extent)) for axis, _ in shorter}
    return tuple(substitute(item, at) for item in anchor.index), guards


def _matched_by_number(
    anchor: Anchor, group: FusionGroup, maker: AnchorMaker
) -> tuple[Index, Guards]:
    """The element and the guards if positions are matched by their row-major number."""
    position = _position(_flat_axes(group, maker))
    guard = Guard(position, 0, extent(anchor.parallel))
    return _element_at(anchor, position, maker), () if guard.always else (guard,)


def _stored_axes(anchor: Anchor, maker: AnchorMaker) -> tuple[Axis, ...]:
    """The axes of a box in the memory order of its store."""
    return order_axes(anchor.parallel, [maker.traffic.of_store(anchor.store)])


def _flat_axes(group: FusionGroup, maker: AnchorMaker) -> tuple[Axis, ...]:
    """A group's parallel axes; those of a flat kernel in memory order."""
    if group.reduced or len(group.parallel) < 2:
        return group.parallel
    return order_axes(group.parallel, maker.traffic(group.reads, group.stores))


def _element_at(anchor: Anchor, position: Affine, maker: AnchorMaker) -> Index:
    """The element that an anchor computes at a position; positions of a stored value are numbered
    in memory order."""
    if anchor.member is not None or anchor.scatter is not None:
        return unravel(position, anchor.sizes)
    if anchor.part is not None:
        return _element_of_box(anchor, _stored_axes(anchor, maker), position)
    strides = buffer_strides(maker.fusion, anchor.value)
    dims = sorted(range(len(strides)), key=lambda d: -hint(strides[d]))
    places = unravel(position, tuple(anchor.sizes[d] for d in dims))
    return tuple(places[dims.index(d)] for d in range(len(dims)))


def _walked_in(anchor: Anchor, group: FusionGroup, maker: AnchorMaker) -> Anchor:
    """An anchor with its footprint in terms of the axes of a group."""
    computed_at = {**maker.home_index, **group.computed_at}
    return replace(anchor, footprint=maker.footprint(anchor, computed_at))


def _element_of_box(anchor: Anchor, axes: tuple[Axis, ...], position: Affine) -> Index:
    """The element of its value that an anchor over a box computes at a position of its axes."""
    places = unravel(position, _extents(axes))
    # If the kernel has more positions, a guard bounds the first axis.
    at = {
        axis: digit(Bounded(place, axis.extent)) for axis, place in zip(axes, places, strict=True)
    }
    return tuple(substitute(item, at) for item in anchor.index)


def _position(axes: tuple[Axis, ...]) -> Affine:
    return linear(tuple(digit(a) for a in axes), _extents(axes))


def _extents(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    return tuple(axis.extent for axis in axes)
