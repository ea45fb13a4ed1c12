"""Elements and rows picked or replaced at indices that a tensor of int64 holds."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch

from . import sizes
from .building_blocks import tensor
from .case import Case, Draw, Inputs, Size

Tensor = torch.Tensor
STEP = 5
"""Apart are the columns that a row of a scatter replaces; no divisor of the number of columns."""


def _integers(fd: FusionDefinition, *shape: int) -> Any:
    return tensor(fd, shape, DataType.Int)


def _gather(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    rows, columns, picked = size
    table = tensor(fd, (rows, columns), from_torch(dtype))
    fd.add_output(fd.ops.gather(table, _integers(fd, rows, picked), dim=1))


def _gather_inputs(draw: Draw, size: Size) -> Inputs:
    rows, columns, picked = size
    return [draw.normal(rows, columns), draw.integers(columns, rows, picked)]


def _eager_gather(table: Tensor, index: Tensor) -> Tensor:
    return torch.gather(table, 1, index)


def _take(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """One index for all columns of a row: the other operand is broadcast."""
    rows, columns, picked = size
    table = tensor(fd, (rows, columns), from_torch(dtype))
    fd.add_output(fd.ops.take_along_axis(table, _integers(fd, 1, picked), dim=1))


def _take_inputs(draw: Draw, size: Size) -> Inputs:
    rows, columns, picked = size
    return [draw.normal(rows, columns), draw.integers(columns, 1, picked)]


def _eager_take(table: Tensor, index: Tensor) -> Tensor:
    return torch.take_along_dim(table, index, 1)


def _index_select(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    rows, columns, picked = size
    table = tensor(fd, (rows, columns), from_torch(dtype))
    fd.add_output(fd.ops.index_select(table, _integers(fd, picked), dim=1))


def _select_inputs(draw: Draw, size: Size) -> Inputs:
    rows, columns, picked = size
    return [draw.normal(rows, columns), draw.integers(columns, picked)]


def _eager_select(table: Tensor, index: Tensor) -> Tensor:
    return torch.index_select(table, 1, index)


def _embedding(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    vocabulary, width, tokens = size
    table = tensor(fd, (vocabulary, width), from_torch(dtype))
    fd.add_output(fd.ops.embedding_fwd(_integers(fd, tokens), table))


def embedding_inputs(draw: Draw, size: Size) -> Inputs:
    """A table [vocabulary, width], and indices of its rows."""
    vocabulary, width, tokens = size
    return [draw.normal(vocabulary, width), draw.integers(vocabulary, tokens)]


def eager_embedding(table: Tensor, index: Tensor) -> Tensor:
    """torch's embedding."""
    return F.embedding(index, table)


def _scatter(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    rows, columns, picked = size
    table = tensor(fd, (rows, columns), from_torch(dtype))
    source = tensor(fd, (rows, picked), from_torch(dtype))
    fd.add_output(fd.ops.scatter(table, _integers(fd, rows, picked), source, dim=1))


def _scatter_inputs(draw: Draw, size: Size) -> Inputs:
    """No index twice in a row: which of two sources stays is not defined."""
    rows, columns, picked = size
    steps = torch.arange(picked, device=draw.device) * STEP
    index = (draw.integers(columns, rows, 1) + steps) % columns
    return [draw.normal(rows, columns), draw.normal(rows, picked), index]


def _eager_scatter(table: Tensor, source: Tensor, index: Tensor) -> Tensor:
    return torch.scatter(table, 1, index, source)


CASES = (
    Case("gather", "indexing", sizes.PICKS, _gather, _gather_inputs, _eager_gather),
    Case("take_along_axis", "indexing", sizes.PICKS, _take, _take_inputs, _eager_take),
    Case("index_select", "indexing", sizes.PICKS, _index_select, _select_inputs, _eager_select),
    Case(
        "embedding_fwd",
        "indexing",
        sizes.TABLES,
        _embedding,
        embedding_inputs,
        eager_embedding,
    ),
    Case("scatter", "indexing", sizes.PICKS, _scatter, _scatter_inputs, _eager_scatter),
)
