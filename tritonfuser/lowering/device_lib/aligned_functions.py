"""Positions of aligned tiles: the whole vectors of a row, and the elements beside them.

The functions are reached through ``library``, as the other helpers are.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def whole_vectors(start, row, vector: tl.constexpr):
    """The first vector that begins in a row, the elements before it, and those in whole vectors."""
    first = (start + (vector - 1)) // vector
    lead = first * vector - start
    return first, lead, (row - lead) // vector * vector


@triton.jit
def edges(lane, lead, stop, row, vector: tl.constexpr):
    """Places along a row that no whole vector has, and which lanes have one."""
    behind = lane - vector + lead + stop
    place = tl.where(lane < vector, lane, behind)
    return place, (lane < lead) | ((lane >= vector) & (behind < row))
