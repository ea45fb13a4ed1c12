"""The kernels that sort indices and find where each row begins: see ``sorted_indices.py``.

Numbers that no address is a multiple of are not specialized: one kernel serves all of them.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _row_at(index, place, count, rows, stride):
    """The row that an index names; ``rows``, the one behind the last, where it is none."""
    row = tl.load(index + place.to(tl.int64) * stride, mask=place < count, other=0).to(tl.int64)
    return tl.where((row >= 0) & (row < rows), row, rows)


@triton.jit(do_not_specialize=["count", "rows", "least"])
def convert_keys(index, keys, count, rows, stride, least, BLOCK: tl.constexpr):
    """Indices as keys from ``least`` on. All that are no row have the key behind the last one."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row = _row_at(index, place, count, rows, stride)
    tl.store(keys + place, (row + least).to(keys.dtype.element_ty), mask=place < count)


@triton.jit(do_not_specialize=["count", "rows"])
def rank_keys(
    index,
    keys,
    order,
    count,
    rows,
    stride,
    BLOCK: tl.constexpr,
    STEP: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Sorted rows and the places that they came from: each goes behind all that are less.

    A row and its place are compared as one number, so that equal rows stay in their order.
    """
    place = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    row = _row_at(index, place, count, rows, stride)
    number = (row * count + place).to(DTYPE)
    less = tl.zeros([BLOCK, STEP], tl.int32)
    for start in range(0, count, STEP):
        other = start + tl.arange(0, STEP)[None, :]
        found = (_row_at(index, other, count, rows, stride) * count + other).to(DTYPE)
        less += ((found < number) & (other < count)).to(tl.int32)
    rank = tl.sum(less, 1)[:, None]
    tl.store(keys + rank, row.to(keys.dtype.element_ty), mask=place < count)
    tl.store(order + rank, place, mask=place < count)


@triton.jit(do_not_specialize=["count", "rows", "least", "halvings"])
def find_begins(keys, begins, count, rows, least, halvings, BLOCK: tl.constexpr):
    """For each row, and for the end, how many sorted keys are below it."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    low = tl.zeros([BLOCK], tl.int64)
    high = tl.zeros([BLOCK], tl.int64) + count
    for _ in range(halvings):
        middle = (low + high) // 2
        key = tl.load(keys + middle, mask=low < high, other=0).to(tl.int64)
        below = (low < high) & (key < row + least)
        low = tl.where(below, middle + 1, low)
        high = tl.where(below, high, middle)
    tl.store(begins + row, low, mask=row <= rows)
