"""Whether extents, dims and types are equal, with guards for sizes that vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir import Dim, Extent, TensorType, Type
from ..symbolic.queries import assume_equal
from ..symbolic.sizes import is_integer


def assume_extents_equal(a: Extent, b: Extent) -> bool:
    """Whether two extents are equal, with a guard for sizes; symbolic ones by their expressions."""
    if type(a) is int and type(b) is int:
        return a == b
    return assume_equal(a, b) if is_integer(a) and is_integer(b) else bool(a == b)


def assume_extents_fit(a: Extent, b: Extent) -> bool:
    """Whether two extents are equal; True where one is symbolic: a run may give equal ones."""
    return not (is_integer(a) and is_integer(b)) or assume_equal(a, b)


def assume_dims_equal(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Whether all dims are equal and expanded alike, from here on for all sizes."""
    return len(a) == len(b) and all(
        assume_extents_equal(x.size, y.size) and x.expanded is y.expanded
        for x, y in zip(a, b, strict=True)
    )


def assume_types_equal(a: Type, b: Type) -> bool:
    """Whether two types are equal, from here on for all sizes."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return a == b
    alike = replace(a, dims=()) == replace(b, dims=())
    return alike and assume_dims_equal(a.dims, b.dims)
