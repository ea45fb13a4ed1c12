"""Inputs made up for a definition that is looked at, and not run."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from ...dtypes import DataType
from ...ir import Fusion, TensorType, Type
from ...symbolic.extents import Extent

EXAMPLE_SIZE = 128
"""The extent that is taken for a symbolic one."""
_MOST_BITS = 56
"""Of the number of elements of an example: its bytes have to be countable in 64 bits."""


def example_inputs(fusion: Fusion) -> list[torch.Tensor | int]:
    """Tensors without memory, and ones, that fit the declarations of the inputs.

    All symbolic extents are taken for the same size. It is ``EXAMPLE_SIZE``, or less where a tensor
    has more than eight of them, or very large extents beside them.
    """
    types = [value.type for value in fusion.inputs]
    shapes = [type_.shape for type_ in types if isinstance(type_, TensorType)]
    size = min([EXAMPLE_SIZE, *(_largest(shape) for shape in shapes)])
    return [_example(type_, size) for type_ in types]


def _largest(shape: Sequence[Extent]) -> int:
    """The most that its symbolic extents may be taken for."""
    given = [n for n in shape if isinstance(n, int)]
    symbolic = len(shape) - len(given)
    bits = max(_MOST_BITS - prod(given).bit_length(), 0)
    return 1 << bits // symbolic if symbolic else EXAMPLE_SIZE


def _example(type_: Type, size: int) -> torch.Tensor | int:
    if isinstance(type_, TensorType):
        return _tensor(type_, size)
    return True if type_.dtype is DataType.Bool else 1


def _tensor(type_: TensorType, size: int) -> torch.Tensor:
    sizes = [n if isinstance(n, int) else size for n in type_.shape]
    held = [1 if dim.expanded else n for dim, n in zip(type_.dims, sizes, strict=True)]
    order = range(len(sizes))[::-1] if type_.layout is None else type_.layout.stride_order
    outermost_first = sorted(range(len(sizes)), key=lambda d: -order[d])
    storage = torch.empty(
        [held[d] for d in outermost_first],
        dtype=type_.dtype.info.torch,
        device="meta" if sizes else "cpu",
    )
    return storage.permute([outermost_first.index(d) for d in range(len(sizes))]).expand(sizes)
