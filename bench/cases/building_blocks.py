"""Building blocks of definitions and inputs: 16-bit tensors in memory, Float arithmetic."""

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
"""Probability that dropout zeroes an element."""
SEEDS: Inputs = [1234, 56]
"""Seed and offset of the random numbers, passed as scalar inputs."""


def tensor(fd: FusionDefinition, shape: Sequence[int], dtype: DataType) -> Any:
    """Define a contiguous input."""
    contiguity = [None if size == 1 else True for size in shape]
    return fd.define_tensor(shape=list(shape), contiguity=contiguity, dtype=dtype)


def load(fd: FusionDefinition, shape: Sequence[int], dtype: torch.dtype) -> Any:
    """Define a contiguous input of the case's dtype and cast it to Float."""
    return fd.ops.cast(tensor(fd, shape, from_torch(dtype)), dtype=DataType.Float)


def store(fd: FusionDefinition, value: Any, dtype: torch.dtype) -> None:
    """Cast to the case's dtype and add as an output."""
    fd.add_output(fd.ops.cast(value, dtype=from_torch(dtype)))


def spread(fd: FusionDefinition, value: Any, shape: Sequence[int], dims: Sequence[int]) -> Any:
    """Broadcast the value to the shape; its dims become the dims ``dims``."""
    kept = [dim not in dims for dim in range(len(shape))]
    return fd.ops.expand(fd.ops.broadcast(value, is_broadcast_dim=kept), shape=list(shape))


def over_rows(fd: FusionDefinition, value: Any, shape: Size) -> Any:
    """Broadcast a vector with one number per row over the columns."""
    return spread(fd, value, shape, [0])


def over_columns(fd: FusionDefinition, value: Any, shape: Size) -> Any:
    """Broadcast a vector with one number per column over the rows."""
    return spread(fd, value, shape, [1])


def total(fd: FusionDefinition, value: Any, dims: Sequence[int]) -> Any:
    """The sum over ``dims``, in Float."""
    return fd.ops.sum(value, dims=list(dims), dtype=DataType.Float)


def row_mean(fd: FusionDefinition, value: Any, shape: Size) -> Any:
    """The mean of each row of a matrix."""
    return fd.ops.mul(total(fd, value, [1]), 1.0 / shape[1])


def define_seeds(fd: FusionDefinition) -> list[Any]:
    """Define seed and offset, the last inputs of a definition."""
    return [fd.define_scalar(None, dtype=DataType.Int) for _ in range(2)]


def dropped(fd: FusionDefinition, value: Any, shape: Size, seeds: Sequence[Any]) -> Any:
    """Dropout or its backward; the mask is regenerated from seed and offset and never stored."""
    unit = fd.ops.uniform(
        0.0, 1.0, list(shape), rng_seed=seeds[0], rng_offset=seeds[1], dtype=DataType.Float
    )
    keep = fd.ops.cast(fd.ops.lt(unit, 1.0 - DROPPED), dtype=DataType.Float)
    return fd.ops.mul(fd.ops.mul(value, keep), 1.0 / (1.0 - DROPPED))


def dropped_in_torch(value: torch.Tensor, seed: int, offset: int) -> torch.Tensor:
    """The same dropout in torch, with the same random numbers."""
    unit = philox.uniform(value.shape, seed, offset, device=value.device)
    return value * (unit < 1.0 - DROPPED) / (1.0 - DROPPED)


def undropped(grad: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The backward of torch's dropout, from its stored mask."""
    found: torch.Tensor = torch.ops.aten.native_dropout_backward(grad, mask, 1 / (1 - DROPPED))
    return found


def with_mask(draw: Draw, inputs: Inputs) -> Inputs:
    """Replace seed and offset by the mask that torch's dropout stores for its backward."""
    like = inputs[0]
    assert isinstance(like, torch.Tensor)
    return [*inputs[:-2], draw.kept(1.0 - DROPPED, *like.shape)]


def autograd(function: Callable[..., Any], grad: Any, *tensors: torch.Tensor) -> Run:
    """A call that runs only the backward of a function, for the gradients of its tensors."""
    leaves = [t.detach().requires_grad_() for t in tensors]
    return partial(torch.autograd.grad, function(*leaves), leaves, grad, retain_graph=True)


def wide(value: torch.Tensor) -> torch.Tensor:
    """Convert 16-bit floats to float32; return other tensors unchanged."""
    return value.float() if value.element_size() == 2 else value


def matrices(count: int, vectors: int = 0, seeds: bool = False) -> Callable[[Draw, Size], Inputs]:
    """Random tensors of the size, then vectors as long as its last dim, then seed and offset."""

    def make(draw: Draw, size: Size) -> Inputs:
        shapes = [size] * count + [size[-1:]] * vectors
        return [*(draw.normal(*shape) for shape in shapes), *(SEEDS if seeds else [])]

    return make
