"""The kernels that add up rows at indices, which are sorted before: see ``row_sums.py``.

Numbers that no address is a multiple of are not specialized: one kernel serves all of them.
``across`` programs that follow one another share the columns of the same rows, tile by tile.
Widths and strides of rows are given as multiples of ``UNIT``, so that loads of so many columns are
vectors.
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

SPAN = 4
"""Neighbouring chunks that a program looks at. Most have rows of several indices."""

CHUNKS = tl.constexpr(SPAN)

AT_ONCE = tl.constexpr(8)
"""Loads that wait for memory together."""


@triton.jit
def fill(number, out, count, BLOCK: tl.constexpr):
    """All elements of ``out`` equal to one in memory.

    ``count`` is specialized, since stores are vectors where their mask ends at a multiple of one.
    """
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(number), mask=place < count)


@triton.jit
def _in_elements(units, UNIT: tl.constexpr):
    """A number of vectors in elements, of which there may be more than int32 holds."""
    return tl.full([], UNIT, tl.int64) * units


@triton.jit
def _share(across):
    """The number of a program among those that begin with the same columns, and its columns."""
    return (tl.program_id(0) // across).to(tl.int64), tl.program_id(0) % across


@triton.jit
def _first_chunk(begin):
    """The first chunk that begins at a place or behind it."""
    return (begin + CHUNK_ROWS - 1) // CHUNK_ROWS


@triton.jit
def _add_rows(
    total, value, order, begin, end, last, stride, column, inside, apart, STEPS: tl.constexpr
):
    """``total`` [rows, columns] and rows of ``value`` at places of the order that are below an end:
    those from ``begin`` on, ``apart`` from one step to the next.

    All places are loaded before all rows, and these before they are added: ptxas begins more loads
    before it adds where they are written so. The order is loaded without a mask, from its last
    place where there is none: Triton 3.6 gives the mask of such a load another layout than its
    addresses, and fails.
    """
    rows, loaded = (), ()
    for step in tl.static_range(STEPS):
        rows += (tl.load(order + tl.minimum(begin + step * apart, last)),)
    for step in tl.static_range(STEPS):
        source = value + (rows[step] * stride)[:, None] + column
        mask = (begin + step * apart < end)[:, None] & inside
        loaded += (tl.load(source, mask=mask, other=0),)
    for step in tl.static_range(STEPS):
        total += loaded[step].to(total.dtype)
    return total


@triton.jit
def _more_rows(total, value, order, begin, end, last, stride, column, inside, ROWS: tl.constexpr):
    """``total`` [rows, columns] and the rows of ``value`` at places of the order: some of a chunk
    at once."""
    steps: tl.constexpr = min(AT_ONCE, CHUNK_ROWS // ROWS)
    for start in range(begin, end, steps * ROWS):
        place = start + tl.arange(0, ROWS)
        total = _add_rows(
            total, value, order, place, end, last, stride, column, inside, ROWS, steps
        )
    return total


@triton.jit
def _chosen(flags, step):
    """One of a program's flags, one for each of its chunks."""
    return tl.sum(tl.where(tl.arange(0, CHUNKS) == step, flags, 0)) > 0


