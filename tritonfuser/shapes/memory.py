"""Layouts of tensors in memory: strides, and how wide indices of elements are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dtypes import DataType
from ..symbolic.queries import assume_abs, assume_at_most, assume_empty, assume_max

INT32_LIMIT = 2**31
"""The smallest number of elements that needs 64-bit indices."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The layout of a tensor in a buffer.

    Attributes
    ----------
    sizes, strides : tuple of int
        In elements.
    offset : int
        The distance of the first element from the start of the buffer, in elements.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


def row_major(rank: int) -> tuple[int, ...]:
    """The order of the dims of a row-major tensor, as in ``strides_for_order``."""
    return tuple(reversed(range(rank)))


def contiguous_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, as torch gives them: a size-0 dim counts as 1."""
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step *= assume_max(size, 1)
    return tuple(reversed(strides))


def strides_for_order(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Dense strides where dim ``i`` has the ``order[i]``-th smallest; 0 is the smallest."""
    strides = [0] * len(sizes)
    step = 1
    for dim in sorted(range(len(sizes)), key=lambda d: order[d]):
        strides[dim] = step
        step *= assume_max(sizes[dim], 1)
    return tuple(strides)


def index_dtype(memories: Sequence[Memory]) -> DataType:
    """Int where some tensor spans 2 ** 31 elements or more of its buffer, else Int32."""
    for memory in memories:
        if assume_empty(memory.sizes):
            continue
        last = sum(
            (s - 1) * assume_abs(t) for s, t in zip(memory.sizes, memory.strides, strict=True)
        )
        if assume_at_most(INT32_LIMIT, last + memory.offset + 1):
            return DataType.Int
    return DataType.Int32
