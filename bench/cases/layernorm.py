"""Layer norm over rows, alone and after a dropout and residual add; forward and backward."""

from __future__ import annotations

from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition

from . import liger
from .building_blocks import EPS, load, over_columns, store, tensor, total
from .case import Draw, Inputs, Size
from .mean_norms import affine, gradient, normalised, statistics
from .row_norms import RowNorm, alone, behind_dropout

Tensor = torch.Tensor
ROWS, COLUMNS = [0], [1]


def _record(fd: FusionDefinition, x: Any, size: Size, dtype: torch.dtype) -> None:
    """Add three outputs: the result, and the mean and 1 / standard deviation of each row."""
    weight, bias = (load(fd, size[1:], dtype) for _ in range(2))
    mean, rstd = statistics(fd, x, COLUMNS)
    normal = normalised(fd, x, mean, rstd, size, ROWS)
    store(fd, affine(fd, normal, weight, bias, size, COLUMNS), dtype)
    fd.add_output(mean)
    fd.add_output(rstd)


def _eager(x: Tensor, weight: Tensor, bias: Tensor) -> Any:
    out, mean, rstd = torch.ops.aten.native_layer_norm(x, x.shape[1:], weight, bias, EPS)
    return out, mean[:, 0], rstd[:, 0]


def _gradient(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> tuple[Any, Any]:
    """Record dx; also return (grad, normalized x) for the weight gradients."""
    grad, x = load(fd, size, dtype), load(fd, size, dtype)
    mean, rstd = (tensor(fd, (size[0], 1), DataType.Float) for _ in range(2))
    weight = load(fd, size[1:], dtype)
    across = fd.ops.expand(rstd, shape=list(size))
    normal = fd.ops.mul(fd.ops.sub(x, fd.ops.expand(mean, shape=list(size))), across)
    scaled = fd.ops.mul(grad, over_columns(fd, weight, size))
    return fd.ops.mul(across, gradient(fd, scaled, normal, size, COLUMNS)), (grad, normal)


def _store(fd: FusionDefinition, rows: Any, dtype: torch.dtype) -> None:
    grad, normal = rows
    store(fd, total(fd, fd.ops.mul(grad, normal), ROWS), dtype)
    store(fd, total(fd, grad, ROWS), dtype)


def _eager_backward(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor) -> Any:
    return torch.ops.aten.native_layer_norm_backward(
        grad, x, x.shape[1:], mean, rstd, weight, weight, [True, True, True]
    )


def _inputs(draw: Draw, size: Size) -> Inputs:
    grad, x, weight = draw.normal(*size), draw.normal(*size), draw.normal(size[1])
    var, mean = torch.var_mean(x.float(), 1, correction=0, keepdim=True)
    return [grad, x, mean, torch.rsqrt(var + EPS), weight]


NORM = RowNorm("layernorm", 2, _record, _gradient, _store, _eager, _eager_backward, inputs=_inputs)
CASES = (*alone(NORM, liger.layer_norm, liger.layer_norm_backward), *behind_dropout(NORM))
