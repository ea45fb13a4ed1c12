"""Which library ops have kernels here, and for which tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ...options import current
from . import row_sorts, row_sums


class LibraryKernel(NamedTuple):
    """An op's kernels.

    Attributes
    ----------
    takes : callable
        Whether they compute the op for these operands and attributes.
    run : callable
        From the op's operands and attributes to its results, as torch's function.
    is_indexed : bool
        Whether it is given indices. It passes over those that are out of range.
    """

    takes: Callable[..., bool]
    run: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
    is_indexed: bool = False


KERNELS: Mapping[str, LibraryKernel] = {
    "argsort": LibraryKernel(row_sorts.takes_argsort, row_sorts.argsort),
    "index_put_accumulate": LibraryKernel(row_sums.takes, row_sums.add_rows, is_indexed=True),
    "topk": LibraryKernel(row_sorts.takes_topk, row_sorts.topk),
}


def library_kernel(
    op: str, operands: Sequence[Any], attrs: Mapping[str, Any]
) -> Callable[..., torch.Tensor | tuple[torch.Tensor, ...]] | None:
    """The function that computes an op of tensors on a GPU; None where torch does.

    torch computes what is given indices where these are checked.
    """
    found = KERNELS.get(op)
    if found is None or (found.is_indexed and "bounds" in current().check):
        return None
    tensors = [each for each in operands if isinstance(each, torch.Tensor)]
    on_gpu = all(tensor.is_cuda for tensor in tensors)
    return found.run if on_gpu and found.takes(*operands, **attrs) else None
