"""Indices sorted on a GPU, equal ones in their order, and where those of each row begin."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from .sorted_indices_kernels import convert_keys, find_begins, rank_keys

RANKED = 8192
"""Most indices that are each compared with all others, in one kernel. More are sorted by torch: its
radix sort is some ten kernels."""

RANKED_KEYS, RANKED_STEP = 16, 512
"""Indices of a program that ranks them, and of those that it compares them with at once."""

KEYS = 1024
"""Indices of a program that converts them."""

SEARCHED_KEYS = 256
"""Rows of a program that looks for where they begin: as many searches wait for memory."""

_KEY_DTYPES = (torch.int8, torch.int16, torch.int32, torch.int64)


class SortedIndices(NamedTuple):
    """Indices of rows in their order.

    Attributes
    ----------
    keys : torch.Tensor
        ``[indices]``: the sorted rows, counted from ``least``. What is no row is behind the last.
    order : torch.Tensor
        ``[indices]``, int64: the place that each of them came from.
    begins : torch.Tensor
        ``[rows + 1]``, int64: how many keys are below each row, and below the end.
    least : int
        The key of row 0.
    """

    keys: torch.Tensor
    order: torch.Tensor
    begins: torch.Tensor
    least: int


def sort_indices(index: torch.Tensor, rows: int) -> SortedIndices:
    """Sort indices of so many rows.

    Parameters
    ----------
    index : torch.Tensor
        ``[indices]``, int32 or int64.
    rows : int
        How many rows there are. Other indices are no rows.
    """
    count, device = index.shape[0], index.device
    keys, order, least = (_ranked if count <= RANKED else _sorted)(index, rows)
    begins = torch.empty(rows + 1, dtype=torch.int64, device=device)
    grid = (triton.cdiv(rows + 1, SEARCHED_KEYS),)
    halvings = count.bit_length()
    find_begins[grid](keys, begins, count, rows, least, halvings, BLOCK=SEARCHED_KEYS)
    return SortedIndices(keys, order, begins, least)


def _ranked(index: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Sorted keys, their places, and the key of row 0: each goes behind as many as are less."""
    count = index.shape[0]
    keys = torch.empty(count, dtype=_narrowest(rows), device=index.device)
    order = torch.empty(count, dtype=torch.int64, device=index.device)
    is_small = (rows + 1) * count <= torch.iinfo(torch.int32).max
    grid = (triton.cdiv(count, RANKED_KEYS),)
    rank_keys[grid](
        index,
        keys,
        order,
        count,
        rows,
        index.stride(0),
        BLOCK=RANKED_KEYS,
        STEP=RANKED_STEP,
        DTYPE=tl.int32 if is_small else tl.int64,
    )
    return keys, order, 0


def _narrowest(rows: int) -> torch.dtype:
    """The dtype of numbers up to ``rows``."""
    return torch.int32 if rows <= torch.iinfo(torch.int32).max else torch.int64


def _sorted(index: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """The same by torch's radix sort.

    Keys are as narrow as the rows allow: it reads and writes them once for each of their bytes.
    """
    kind = next(d for d in _KEY_DTYPES if rows < 1 << torch.iinfo(d).bits)
    least = torch.iinfo(kind).min if rows > torch.iinfo(kind).max else 0
    count = index.shape[0]
    keys = torch.empty(count, dtype=kind, device=index.device)
    grid = (triton.cdiv(count, KEYS),)
    convert_keys[grid](index, keys, count, rows, index.stride(0), least, BLOCK=KEYS)
    keys, order = torch.sort(keys, stable=True)
    return keys, order, least
