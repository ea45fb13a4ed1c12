"""Rows added up at indices, on a GPU.

The rows are sorted by index, so that each result is a sum of neighbours in that order: the same
bits in every run, which atomic additions do not give. A program adds up some results of few rows
each, column by column. Rows of one index that fill a chunk are added up chunk by chunk first, so
that an index that many rows have does not wait for one program.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ...device import MAX_PROGRAMS_Y
from .row_sum_kernels import (
    CHUNK,
    convert_keys,
    fill,
    find_begins,
    sum_chunks,
    sum_long,
    sum_short,
)

ELEMENTS = 1024
"""Of a tile: results of some columns, or columns of some rows of a chunk."""

COLUMNS = 128
"""Most columns of a tile: 16 lanes with 16 bytes of halves each."""

WARPS = 4
"""Of a program that adds."""

KEYS = 1024
"""Indices of a program that converts them."""

FILLED = 4096
"""Elements of a program that fills."""

SEARCHED_KEYS = 256
"""Rows of a program that looks for where they begin: as many searches wait for memory."""

_KEY_DTYPES = (torch.int8, torch.int16, torch.int32, torch.int64)
_WIDE = {
    torch.float16: (torch.float32, tl.float32),
    torch.bfloat16: (torch.float32, tl.float32),
    torch.float32: (torch.float32, tl.float32),
    torch.float64: (torch.float64, tl.float64),
    torch.int32: (torch.int32, tl.int32),
    torch.int64: (torch.int64, tl.int64),
}
"""The dtypes that the kernels take, and the one that each is added up in."""


def takes(acc: torch.Tensor, index: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether the kernels add up such tensors, and there is something to add."""
    if acc.dtype not in _WIDE or not value.numel() or not acc.numel():
        return False
    return acc[0].numel() <= COLUMNS * MAX_PROGRAMS_Y


def add_rows(acc: torch.Tensor, index: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A copy of ``acc`` with the rows of ``value`` added at the rows that ``index`` names.

    An index that is no row adds nothing. Halves are added up in float32 and rounded once.

    Parameters
    ----------
    acc : torch.Tensor
        ``[rows, ...]``; it may be expanded.
    index : torch.Tensor
        ``[indices]``, int32 or int64.
    value : torch.Tensor
        ``[indices, ...]``, of the dtype of ``acc``.

    Returns
    -------
    torch.Tensor
        ``[rows, ...]``, contiguous.
    """
    flat = acc.flatten(1) if acc.dim() > 1 else acc[:, None]
    values = value.reshape(value.shape[0], -1)
    if values.stride(1) != 1:
        values = values.contiguous()
    (rows, width), count = flat.shape, values.shape[0]
    wide, dtype = _WIDE[acc.dtype]
    keys, order, begins, least = _sorted(index, rows)
    out = torch.empty(acc.shape, dtype=acc.dtype, device=acc.device)
    by_row = rows <= count
    if not by_row:
        _copy(flat, out)
    columns = min(triton.next_power_of_2(width), COLUMNS)
    across = triton.cdiv(width, columns)
    tile: dict[str, Any] = {"ROWS": ELEMENTS // columns, "COLS": columns, "num_warps": WARPS}
    strides = values.stride(0), *flat.stride()
    grid = triton.cdiv(rows if by_row else count, ELEMENTS // columns), across
    given = values, flat, out, count, rows, width, least
    sum_short[grid](keys, begins, order, *given, *strides, DTYPE=dtype, BY_ROW=by_row, **tile)
    if count >= CHUNK:
        tile["ROWS"] = min(tile["ROWS"], CHUNK)
        chunks = count // CHUNK
        parts = torch.empty((chunks, width), dtype=wide, device=acc.device)
        grid = chunks, across
        sum_chunks[grid](keys, order, values, parts, width, rows, least, strides[0], **tile)
        added = values, parts, flat, out, rows, width, least
        sum_long[grid](keys, begins, order, *added, *strides, **tile)
    return out


def _copy(acc: torch.Tensor, out: torch.Tensor) -> None:
    """Copy ``acc``; torch copies what is expanded at a third of the bandwidth (H200)."""
    if any(acc.stride()):
        out.view(acc.shape).copy_(acc)
    else:
        fill[(triton.cdiv(out.numel(), FILLED),)](acc, out, out.numel(), BLOCK=FILLED)


def _sorted(index: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Sorted keys, the places that they came from, where each row begins, and the key of row 0.

    Keys are as narrow as the rows allow: a sort reads and writes them once for each of their bytes.
    """
    kind = next(d for d in _KEY_DTYPES if rows < 1 << torch.iinfo(d).bits)
    least = torch.iinfo(kind).min if rows > torch.iinfo(kind).max else 0
    count, device = index.shape[0], index.device
    keys = torch.empty(count, dtype=kind, device=device)
    grid = (triton.cdiv(count, KEYS),)
    convert_keys[grid](index, keys, count, rows, index.stride(0), least, BLOCK=KEYS)
    keys, order = torch.sort(keys, stable=True)
    begins = torch.empty(rows + 1, dtype=torch.int64, device=device)
    grid = (triton.cdiv(rows + 1, SEARCHED_KEYS),)
    halvings = count.bit_length()
    find_begins[grid](keys, begins, count, rows, least, halvings, BLOCK=SEARCHED_KEYS)
    return keys, order, begins, least
