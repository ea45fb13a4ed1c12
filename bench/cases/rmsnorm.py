"""RMS norm over rows: alone, after a residual add, after a dropout; forward and backward."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition

from . import liger, sizes
from .building_blocks import (
    EPS,
    autograd,
    load,
    matrices,
    over_columns,
    over_rows,
    row_mean,
    store,
    tensor,
    total,
)
from .case import Case, Draw, Inputs, Run, Size
from .row_norms import RowNorm, alone, behind_dropout, then

Tensor = torch.Tensor


def _record(fd: FusionDefinition, x: Any, size: Size, dtype: torch.dtype) -> None:
    weight = load(fd, size[1:], dtype)
    rstd = fd.ops.rsqrt(fd.ops.add(row_mean(fd, fd.ops.pow(x, 2.0), size), EPS))
    normal = fd.ops.mul(x, over_rows(fd, rstd, size))
    store(fd, fd.ops.mul(normal, over_columns(fd, weight, size)), dtype)


def _eager(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[1:], weight, EPS)


def _gradient(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> tuple[Any, Any]:
    """Record dx; also return the rows whose sum is dweight."""
    grad, x = load(fd, size, dtype), load(fd, size, dtype)
    rstd = tensor(fd, (size[0], 1), DataType.Float)
    weight = load(fd, size[1:], dtype)
    across = fd.ops.expand(rstd, shape=list(size))
    normal = fd.ops.mul(x, across)
    scaled = fd.ops.mul(grad, over_columns(fd, weight, size))
    along = over_rows(fd, row_mean(fd, fd.ops.mul(scaled, normal), size), size)
    dx = fd.ops.mul(across, fd.ops.sub(scaled, fd.ops.mul(normal, along)))
    return dx, fd.ops.mul(grad, normal)


def _store(fd: FusionDefinition, rows: Any, dtype: torch.dtype) -> None:
    store(fd, total(fd, rows, [0]), dtype)


def _eager_gradient(grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The same in the dtype of ``rstd``, in the form that torch.compile decomposes rms_norm to."""
    normal = x.to(rstd.dtype) * rstd
    scaled = grad.to(rstd.dtype) * weight.to(rstd.dtype)
    dx = rstd * (scaled - normal * (scaled * normal).mean(1, keepdim=True))
    return dx, (grad.to(rstd.dtype) * normal).sum(0).to(x.dtype)


def _eager_backward(grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor) -> Any:
    dx, dweight = _eager_gradient(grad, x, rstd, weight)
    return dx.to(x.dtype), dweight


def _autograd(grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor) -> Run:
    """The backward of torch.nn.functional.rms_norm alone; the forward runs once, untimed."""
    return autograd(_eager, grad, x, weight)


def _inputs(draw: Draw, size: Size) -> Inputs:
    grad, x, weight = draw.normal(*size), draw.normal(*size), draw.normal(size[1])
    return [grad, x, torch.rsqrt(x.float().pow(2).mean(1, keepdim=True) + EPS), weight]


# --- the residual is added first, and the sum kept -----------------------------------------------


def _residual(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    mixed = fd.ops.add(load(fd, size, dtype), load(fd, size, dtype))
    store(fd, mixed, dtype)
    _record(fd, mixed, size, dtype)


def _eager_residual(x: Tensor, residual: Tensor, weight: Tensor) -> Any:
    mixed = x + residual
    return mixed, _eager(mixed, weight)


def _residual_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """The gradient shared by x and the residual: through the norm plus through the sum."""
    dx, rows = _gradient(fd, size, dtype)
    store(fd, fd.ops.add(dx, load(fd, size, dtype)), dtype)
    _store(fd, rows, dtype)


def _residual_backward_inputs(draw: Draw, size: Size) -> Inputs:
    return [*_inputs(draw, size), draw.normal(*size)]


def _eager_residual_backward(
    grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor, further: Tensor
) -> Any:
    dx, dweight = _eager_gradient(grad, x, rstd, weight)
    return (dx + further).to(x.dtype), dweight


def _autograd_residual(
    grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor, further: Tensor
) -> Run:
    return then(_autograd, lambda found: (found[0] + further, found[1]), grad, x, rstd, weight)


NORM = RowNorm(
    "rmsnorm", 1, _record, _gradient, _store, _eager, _eager_backward, _inputs, _autograd
)
CASES = (
    *alone(NORM, liger.rms_norm, liger.rms_norm_backward),
    Case(
        "rmsnorm_residual",
        "norm",
        sizes.ROWS,
        _residual,
        matrices(2, 1),
        _eager_residual,
        liger=liger.add_rms_norm,
    ),
    Case(
        "rmsnorm_residual_bwd",
        "norm",
        sizes.ROWS,
        _residual_backward,
        _residual_backward_inputs,
        _eager_residual_backward,
        _autograd_residual,
        liger=liger.add_rms_norm_backward,
    ),
    *behind_dropout(NORM),
)
