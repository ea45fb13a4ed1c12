"""Pieces of definitions and inputs, as tracers write them: 16 bits in memory, Float between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch
from tritonfuser.ops.creation import philox

from .case import Draw, Inputs, Run, Size

EPS = 1e-5
DROPPED = 0.1
"""Probability with which a dropout drops."""
SEEDS: Inputs = [1234, 56]
"""Seed and offset of the random numbers, as scalar inputs."""


def tensor(fd: FusionDefinition, shape: Sequence[int], dtype: DataType) -> Any:
    """A dense input."""
    contiguity = [None if size == 1 else True for size in shape]
    return fd.define_tensor(shape=list(shape), contiguity=contiguity, dtype=dtype)


def load(fd: FusionDefinition, shape: Sequence[int], dtype: torch.dtype) -> Any:
    """A dense input of the case's dtype, in Float."""
    return fd.ops.cast(tensor(fd, shape, from_torch(dtype)), dtype=DataType.Float)


def store(fd: FusionDefinition, value: Any, dtype: torch.dtype) -> None:
    """An output in the case's dtype."""
    fd.add_output(fd.ops.cast(value, dtype=from_torch(dtype)))


def spread(fd: FusionDefinition, value: Any, shape: Sequence[int], dims: Sequence[int]) -> Any:
    """The value's dims put at ``dims`` of the shape, and stretched to it."""
    kept = [dim not in dims for dim in range(len(shape))]
    return fd.ops.expand(fd.ops.broadcast(value, is_broadcast_dim=kept), shape=list(shape))


def over_rows(fd: FusionDefinition, value: Any, shape: Size) -> Any:
    """A vector of one number a row, spread over the columns."""
    return spread(fd, value, shape, [0])


def over_columns(fd: FusionDefinition, value: Any, shape: Size) -> Any:
    """A vector of one number a column, spread over the rows."""
    return spread(fd, value, shape, [1])


def total(fd: FusionDefinition, value: Any, dims: Sequence[int]) -> Any:
    """The sum over dims, in Float."""
    return fd.ops.sum(value, dims=list(dims), dtype=DataType.Float)


def row_mean(fd: FusionDefinition, value: Any, shape: Size) -> Any:
    """The mean of each row of a matrix."""
    return fd.ops.mul(total(fd, value, [1]), 1.0 / shape[1])


def define_seeds(fd: FusionDefinition) -> list[Any]:
    """Seed and offset: the last inputs of a definition."""
    return [fd.define_scalar(None, dtype=DataType.Int) for _ in range(2)]


def dropped(fd: FusionDefinition, value: Any, shape: Size, seeds: Sequence[Any]) -> Any:
    """Dropout, or its backward: the mask is drawn, and drawn again, never stored."""
    unit = fd.ops.uniform(
        0.0, 1.0, list(shape), rng_seed=seeds[0], rng_offset=seeds[1], dtype=DataType.Float
    )
    keep = fd.ops.cast(fd.ops.lt(unit, 1.0 - DROPPED), dtype=DataType.Float)
    return fd.ops.mul(fd.ops.mul(value, keep), 1.0 / (1.0 - DROPPED))


def dropped_in_torch(value: torch.Tensor, seed: int, offset: int) -> torch.Tensor:
    """The same in torch with the same random numbers."""
    unit = philox.uniform(value.shape, seed, offset, device=value.device)
    return value * (unit < 1.0 - DROPPED) / (1.0 - DROPPED)


def undropped(grad: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The backward of torch's dropout, from the mask that it has stored."""
    found: torch.Tensor = torch.ops.aten.native_dropout_backward(grad, mask, 1 / (1 - DROPPED))
    return found


def with_mask(draw: Draw, inputs: Inputs) -> Inputs:
    """Seed and offset exchanged for the mask that torch's dropout keeps for its backward."""
    like = inputs[0]
    assert isinstance(like, torch.Tensor)
    return [*inputs[:-2], draw.kept(1.0 - DROPPED, *like.shape)]


def autograd(function: Callable[..., Any], grad: Any, *tensors: torch.Tensor) -> Run:
    """The gradients of tensors through a function of them: the backward alone."""
    leaves = [t.detach().requires_grad_() for t in tensors]
    return partial(torch.autograd.grad, function(*leaves), leaves, grad, retain_graph=True)


def wide(value: torch.Tensor) -> torch.Tensor:
    """16 bits as float32; others as they are."""
    return value.float() if value.element_size() == 2 else value


def matrices(count: int, vectors: int = 0, seeds: bool = False) -> Callable[[Draw, Size], Inputs]:
    """Random tensors of the size, then vectors as long as its last dim, then seed and offset."""

    def make(draw: Draw, size: Size) -> Inputs:
        shapes = [size] * count + [size[-1:]] * vectors
        return [*(draw.normal(*shape) for shape in shapes), *(SEEDS if seeds else [])]

    return make
