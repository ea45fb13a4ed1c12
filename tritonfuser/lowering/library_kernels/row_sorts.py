"""Short rows sorted on a GPU, or the first of their elements found: a program has whole rows."""

from __future__ import annotations

import torch
import triton

from .row_sort_kernels import sort_rows

LONGEST = 512
"""Elements of a row at most. A bitonic sort takes as many steps as the square of their logarithm;
torch's sort of longer rows is a radix sort."""

ELEMENTS = 1024
"""Of a tile, which has some rows."""

LEAST_KEPT = 2
"""Elements of a row that ``tl.topk`` keeps at least: of one row one element would be no tile."""

WARPS = 4
"""Of a program."""

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.int32)


def takes_argsort(
    arg: torch.Tensor, dim: int, descending: bool = False, stable: bool = False
) -> bool:
    """Whether the kernel sorts such a tensor along a dim."""
    return _is_short(arg, dim)


def argsort(
    arg: torch.Tensor, dim: int, descending: bool = False, stable: bool = False
) -> torch.Tensor:
    """``torch.argsort``; always stable."""
    return _first(arg, arg.shape[dim], dim, descending, None)


def takes_topk(
    arg: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = False
) -> bool:
    """Whether the kernel finds the first elements of such a tensor along a dim."""
    return _is_short(arg, dim) and k > 0


def topk(
    arg: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """``torch.topk``; always sorted, and of equal elements those that come first."""
    shape = list(arg.shape)
    shape[dim] = k
    values = torch.empty(_moved(shape, dim), dtype=arg.dtype, device=arg.device)
    places = _first(arg, k, dim, largest, values)
    return values.movedim(-1, dim), places


def _is_short(arg: torch.Tensor, dim: int) -> bool:
    return arg.dim() > 0 and arg.numel() > 0 and arg.shape[dim] <= LONGEST and arg.dtype in _DTYPES


def _moved(shape: list[int], dim: int) -> list[int]:
    """A shape with a dim at its end."""
    return [*shape[:dim], *shape[dim:][1:], shape[dim]]


def _first(
    arg: torch.Tensor, kept: int, dim: int, descending: bool, values: torch.Tensor | None
) -> torch.Tensor:
    """The places of the first elements along a dim in their order."""
    moved = arg.movedim(dim, -1)
    length = moved.shape[-1]
    flat = moved.reshape(-1, length)
    places = torch.empty((*moved.shape[:-1], kept), dtype=torch.int64, device=arg.device)
    width = triton.next_power_of_2(length)
    rows = max(ELEMENTS // width, 1)
    sort_rows[(triton.cdiv(flat.shape[0], rows),)](
        flat,
        places if values is None else values,
        places,
        flat.shape[0],
        length,
        kept,
        *flat.stride(),
        ROWS=rows,
        LENGTH=width,
        KEPT=min(max(triton.next_power_of_2(kept), LEAST_KEPT), width),
        DESCENDING=descending,
        HAS_VALUES=values is not None,
        num_warps=WARPS,
    )
    return places.movedim(-1, dim)
