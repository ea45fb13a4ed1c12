"""Group norm and SiLU of images [N, C, H, W], and the backward."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch

from . import liger, sizes
from .building_blocks import EPS, autograd, load, spread, store, tensor, total
from .case import Case, Draw, Inputs, Run, Size
from .mean_norms import affine, gradient, image_inputs, normalised, statistics

Tensor = torch.Tensor
GROUPS = 32
GROUP = (2, 3, 4)


def _grouped(size: Size) -> Size:
    return (size[0], GROUPS, size[1] // GROUPS, *size[2:])


def _load_grouped(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> Any:
    given = tensor(fd, size, from_torch(dtype))
    return fd.ops.cast(fd.ops.reshape(given, list(_grouped(size))), DataType.Float)


def _load_weight(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> Any:
    return fd.ops.reshape(load(fd, size[1:2], dtype), list(_grouped(size)[1:3]))


def _store_flat(fd: FusionDefinition, value: Any, shape: Size, dtype: torch.dtype) -> None:
    store(fd, fd.ops.reshape(value, list(shape)), dtype)


def _groupnorm(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    x = _load_grouped(fd, size, dtype)
    weight, bias = (_load_weight(fd, size, dtype) for _ in range(2))
    shape = _grouped(size)
    mean, rstd = statistics(fd, x, GROUP)
    normal = normalised(fd, x, mean, rstd, shape, [0, 1])
    out = affine(fd, normal, weight, bias, shape, [1, 2])
    _store_flat(fd, fd.ops.mul(out, fd.ops.sigmoid(out)), size, dtype)


def _eager_groupnorm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.silu(F.group_norm(x, GROUPS, weight, bias, EPS))


def _groupnorm_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    grad, x = _load_grouped(fd, size, dtype), _load_grouped(fd, size, dtype)
    weight, bias = (_load_weight(fd, size, dtype) for _ in range(2))
    shape = _grouped(size)
    mean, rstd = (tensor(fd, (*size[:1], GROUPS), DataType.Float) for _ in range(2))
    normal = normalised(fd, x, mean, rstd, shape, [0, 1])
    out = affine(fd, normal, weight, bias, shape, [1, 2])
    share = fd.ops.sigmoid(out)
    slope = fd.ops.add(fd.ops.mul(out, fd.ops.sub(1.0, share)), 1.0)
    inner = fd.ops.mul(grad, fd.ops.mul(share, slope))
    scaled = fd.ops.mul(inner, spread(fd, weight, shape, [1, 2]))
    dx = fd.ops.mul(gradient(fd, scaled, normal, shape, GROUP), spread(fd, rstd, shape, [0, 1]))
    _store_flat(fd, dx, size, dtype)
    _store_flat(fd, total(fd, fd.ops.mul(inner, normal), (0, 3, 4)), size[1:2], dtype)
    _store_flat(fd, total(fd, inner, (0, 3, 4)), size[1:2], dtype)


def _groupnorm_backward_inputs(draw: Draw, size: Size) -> Inputs:
    grad, x = draw.normal(*size), draw.normal(*size)
    weights = [draw.normal(size[1]) for _ in range(2)]
    rows = x.float().reshape(size[0], GROUPS, -1)
    var, mean = torch.var_mean(rows, 2, correction=0)
    return [grad, x, *weights, mean, torch.rsqrt(var + EPS)]


def _eager_groupnorm_backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, rstd: Tensor
) -> Any:
    """The backward formula, computed in the dtype of ``mean``."""
    shape = _grouped(tuple(x.shape))
    at = mean.reshape(*mean.shape, 1, 1, 1), rstd.reshape(*rstd.shape, 1, 1, 1)
    normal = (x.to(mean.dtype).reshape(shape) - at[0]) * at[1]
    scale = weight.to(mean.dtype).reshape(*shape[1:3], 1, 1)
    out = normal * scale + bias.to(mean.dtype).reshape(*shape[1:3], 1, 1)
    share = torch.sigmoid(out)
    inner = grad.to(mean.dtype).reshape(shape) * share * (1 + out * (1 - share))
    scaled = inner * scale
    along = (scaled * normal).mean(GROUP, keepdim=True)
    dx = at[1] * (scaled - scaled.mean(GROUP, keepdim=True) - normal * along)
    weights = (inner * normal).sum((0, 3, 4)), inner.sum((0, 3, 4))
    return dx.reshape(x.shape).to(x.dtype), *(g.reshape(-1).to(x.dtype) for g in weights)


def _autograd_groupnorm(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, rstd: Tensor
) -> Run:
    return autograd(_eager_groupnorm, grad, x, weight, bias)


CASES = (
    Case(
        "groupnorm_silu",
        "norm",
        sizes.IMAGES,
        _groupnorm,
        image_inputs,
        _eager_groupnorm,
        liger=partial(liger.group_norm_silu, GROUPS),
    ),
    Case(
        "groupnorm_silu_bwd",
        "norm",
        sizes.IMAGES,
        _groupnorm_backward,
        _groupnorm_backward_inputs,
        _eager_groupnorm_backward,
        _autograd_groupnorm,
        liger=partial(liger.group_norm_silu_backward, GROUPS),
    ),
)
