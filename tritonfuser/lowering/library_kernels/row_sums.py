"""Rows added up at indices, on a GPU.

The rows are sorted by index, so that each result is a sum of neighbours in that order: the same
bits in every run, which atomic additions do not give. A program adds up some results of few rows
each, column by column. Rows of one index that fill a chunk are added up chunk by chunk first, so
that an index that many rows have does not wait for one program.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import torch
import triton
import triton.language as tl

from .row_sum_kernels import CHUNK, SPAN, fill, sum_chunks, sum_long, sum_short
from .sorted_indices import sort_indices

ELEMENTS = 1024
"""Of a tile: results of some columns, or columns of some rows of a chunk."""

COLUMNS = 128
"""Most columns of a tile: 16 lanes with 16 bytes of halves each."""

LEAST_STEPS, MOST_STEPS = 4, 8
"""Rows that are added to a result at once: as many as an index has on average, within these. H200:
5.2 million rows of 14 halves into 328,440 take 576 us with 8, 635 with 16."""

VECTOR = 8
"""Elements of a vector at most: 16 bytes of halves."""

WARPS = 4
"""Of a program that adds."""

PROGRAMS = 16384
"""Programs from which on no two share the columns of a tile's rows. H200: 16,384 halves of 4096
columns into 128,256 rows take 784 us with 4096, 476 with so many."""

MOST_COLUMNS = 1 << 30
"""Of a row: kernels count columns in 32 bits."""

FILLED = 4096
"""Elements of a program that fills."""

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
    return acc[0].numel() <= MOST_COLUMNS


def add_rows(acc: torch.Tensor, index: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A copy of ``acc`` with the rows of ``value`` added at the rows that ``index`` names.

    An index that is no row adds nothing. Halves are added up in float32 and rounded once. -0.0 may
    become 0.0.

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
    rows, count = flat.shape[0], values.shape[0]
    wide, dtype = _WIDE[acc.dtype]
    keys, order, begins, least = sort_indices(index, rows)
    out = torch.empty(acc.shape, dtype=acc.dtype, device=acc.device)
    by_row = rows <= count
    if not by_row:
        _copy(flat, out)
    cut = _Cut.of(values)
    across, grid = cut.programs(triton.cdiv(rows if by_row else count, cut.rows))
    numbers = count, cut.units, across, rows, least, cut.stride, *flat.stride()
    steps = min(max(triton.next_power_of_2(count // rows), LEAST_STEPS), MOST_STEPS)
    how = {"DTYPE": dtype, "BY_ROW": by_row, "STEPS": steps, **cut.constants}
    sum_short[grid](keys, begins, order, values, flat, out, *numbers, **how)
    if count >= CHUNK:
        cut = _Cut.of(values, CHUNK)
        across, grid = cut.programs(triton.cdiv(count // CHUNK, SPAN))
        numbers = count, cut.units, across, rows, least, cut.stride
        parts = torch.empty((count // CHUNK, flat.shape[1]), dtype=wide, device=acc.device)
        sum_chunks[grid](keys, order, values, parts, *numbers, **cut.constants)
        given = keys, begins, order, values, parts, flat, out
        sum_long[grid](*given, *numbers, *flat.stride(), **cut.constants)
    return out


@dataclass(frozen=True)
class _Cut:
    """How kernels cut rows into tiles.

    Attributes
    ----------
    rows, columns : int
        Elements of a tile, powers of two.
    unit : int
        Elements of a vector: they divide rows, and the steps between them.
    units, stride : int
        Elements of a row, and from one row to the next, in such vectors.
    """

    rows: int
    columns: int
    unit: int
    units: int
    stride: int

    @staticmethod
    def of(values: torch.Tensor, most_rows: int = ELEMENTS) -> _Cut:
        """That of a tensor ``[rows, columns]``."""
        width, stride = values.shape[1], values.stride(0)
        columns = min(triton.next_power_of_2(width), COLUMNS)
        unit = gcd(width, stride, VECTOR)
        rows = min(ELEMENTS // columns, most_rows)
        return _Cut(rows, columns, unit, width // unit, stride // unit)

    @property
    def constants(self) -> dict[str, Any]:
        """What the kernels are compiled for."""
        return {"ROWS": self.rows, "COLS": self.columns, "UNIT": self.unit, "num_warps": WARPS}

    def programs(self, tiles: int) -> tuple[int, tuple[int]]:
        """How many programs share the columns of so many tiles, and how many there are in all."""
        across = triton.cdiv(self.units * self.unit, self.columns)
        across = min(across, triton.cdiv(PROGRAMS, tiles))
        return across, (tiles * across,)


def _copy(acc: torch.Tensor, out: torch.Tensor) -> None:
    """Copy ``acc``; torch copies what is expanded at a third of the bandwidth (H200)."""
    if any(acc.stride()):
        out.view(acc.shape).copy_(acc)
    else:
        fill[(triton.cdiv(out.numel(), FILLED),)](acc, out, out.numel(), BLOCK=FILLED)
