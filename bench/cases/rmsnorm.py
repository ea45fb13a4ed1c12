"""RMS norm over rows: alone, behind a residual, behind a dropout; forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition

from .. import liger
from . import sizes
from .case import Case, Draw, Inputs, Run, Size
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
    weight = load(fd, size[1:], dtype)
    rstd = fd.ops.rsqrt(fd.ops.add(row_mean(fd, fd.ops.pow(x, 2.0), size), EPS))
    normal = fd.ops.mul(x, over_rows(fd, rstd, size))
    store(fd, fd.ops.mul(normal, over_columns(fd, weight, size)), dtype)


def _rmsnorm(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    _normalised(fd, load(fd, size, dtype), size, dtype)


def _eager(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[1:], weight, EPS)


def _input_gradient(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> tuple[Any, Any]:
    """Records grad, x, rstd, weight; gives dx and the rows that dweight is the sum of."""
    grad, x = load(fd, size, dtype), load(fd, size, dtype)
    rstd = tensor(fd, (size[0], 1), DataType.Float)
    weight = load(fd, size[1:], dtype)
    across = fd.ops.expand(rstd, shape=list(size))
    normal = fd.ops.mul(x, across)
    scaled = fd.ops.mul(grad, over_columns(fd, weight, size))
    along = over_rows(fd, row_mean(fd, fd.ops.mul(scaled, normal), size), size)
    dx = fd.ops.mul(across, fd.ops.sub(scaled, fd.ops.mul(normal, along)))
    return dx, fd.ops.mul(grad, normal)


def _backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    dx, rows = _input_gradient(fd, size, dtype)
    store(fd, dx, dtype)
    store(fd, total(fd, rows, [0]), dtype)


def _backward_inputs(draw: Draw, size: Size) -> Inputs:
    grad, x, weight = draw.normal(*size), draw.normal(*size), draw.normal(size[1])
    return [grad, x, torch.rsqrt(x.float().pow(2).mean(1, keepdim=True) + EPS), weight]


def _eager_backward(grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor) -> Any:
    """The formula, in the dtype of ``rstd``: what torch.compile makes of a composite rms_norm."""
    normal = x.to(rstd.dtype) * rstd
    scaled = grad.to(rstd.dtype) * weight.to(rstd.dtype)
    dx = rstd * (scaled - normal * (scaled * normal).mean(1, keepdim=True))
    return dx.to(x.dtype), (grad.to(rstd.dtype) * normal).sum(0).to(x.dtype)


def _autograd(grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor) -> Run:
    """torch.nn.functional.rms_norm's backward alone; it keeps what it needs of the forward."""
    x, weight = (t.detach().requires_grad_() for t in (x, weight))
    return partial(torch.autograd.grad, _eager(x, weight), (x, weight), grad, retain_graph=True)


def _then(backward: Callable[..., Run], finish: Callable[[Any], Any], *inputs: Tensor) -> Run:
    """An autograd backward, and eager ops on its results."""
    run = backward(*inputs)
    return lambda: finish(run())


# --- the residual is added first, and the sum kept -----------------------------------------------


def _residual(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    mixed = fd.ops.add(load(fd, size, dtype), load(fd, size, dtype))
    store(fd, mixed, dtype)
    _normalised(fd, mixed, size, dtype)


def _eager_residual(x: Tensor, residual: Tensor, weight: Tensor) -> Any:
    mixed = x + residual
    return mixed, _eager(mixed, weight)


def _residual_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """One gradient for x and the residual: that of the norm and that of the sum."""
    dx, rows = _input_gradient(fd, size, dtype)
    store(fd, fd.ops.add(dx, load(fd, size, dtype)), dtype)
    store(fd, total(fd, rows, [0]), dtype)


def _residual_backward_inputs(draw: Draw, size: Size) -> Inputs:
    return [*_backward_inputs(draw, size), draw.normal(*size)]


def _eager_residual_backward(
    grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor, further: Tensor
) -> Any:
    normal = x.to(rstd.dtype) * rstd
    scaled = grad.to(rstd.dtype) * weight.to(rstd.dtype)
    dx = rstd * (scaled - normal * (scaled * normal).mean(1, keepdim=True))
    return (dx + further).to(x.dtype), (grad.to(rstd.dtype) * normal).sum(0).to(x.dtype)


def _autograd_residual(
    grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor, further: Tensor
) -> Run:
    return _then(_autograd, lambda found: (found[0] + further, found[1]), grad, x, rstd, weight)


# --- dropout, residual, norm ---------------------------------------------------------------------


def _dropout(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    residual, x = load(fd, size, dtype), load(fd, size, dtype)
    mixed = fd.ops.add(residual, dropped(fd, x, size, define_seeds(fd)))
    store(fd, mixed, dtype)
    _normalised(fd, mixed, size, dtype)


def _dropout_inputs(draw: Draw, size: Size) -> Inputs:
    residual, x, weight = matrices(2, 1)(draw, size)
    return [residual, x, *SEEDS, weight]


def _eager_dropout(residual: Tensor, x: Tensor, seed: int, offset: int, weight: Tensor) -> Any:
    mixed = residual + F.dropout(x, DROPPED)
    return mixed, _eager(mixed, weight)


def _dropout_oracle(residual: Tensor, x: Tensor, seed: int, offset: int, weight: Tensor) -> Any:
    mixed = residual + dropped_in_torch(x, seed, offset)
    return mixed, _eager(mixed, weight)


def _dropout_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """Gradients of the residual, of what was dropped, and of the weight."""
    dx, rows = _input_gradient(fd, size, dtype)
    store(fd, dx, dtype)
    store(fd, dropped(fd, dx, size, define_seeds(fd)), dtype)
    store(fd, total(fd, rows, [0]), dtype)


def _dropout_backward_inputs(draw: Draw, size: Size) -> Inputs:
    return [*_backward_inputs(draw, size), *SEEDS]


def _undrop(mask: Tensor, found: Any) -> Any:
    dx, dweight = found
    return dx, torch.ops.aten.native_dropout_backward(dx, mask, 1 / (1 - DROPPED)), dweight


def _eager_dropout_backward(
    grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor, mask: Tensor
) -> Any:
    return _undrop(mask, _eager_backward(grad, x, rstd, weight))


def _autograd_dropout(grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor, mask: Tensor) -> Run:
    return _then(_autograd, partial(_undrop, mask), grad, x, rstd, weight)


def _dropout_backward_oracle(
    grad: Tensor, x: Tensor, rstd: Tensor, weight: Tensor, *seeds: int
) -> Any:
    dx, dweight = _eager_backward(grad, x, rstd, weight)
    return dx, dropped_in_torch(dx, *seeds), dweight


CASES = (
    Case("rmsnorm", "norm", sizes.ROWS, _rmsnorm, matrices(1, 1), _eager, liger=liger.rms_norm),
    Case(
        "rmsnorm_bwd",
        "norm",
        sizes.ROWS,
        _backward,
        _backward_inputs,
        _eager_backward,
        _autograd,
        liger=liger.rms_norm_backward,
    ),
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
    Case(
        "dropout_rmsnorm",
        "norm",
        sizes.ROWS,
        _dropout,
        _dropout_inputs,
        _eager_dropout,
        oracle=_dropout_oracle,
    ),
    Case(
        "dropout_rmsnorm_bwd",
        "norm",
        sizes.ROWS,
        _dropout_backward,
        _dropout_backward_inputs,
        _eager_dropout_backward,
        _autograd_dropout,
        peers=with_mask,
        oracle=_dropout_backward_oracle,
    ),
)
