"""The axes that the second side of a flat kernel's tile may run along."""

from __future__ import annotations

from math import prod

from ..problem import Problem
from ..streams import Stream
from .memory.runs import contiguous_axes

SIDE_BYTES = 128
"""Bytes of contiguous positions along the second side, at least: axes join it until then."""


def sides_along(problem: Problem, stream: Stream) -> list[tuple[int, ...]]:
    """Sides that a tensor is contiguous along: from its fastest axis on, and without those axes
    that are the innermost ones of the kernel too."""
    axes = contiguous_axes(stream)
    shared = 0
    inner = [place for place, size in enumerate(problem.axes) if size > 1][::-1]
    while shared < min(len(axes), len(inner)) and axes[shared] == inner[shared]:
        shared += 1
    found = []
    for first in {0, shared}:
        side: list[int] = []
        for axis in axes[first:]:
            side.insert(0, axis)
            if len(side) < len(inner):
                found.append(tuple(side))
            if is_long(prod(problem.axes[p] for p in side), stream.item_bytes):
                break
    return list(dict.fromkeys(found))


def is_long(positions: int, item_bytes: int) -> bool:
    """Whether a side is long enough: ``SIDE_BYTES`` of contiguous positions."""
    return positions * item_bytes >= SIDE_BYTES


def broadcast_side(problem: Problem, stream: Stream) -> tuple[int, ...]:
    """The axes that a tensor is broadcast along, outside of its own innermost axis."""
    has = {term.axis for term in stream.stride_terms}
    innermost = max(has, default=0)
    return tuple(
        place
        for place, size in enumerate(problem.axes)
        if size > 1 and place < innermost and place not in has
    )
