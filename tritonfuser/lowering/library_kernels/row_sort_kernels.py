"""The kernel that sorts short rows, or finds their first elements: see ``row_sorts.py``."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _key(x):
    """An integer as wide as ``x`` that is ordered as ``x`` is; every nan is the largest number.

    Of two negative floats the one with the larger bits is smaller, so that these are turned round.
    """
    if x.dtype.is_floating():
        is_nan = x != x
        x = tl.where(x == 0, tl.zeros_like(x), x)  # -0.0 equals 0.0
        if x.dtype.primitive_bitwidth == 16:
            bits = x.to(tl.int16, bitcast=True)
            bits = tl.where(is_nan, 0x7FFF, tl.where(bits < 0, bits ^ 0x7FFF, bits)).to(tl.int16)
        else:
            bits = x.to(tl.int32, bitcast=True)
            bits = tl.where(is_nan, 0x7FFFFFFF, tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits))
    else:
        bits = x
    return bits


@triton.jit(do_not_specialize=["rows", "length", "kept"])
def sort_rows(
    x,
    values,
    places,
    rows,
    length,
    kept,
    row_stride,
    stride,
    ROWS: tl.constexpr,
    LENGTH: tl.constexpr,
    KEPT: tl.constexpr,
    DESCENDING: tl.constexpr,
    HAS_VALUES: tl.constexpr,
):
    """The places of the first ``kept`` elements of each row in their order, and these elements.

    Keys and places are sorted as one number: the key in its upper half, the place below it. So
    equal elements stay in their order.
    """
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    place = tl.arange(0, LENGTH)[None, :]
    source = x + row * row_stride
    there = (row < rows) & (place < length)
    key = _key(tl.load(source + place.to(tl.int64) * stride, mask=there, other=0))
    if DESCENDING:
        key = ~key
    if key.dtype.primitive_bitwidth == 16:
        number = (tl.where(place < length, key, 0x7FFF).to(tl.int32) << 16) | place
        lower: tl.constexpr = 0xFFFF
    else:
        number = (tl.where(place < length, key, 0x7FFFFFFF).to(tl.int64) << 32) | place
        lower: tl.constexpr = 0x7FFFFFFF
    # What is behind the end has the largest key, and the largest places of those that have it.
    if KEPT == LENGTH:
        number = tl.sort(number, 1)
    else:
        number = ~tl.topk(~number, KEPT, 1)
    column = tl.arange(0, KEPT)[None, :]
    found = (number & lower).to(tl.int64)
    mask = (row < rows) & (column < kept)
    tl.store(places + row * kept + column, found, mask=mask)
    if HAS_VALUES:
        picked = tl.load(source + found * stride, mask=mask, other=0)
        tl.store(values + row * kept + column, picked, mask=mask)
