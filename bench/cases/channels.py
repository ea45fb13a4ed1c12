"""Batch norm and instance norm of images [N, C, H, W], and their backwards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition

from . import sizes
from .building_blocks import EPS, autograd, load, spread, store, tensor, total
from .case import Case, Draw, Inputs, Run, Size
from .mean_norms import affine, gradient, image_inputs, normalised, statistics

Tensor = torch.Tensor


BATCH = (0, 2, 3)
INSTANCE = (2, 3)


def _kept(dims: Sequence[int]) -> list[int]:
    return [d for d in range(4) if d not in dims]


def _norm(
    dims: Sequence[int], outputs: bool, fd: FusionDefinition, size: Size, dtype: torch.dtype
) -> None:
    x, weight, bias = load(fd, size, dtype), load(fd, size[1:2], dtype), load(fd, size[1:2], dtype)
    mean, rstd = statistics(fd, x, dims)
    normal = normalised(fd, x, mean, rstd, size, _kept(dims))
    store(fd, affine(fd, normal, weight, bias, size, [1]), dtype)
    if outputs:
        fd.add_output(mean)
        fd.add_output(rstd)


def _norm_backward(
    dims: Sequence[int], fd: FusionDefinition, size: Size, dtype: torch.dtype
) -> None:
    grad, x, weight = load(fd, size, dtype), load(fd, size, dtype), load(fd, size[1:2], dtype)
    counts = [size[d] for d in _kept(dims)]
    mean, rstd = (tensor(fd, counts, DataType.Float) for _ in range(2))
    normal = normalised(fd, x, mean, rstd, size, _kept(dims))
    scaled = fd.ops.mul(grad, spread(fd, weight, size, [1]))
    inner = gradient(fd, scaled, normal, size, dims)
    store(fd, fd.ops.mul(inner, spread(fd, rstd, size, _kept(dims))), dtype)
    store(fd, total(fd, fd.ops.mul(grad, normal), BATCH), dtype)
    store(fd, total(fd, grad, BATCH), dtype)


def _norm_backward_inputs(dims: Sequence[int], draw: Draw, size: Size) -> Inputs:
    grad, x, weight = draw.normal(*size), draw.normal(*size), draw.normal(size[1])
    var, mean = torch.var_mean(x.float(), list(dims), correction=0)
    return [grad, x, weight, mean, torch.rsqrt(var + EPS)]


def _eager_batchnorm(x: Tensor, weight: Tensor, bias: Tensor) -> Any:
    return torch.ops.aten.native_batch_norm(x, weight, bias, None, None, True, 0.1, EPS)


def _eager_batchnorm_backward(
    grad: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor
) -> Any:
    return torch.ops.aten.native_batch_norm_backward(
        grad, x, weight, None, None, mean, rstd, True, EPS, [True, True, True]
    )


def _eager_instancenorm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.instance_norm(x, weight=weight, bias=bias, eps=EPS)


def _eager_instancenorm_backward(
    grad: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor
) -> Any:
    """The backward formula, computed in the dtype of ``mean``."""
    wide_grad, across = grad.to(mean.dtype), rstd[:, :, None, None]
    normal = (x - mean[:, :, None, None]) * across
    scaled = wide_grad * weight[:, None, None]
    inner = scaled - scaled.mean(INSTANCE, keepdim=True)
    along = (scaled * normal).mean(INSTANCE, keepdim=True)
    dx = across * (inner - normal * along)
    weights = (wide_grad * normal).sum(BATCH), wide_grad.sum(BATCH)
    return dx.to(x.dtype), *(g.to(x.dtype) for g in weights)


def _autograd_instancenorm(
    grad: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor
) -> Run:
    return autograd(_eager_instancenorm, grad, x, weight, torch.zeros_like(weight))


CASES = (
    Case(
        "batchnorm",
        "norm",
        sizes.IMAGES,
        partial(_norm, BATCH, True),
        image_inputs,
        _eager_batchnorm,
    ),
    Case(
        "batchnorm_bwd",
        "norm",
        sizes.IMAGES,
        partial(_norm_backward, BATCH),
        partial(_norm_backward_inputs, BATCH),
        _eager_batchnorm_backward,
    ),
    Case(
        "instancenorm",
        "norm",
        sizes.IMAGES,
        partial(_norm, INSTANCE, False),
        image_inputs,
        _eager_instancenorm,
    ),
    Case(
        "instancenorm_bwd",
        "norm",
        sizes.IMAGES,
        partial(_norm_backward, INSTANCE),
        partial(_norm_backward_inputs, INSTANCE),
        _eager_instancenorm_backward,
        _autograd_instancenorm,
    ),
)
