"""Transposed reads, concatenations, rotary embeddings and embedding lookups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch

from . import liger, sizes
from .building_blocks import load, matrices, spread, store, tensor
from .case import Case, Draw, Inputs, Size
from .indexing import eager_embedding, embedding_inputs

Tensor = torch.Tensor
JOINED = 3


def _transpose_add(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    x, y = load(fd, size, dtype), load(fd, size[::-1], dtype)
    store(fd, fd.ops.add(fd.ops.permute(x, [1, 0]), y), dtype)


def _transpose_inputs(draw: Draw, size: Size) -> Inputs:
    return [draw.normal(*size), draw.normal(*size[::-1])]


def _eager_transpose_add(x: Tensor, y: Tensor) -> Tensor:
    return x.t() + y


def _cat(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    parts = []
    for _ in range(JOINED):
        x = load(fd, size, dtype)
        silu = fd.ops.mul(x, fd.ops.sigmoid(x))
        parts.append(fd.ops.cast(silu, dtype=from_torch(dtype)))
    fd.add_output(fd.ops.cat(parts, dim=1))


def _eager_cat(*parts: Tensor) -> Tensor:
    return torch.cat([F.silu(part) for part in parts], 1)


# --- rotary embedding of queries and keys [batch, sequence, heads, width] ------------------------


def _halves(fd: FusionDefinition, x: Any, size: Size) -> tuple[Any, Any]:
    """The two halves of the last dim."""
    *others, width = size
    start, middle = [0] * 4, [0, 0, 0, width // 2]
    return (
        fd.ops.slice(x, start, [*others, width // 2]),
        fd.ops.slice(x, middle, list(size)),
    )


def _turned(fd: FusionDefinition, x: Any, size: Size) -> Any:
    """``cat(-second half, first half)``."""
    first, second = _halves(fd, x, size)
    return fd.ops.cat([fd.ops.neg(second), first], dim=3)


def _turned_back(fd: FusionDefinition, x: Any, size: Size) -> Any:
    first, second = _halves(fd, x, size)
    return fd.ops.cat([second, fd.ops.neg(first)], dim=3)


def _angles(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> list[Any]:
    """Tables of cosines and sines, [sequence, width]."""
    return [load(fd, (size[1], size[3]), dtype) for _ in range(2)]


def _keys(size: Size) -> Size:
    """The shape of the keys; four query heads share one key head."""
    return (*size[:2], max(1, size[2] // 4), size[3])


def _rotary(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    shapes = [size, _keys(size)]
    given = [load(fd, shape, dtype) for shape in shapes]
    cos, sin = _angles(fd, size, dtype)
    for x, shape in zip(given, shapes, strict=True):
        straight = fd.ops.mul(x, spread(fd, cos, shape, [1, 3]))
        across = fd.ops.mul(_turned(fd, x, shape), spread(fd, sin, shape, [1, 3]))
        store(fd, fd.ops.add(straight, across), dtype)


def _rotary_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    shapes = [size, _keys(size)]
    given = [load(fd, shape, dtype) for shape in shapes]
    cos, sin = _angles(fd, size, dtype)
    for grad, shape in zip(given, shapes, strict=True):
        straight = fd.ops.mul(grad, spread(fd, cos, shape, [1, 3]))
        across = fd.ops.mul(grad, spread(fd, sin, shape, [1, 3]))
        store(fd, fd.ops.add(straight, _turned_back(fd, across, shape)), dtype)


def _rotary_inputs(draw: Draw, size: Size) -> Inputs:
    angles = draw.normal(size[1], size[3])
    return [draw.normal(*size), draw.normal(*_keys(size)), angles.cos(), angles.sin()]


def _eager_turned(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def _eager_turned_back(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((second, -first), -1)


def _eager_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Sequence[Tensor]:
    cos, sin = cos[:, None], sin[:, None]
    return tuple(x * cos + _eager_turned(x) * sin for x in (q, k))


def _eager_rotary_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Sequence[Tensor]:
    cos, sin = cos[:, None], sin[:, None]
    return tuple(x * cos + _eager_turned_back(x * sin) for x in (q, k))


# --- embedding -----------------------------------------------------------------------------------


def _embedding(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    vocabulary, width, tokens = size
    table = tensor(fd, (vocabulary, width), from_torch(dtype))
    index = tensor(fd, (tokens,), DataType.Int)
    fd.add_output(fd.ops.index_select(table, index, dim=0))


CASES = (
    Case(
        "transpose_add",
        "layout",
        sizes.ROWS,
        _transpose_add,
        _transpose_inputs,
        _eager_transpose_add,
    ),
    Case("cat3", "layout", sizes.FEW, _cat, matrices(JOINED), _eager_cat),
    Case(
        "rotary",
        "layout",
        sizes.HEADS,
        _rotary,
        _rotary_inputs,
        _eager_rotary,
        liger=liger.rotary,
    ),
    Case(
        "rotary_bwd",
        "layout",
        sizes.HEADS,
        _rotary_backward,
        _rotary_inputs,
        _eager_rotary_backward,
        liger=liger.rotary_backward,
    ),
    Case(
        "embedding",
        "layout",
        sizes.TABLES,
        _embedding,
        embedding_inputs,
        eager_embedding,
        liger=liger.embedding,
    ),
)
