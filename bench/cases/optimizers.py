"""A step of AdamW that replaces its weights and moments, as training loops run it."""

from __future__ import annotations

from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch

from .building_blocks import load, tensor
from .case import Case, Draw, Inputs, Size, Sizes

Tensor = torch.Tensor
RATE, DECAY, EPS = 1e-3, 0.01, 1e-8
FIRST, SECOND = 0.9, 0.95
"""Shares of the moments that are kept."""


def _adamw(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    weight, grad = tensor(fd, size, from_torch(dtype)), load(fd, size, dtype)
    first, second = (tensor(fd, size, DataType.Float) for _ in range(2))
    ops = fd.ops
    mean = ops.add(ops.mul(first, FIRST), ops.mul(grad, 1 - FIRST))
    square = ops.add(ops.mul(second, SECOND), ops.mul(ops.mul(grad, grad), 1 - SECOND))
    step = ops.div(ops.mul(mean, RATE), ops.add(ops.sqrt(square), EPS))
    kept = ops.mul(ops.cast(weight, DataType.Float), 1 - RATE * DECAY)
    moved = ops.cast(ops.sub(kept, step), from_torch(dtype))
    for made, replaced in ((moved, weight), (mean, first), (square, second)):
        fd.add_output(made, replaced)
        fd.add_output(made)


def _eager_adamw(weight: Tensor, grad: Tensor, first: Tensor, second: Tensor) -> Any:
    grad = grad.to(first.dtype)
    first.mul_(FIRST).add_(grad, alpha=1 - FIRST)
    second.mul_(SECOND).addcmul_(grad, grad, value=1 - SECOND)
    weight.mul_(1 - RATE * DECAY).addcdiv_(first, second.sqrt() + EPS, value=-RATE)
    return weight, first, second


def _state(draw: Draw, size: Size) -> Inputs:
    """Weights and gradients in the dtype of the case, moments in 32 bits."""
    moments = [draw.normal(*size, dtype=torch.float32) for _ in range(2)]
    return [draw.normal(*size), draw.normal(*size), moments[0], moments[1].square()]


CASES = (
    Case(
        "adamw",
        "pointwise",
        Sizes(bfloat16=((512, 1024), (4096, 4096), (8192, 8192), (4096, 4097))),
        _adamw,
        _state,
        _eager_adamw,
    ),
)