@triton.jit
def _chunk_sum(
    order, value, parts, chunk, width, stride, column, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """The sum of the rows of a chunk: [1, columns]."""
    dtype: tl.constexpr = parts.dtype.element_ty
    total = tl.zeros([ROWS, COLS], dtype)
    begin, end, inside = chunk * CHUNK_ROWS, (chunk + 1) * CHUNK_ROWS, column < width
    last = end - 1
    total = _more_rows(total, value, order, begin, end, last, stride, column, inside, ROWS)
    return tl.sum(total, 0)[None, :]


@triton.jit(do_not_specialize=["count", "across", "rows", "least"])
def sum_chunks(
    keys,
    order,
    value,
    parts,
    count,
    units,
    across,
    rows,
    least,
    stride_units,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    UNIT: tl.constexpr,
):
    """The sums of chunks whose rows have one index."""
    width, stride = units * UNIT, _in_elements(stride_units, UNIT)
    span, share = _share(across)
    chunk = span * CHUNKS + tl.arange(0, CHUNKS)
    there = (chunk + 1) * CHUNK_ROWS <= count
    key = tl.load(keys + chunk * CHUNK_ROWS, mask=there, other=0).to(tl.int64)
    last = tl.load(keys + chunk * CHUNK_ROWS + (CHUNK_ROWS - 1), mask=there, other=0).to(tl.int64)
    whole = (there & (key == last) & (key < rows + least)).to(tl.int32)
    if tl.max(whole) > 0:
        for step in range(CHUNKS):
            if _chosen(whole, step):
                mine = span * CHUNKS + step
                for start in range(share * COLS, width, across * COLS):
                    column = start + tl.arange(0, COLS)[None, :]
                    found = _chunk_sum(order, value, parts, mine, width, stride, column, ROWS, COLS)
                    tl.store(parts + mine * width + column, found, mask=column < width)


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


@triton.jit(do_not_specialize=["count", "across", "rows", "least"])
def sum_short(
    keys,
    begins,
    order,
    value,
    acc,
    out,
    count,
    units,
    across,
    rows,
    least,
    stride_units,
    acc_row,
    acc_column,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    DTYPE: tl.constexpr,
    BY_ROW: tl.constexpr,
    STEPS: tl.constexpr,
    UNIT: tl.constexpr,
):
    """The results of indices that no whole chunk has: each adds its rows one after another."""
    width, stride = units * UNIT, _in_elements(stride_units, UNIT)
    tile, share = _share(across)
    place = tile * ROWS + tl.arange(0, ROWS)
    row, mine, begin, end = _runs(keys, begins, place, count, rows, least, BY_ROW)
    longest = tl.max(end - begin, 0)
    for first in range(share * COLS, width, across * COLS):
        column = first + tl.arange(0, COLS)[None, :]
        inside = column < width
        stored = mine[:, None] & inside
        source = acc + (row * acc_row)[:, None] + column.to(tl.int64) * acc_column
        total = tl.load(source, mask=stored, other=0).to(DTYPE)
        for start in range(0, longest, STEPS):
            total = _add_rows(
                total, value, order, begin + start, end, count - 1, stride, column, inside, 1, STEPS
            )
        target = out + (row * width)[:, None] + column
        tl.store(target, total.to(out.dtype.element_ty), mask=stored)


@triton.jit
def _long_sum(
    order,
    value,
    parts,
    begin,
    end,
    chunk,
    width,
    stride,
    column,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """The sum of the rows of an index, of which the first whole chunk is given: [1, columns]."""
    dtype: tl.constexpr = parts.dtype.element_ty
    inside = column < width
    total = tl.zeros([ROWS, COLS], dtype)
    first, behind, last = chunk * CHUNK_ROWS, end // CHUNK_ROWS, end - 1
    total = _more_rows(total, value, order, begin, first, last, stride, column, inside, ROWS)
    for start in range(chunk, behind, AT_ONCE * ROWS):
        for step in tl.static_range(AT_ONCE):
            part = start + step * ROWS + tl.arange(0, ROWS)[:, None]
            mask = (part < behind) & inside
            total += tl.load(parts + part * width + column, mask=mask, other=0)
    rest = behind * CHUNK_ROWS
    total = _more_rows(total, value, order, rest, end, last, stride, column, inside, ROWS)
    return tl.sum(total, 0)[None, :]


@triton.jit(do_not_specialize=["count", "across", "rows", "least"])
def sum_long(
    keys,
    begins,
    order,
    value,
    parts,
    acc,
    out,
    count,
    units,
    across,
    rows,
    least,
    stride_units,
    acc_row,
    acc_column,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    UNIT: tl.constexpr,
):
    """The results of indices that have whole chunks: the first of these chunks adds up all."""
    width, stride = units * UNIT, _in_elements(stride_units, UNIT)
    span, share = _share(across)
    chunks = span * CHUNKS + tl.arange(0, CHUNKS)
    there = (chunks + 1) * CHUNK_ROWS <= count
    named = tl.load(keys + chunks * CHUNK_ROWS, mask=there, other=0).to(tl.int64) - least
    there = there & (named < rows)
    ends = tl.load(begins + named + 1, mask=there, other=0)
    first = there & (chunks == _first_chunk(tl.load(begins + named, mask=there, other=0)))
    first = (first & ((chunks + 1) * CHUNK_ROWS <= ends)).to(tl.int32)
    if tl.max(first) > 0:
        for step in range(CHUNKS):
            if _chosen(first, step):
                chunk = span * CHUNKS + step
                row = tl.load(keys + chunk * CHUNK_ROWS).to(tl.int64) - least
                begin, end = tl.load(begins + row), tl.load(begins + row + 1)
                for start in range(share * COLS, width, across * COLS):
                    column = start + tl.arange(0, COLS)[None, :]
                    found = _long_sum(
                        order, value, parts, begin, end, chunk, width, stride, column, ROWS, COLS
                    )
                    source = acc + row * acc_row + column.to(tl.int64) * acc_column
                    found += tl.load(source, mask=column < width, other=0).to(found.dtype)
                    target = out + row * width + column
                    tl.store(target, found.to(out.dtype.element_ty), mask=column < width)
