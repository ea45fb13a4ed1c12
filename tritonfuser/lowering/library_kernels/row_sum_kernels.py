"""The kernels that add up rows at indices, which are sorted before: see ``row_sums.py``.

Numbers that no address is a multiple of are not specialized: one kernel serves all of them.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

CHUNK = 64
"""Rows that are added up by themselves where all of them have one index."""

CHUNK_ROWS = tl.constexpr(CHUNK)


@triton.jit(do_not_specialize=["count", "rows", "least"])
def convert_keys(index, keys, count, rows, stride, least, BLOCK: tl.constexpr):
    """Indices as keys from ``least`` on. All that are no row have the key behind the last one."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index + place * stride, mask=place < count, other=0).to(tl.int64)
    row = tl.where((row >= 0) & (row < rows), row, rows)
    tl.store(keys + place, (row + least).to(keys.dtype.element_ty), mask=place < count)


@triton.jit(do_not_specialize=["count"])
def fill(number, out, count, BLOCK: tl.constexpr):
    """All elements of ``out`` equal to one in memory."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(number), mask=place < count)


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


@triton.jit
def _first_chunk(begin):
    """The first chunk that begins at a place or behind it."""
    return (begin + CHUNK_ROWS - 1) // CHUNK_ROWS


@triton.jit
def _rows_at(value, order, place, end, stride, column, inside, dtype: tl.constexpr):
    """The rows of ``value`` at places of the order that are below an end: [places, columns].

    Places are a column of one element each: of a vector of them, Triton 3.6 gives the mask of a
    load another layout than its addresses, and fails.
    """
    row = tl.load(order + place, mask=place < end, other=0).to(tl.int64)
    return tl.load(value + row * stride + column, mask=(place < end) & inside, other=0).to(dtype)


@triton.jit(do_not_specialize=["rows", "least"])
def sum_chunks(
    keys, order, value, parts, width, rows, least, stride, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """The sums of chunks whose rows have one index."""
    chunk = tl.program_id(0).to(tl.int64)
    key = tl.load(keys + chunk * CHUNK_ROWS)
    last = tl.load(keys + chunk * CHUNK_ROWS + (CHUNK_ROWS - 1))
    if (key == last) & (key.to(tl.int64) < rows + least):
        column = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
        lane = tl.arange(0, ROWS)[:, None]
        dtype: tl.constexpr = parts.dtype.element_ty
        total = tl.zeros([ROWS, COLS], dtype)
        end = (chunk + 1) * CHUNK_ROWS
        for start in range(chunk * CHUNK_ROWS, end, ROWS):
            total += _rows_at(
                value, order, start + lane, end, stride, column, column < width, dtype
            )
        tl.store(parts + chunk * width + column, tl.sum(total, 0)[None, :], mask=column < width)


@triton.jit
def _runs(keys, begins, place, count, rows, least, BY_ROW: tl.constexpr):
    """The row at each place, and the sorted places of what is added to it: none, where there is a
    whole chunk. A place is a row, or the sorted place of an index, whose row has the first one."""
    if BY_ROW:
        row = place
        begin = tl.load(begins + row, mask=row < rows, other=0)
        mine = row < rows
    else:
        key = tl.load(keys + place, mask=place < count, other=0)
        before = tl.load(keys + place - 1, mask=(place > 0) & (place < count), other=0)
        row = key.to(tl.int64) - least
        begin = place
        mine = (place < count) & ((place == 0) | (key != before)) & (row < rows)
    end = tl.load(begins + row + 1, mask=mine, other=0)
    mine = mine & ((_first_chunk(begin) + 1) * CHUNK_ROWS > end)
    return row, mine, begin, tl.where(mine, end, begin)


@triton.jit(do_not_specialize=["count", "rows", "least"])
def sum_short(
    keys,
    begins,
    order,
    value,
    acc,
    out,
    count,
    rows,
    width,
    least,
    stride,
    acc_row,
    acc_column,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    DTYPE: tl.constexpr,
    BY_ROW: tl.constexpr,
):
    """The results of indices that no whole chunk has: each adds its rows one after another."""
    place = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    row, mine, begin, end = _runs(keys, begins, place, count, rows, least, BY_ROW)
    column = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    inside = column < width
    source = acc + row * acc_row + column.to(tl.int64) * acc_column
    total = tl.load(source, mask=mine & inside, other=0).to(DTYPE)
    for step in range(0, tl.max(tl.max(end - begin, 1), 0), 8):
        at = begin + step
        x0 = _rows_at(value, order, at, end, stride, column, inside, DTYPE)
        x1 = _rows_at(value, order, at + 1, end, stride, column, inside, DTYPE)
        x2 = _rows_at(value, order, at + 2, end, stride, column, inside, DTYPE)
        x3 = _rows_at(value, order, at + 3, end, stride, column, inside, DTYPE)
        x4 = _rows_at(value, order, at + 4, end, stride, column, inside, DTYPE)
        x5 = _rows_at(value, order, at + 5, end, stride, column, inside, DTYPE)
        x6 = _rows_at(value, order, at + 6, end, stride, column, inside, DTYPE)
        x7 = _rows_at(value, order, at + 7, end, stride, column, inside, DTYPE)
        total = total + x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7
    target = out + row * width + column
    tl.store(target, total.to(out.dtype.element_ty), mask=mine & inside)


@triton.jit(do_not_specialize=["rows", "least"])
def sum_long(
    keys,
    begins,
    order,
    value,
    parts,
    acc,
    out,
    rows,
    width,
    least,
    stride,
    acc_row,
    acc_column,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """The results of indices that have whole chunks: the first of these chunks adds up all."""
    chunk = tl.program_id(0).to(tl.int64)
    row = tl.load(keys + chunk * CHUNK_ROWS).to(tl.int64) - least
    if row < rows:
        begin = tl.load(begins + row)
        end = tl.load(begins + row + 1)
        if (chunk == _first_chunk(begin)) & ((chunk + 1) * CHUNK_ROWS <= end):
            column = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
            inside = column < width
            lane = tl.arange(0, ROWS)[:, None]
            dtype: tl.constexpr = parts.dtype.element_ty
            total = tl.zeros([ROWS, COLS], dtype)
            behind = end // CHUNK_ROWS
            first = chunk * CHUNK_ROWS
            for start in range(begin, first, ROWS):
                total += _rows_at(value, order, start + lane, first, stride, column, inside, dtype)
            for start in range(chunk, behind, ROWS):
                mask = (start + lane < behind) & inside
                total += tl.load(parts + (start + lane) * width + column, mask=mask, other=0)
            for start in range(behind * CHUNK_ROWS, end, ROWS):
                total += _rows_at(value, order, start + lane, end, stride, column, inside, dtype)
            source = acc + row * acc_row + column.to(tl.int64) * acc_column
            found = tl.sum(total, 0)[None, :] + tl.load(source, mask=inside, other=0).to(dtype)
            tl.store(out + row * width + column, found.to(out.dtype.element_ty), mask=inside)
