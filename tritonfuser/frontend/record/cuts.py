"""``Cut``: how one dim of a tensor is cut over a mesh, as factors of its extent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Union

from ..vocabulary.enums import ParallelType
from .device_mesh import DeviceMesh

Factor = Union[ParallelType, int]
"""A mesh type: one of its parts on each device; a number: so many blocks on every device."""

Cut = tuple[Factor, ...]
"""The factors of an extent, outermost first, without what lies inside of the last mesh type.

``()`` is not cut; ``(mesh_x,)`` is one part for each device, in their order; ``(3, mesh_x)`` is
three blocks, each cut in such parts, so that a device has three pieces, one after the other. A
number of -1 follows from the extent: ``(-1, mesh_x)`` deals out single elements in turn, and
``(-1, mesh_x, 4)`` four at a time.
"""

Shards = tuple[Cut, ...]
"""A cut for each dim."""

OPEN = -1
"""A number of blocks that follows from the extent."""


def kinds(cut: Cut) -> tuple[ParallelType, ...]:
    """The mesh types among the factors."""
    return tuple(factor for factor in cut if isinstance(factor, ParallelType))


def count(mesh: DeviceMesh, factor: Factor) -> int:
    """The extent of one factor."""
    return mesh.size_of(factor) if isinstance(factor, ParallelType) else factor


def parts(mesh: DeviceMesh, cut: Cut) -> int:
    """How many times smaller a device's part is than the dim."""
    return math.prod(mesh.size_of(kind) for kind in kinds(cut))


def blocks(cut: Cut) -> int:
    """How many pieces of the dim a device has."""
    return math.prod(factor for factor in cut if isinstance(factor, int))


def span(mesh: DeviceMesh, cut: Cut) -> int:
    """What the extent must be a multiple of."""
    return math.prod(abs(count(mesh, factor)) for factor in cut)


def normal(factors: Iterable[Factor]) -> Cut:
    """The one form of equal cuts: numbers next to each other multiplied, none at the end."""
    found: list[Factor] = []
    for factor in factors:
        last = found[-1] if found else None
        if isinstance(factor, int) and isinstance(last, int):
            found[-1] = last * factor
        elif factor != 1:
            found.append(factor)
    if found and isinstance(found[-1], int):
        found.pop()
    return tuple(found)


def at_extent(mesh: DeviceMesh, cut: Cut, extent: int) -> Cut:
    """The cut of a dim whose extent is known, in normal form."""
    rest = max(extent // span(mesh, cut), 1)
    return normal(rest if factor == OPEN else factor for factor in cut)


def common(one: Cut, other: Cut) -> Cut:
    """The outer factors that two cuts have in common."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return normal(one[:same])
