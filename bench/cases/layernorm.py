"""Layer norm over rows, alone and behind a dropout with a residual; forward and backward."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition

from .. import liger
from . import sizes
from .case import Case, Draw, Inputs, Size
from .pieces import (
    DROPPED,
    EPS,
    SEEDS,
    define_seeds,
    dropped,
    dropped_in_torch,
    load,
    matrices,
    over_columns,
    over_rows,
    row_mean,
    store,
    tensor,
    total,
    with_mask,
)

Tensor = torch.Tensor


def _normalised(fd: FusionDefinition, x: Any, size: Size, dtype: torch.dtype) -> None:
    """The last three outputs: the result, mean and 1 / deviation of each row."""
    weight, bias = (load(fd, size[1:], dtype) for _ in range(2))
    var, mean = fd.ops.var_mean(x, dims=[1], correction=0, keepdim=False)
    rstd = fd.ops.rsqrt(fd.ops.add(var, EPS))
    normal = fd.ops.mul(fd.ops.sub(x, over_rows(fd, mean, size)), over_rows(fd, rstd, size))
    scaled = fd.ops.mul(normal, over_columns(fd, weight, size))
    store(fd, fd.ops.add(scaled, over_columns(fd, bias, size)), dtype)
    fd.add_output(mean)
    fd.add_output(rstd)


def _layernorm(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    _normalised(fd, load(fd, size, dtype), size, dtype)


def _eager(x: Tensor, weight: Tensor, bias: Tensor) -> Any:
    out, mean, rstd = torch.ops.aten.native_layer_norm(x, x.shape[1:], weight, bias, EPS)
    return out, mean[:, 0], rstd[:, 0]


def _input_gradient(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> tuple[Any, Any, Any]:
    """Records grad, x, mean, rstd, weight; gives dx, grad and the normalised x."""
    grad, x = load(fd, size, dtype), load(fd, size, dtype)
    mean, rstd = (tensor(fd, (size[0], 1), DataType.Float) for _ in range(2))
    weight = load(fd, size[1:], dtype)
    across = fd.ops.expand(rstd, shape=list(size))
    normal = fd.ops.mul(fd.ops.sub(x, fd.ops.expand(mean, shape=list(size))), across)
    scaled = fd.ops.mul(grad, over_columns(fd, weight, size))
    along = over_rows(fd, row_mean(fd, fd.ops.mul(scaled, normal), size), size)
    offset = over_rows(fd, row_mean(fd, scaled, size), size)
    inner = fd.ops.sub(fd.ops.sub(scaled, offset), fd.ops.mul(normal, along))
    return fd.ops.mul(across, inner), grad, normal


def _weight_gradients(fd: FusionDefinition, grad: Any, normal: Any, dtype: torch.dtype) -> None:
    store(fd, total(fd, fd.ops.mul(grad, normal), [0]), dtype)
    store(fd, total(fd, grad, [0]), dtype)


def _backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    dx, grad, normal = _input_gradient(fd, size, dtype)
    store(fd, dx, dtype)
    _weight_gradients(fd, grad, normal, dtype)


def _backward_inputs(draw: Draw, size: Size) -> Inputs:
    grad, x, weight = draw.normal(*size), draw.normal(*size), draw.normal(size[1])
    var, mean = torch.var_mean(x.float(), 1, correction=0, keepdim=True)
    return [grad, x, mean, torch.rsqrt(var + EPS), weight]


def _eager_backward(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor) -> Any:
    return torch.ops.aten.native_layer_norm_backward(
        grad, x, x.shape[1:], mean, rstd, weight, weight, [True, True, True]
    )


# --- dropout, residual, layer norm ---------------------------------------------------------------


def _dropout(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    residual, x = load(fd, size, dtype), load(fd, size, dtype)
    mixed = fd.ops.add(residual, dropped(fd, x, size, define_seeds(fd)))
    store(fd, mixed, dtype)
    _normalised(fd, mixed, size, dtype)


def _dropout_inputs(draw: Draw, size: Size) -> Inputs:
    residual, x, weight, bias = matrices(2, 2)(draw, size)
    return [residual, x, *SEEDS, weight, bias]


def _eager_dropout(
    residual: Tensor, x: Tensor, seed: int, offset: int, weight: Tensor, bias: Tensor
) -> Any:
    mixed = residual + F.dropout(x, DROPPED)
    return mixed, *_eager(mixed, weight, bias)


def _dropout_oracle(
    residual: Tensor, x: Tensor, seed: int, offset: int, weight: Tensor, bias: Tensor
) -> Any:
    mixed = residual + dropped_in_torch(x, seed, offset)
    return mixed, *_eager(mixed, weight, bias)


def _dropout_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """Gradients of the residual, of what was dropped, of weight and bias."""
    dx, grad, normal = _input_gradient(fd, size, dtype)
    store(fd, dx, dtype)
    store(fd, dropped(fd, dx, size, define_seeds(fd)), dtype)
    _weight_gradients(fd, grad, normal, dtype)


def _dropout_backward_inputs(draw: Draw, size: Size) -> Inputs:
    return [*_backward_inputs(draw, size), *SEEDS]


def _eager_dropout_backward(
    grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor, mask: Tensor
) -> Any:
    dx, *rest = _eager_backward(grad, x, mean, rstd, weight)
    return dx, torch.ops.aten.native_dropout_backward(dx, mask, 1 / (1 - DROPPED)), *rest


def _dropout_backward_oracle(
    grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor, *seeds: int
) -> Any:
    dx, *rest = _eager_backward(grad, x, mean, rstd, weight)
    return dx, dropped_in_torch(dx, *seeds), *rest


CASES = (
    Case(
        "layernorm",
        "norm",
        sizes.ROWS,
        _layernorm,
        matrices(1, 2),
        _eager,
        liger=liger.layer_norm,
    ),
    Case(
        "layernorm_bwd",
        "norm",
        sizes.ROWS,
        _backward,
        _backward_inputs,
        _eager_backward,
        liger=liger.layer_norm_backward,
    ),
    Case(
        "dropout_layernorm",
        "norm",
        sizes.ROWS,
        _dropout,
        _dropout_inputs,
        _eager_dropout,
        oracle=_dropout_oracle,
    ),
    Case(
        "dropout_layernorm_bwd",
        "norm",
        sizes.ROWS,
        _dropout_backward,
        _dropout_backward_inputs,
        _eager_dropout_backward,
        peers=with_mask,
        oracle=_dropout_backward_oracle,
    ),
)
