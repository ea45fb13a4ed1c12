"""Shared parts of norms that subtract a mean: statistics, scale and bias, the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonfuser import FusionDefinition

from .building_blocks import EPS, spread, total
from .case import Draw, Inputs, Size


def image_inputs(draw: Draw, size: Size) -> Inputs:
    """Inputs: an image, and one weight and bias per channel."""
    return [draw.normal(*size), draw.normal(size[1]), draw.normal(size[1])]


def statistics(fd: FusionDefinition, x: Any, dims: Sequence[int]) -> tuple[Any, Any]:
    """Mean and 1 / standard deviation over ``dims``."""
    var, mean = fd.ops.var_mean(x, dims=list(dims), correction=0, keepdim=False)
    return mean, fd.ops.rsqrt(fd.ops.add(var, EPS))


def normalised(fd: FusionDefinition, x: Any, mean: Any, rstd: Any, size: Size, at: Any) -> Any:
    """``(x - mean) * rstd``; mean and rstd have the dims ``at`` and are broadcast."""
    centered = fd.ops.sub(x, spread(fd, mean, size, at))
    return fd.ops.mul(centered, spread(fd, rstd, size, at))


def affine(fd: FusionDefinition, normal: Any, weight: Any, bias: Any, size: Size, at: Any) -> Any:
    """``normal * weight + bias``; weight and bias have the dims ``at`` and are broadcast."""
    scaled = fd.ops.mul(normal, spread(fd, weight, size, at))
    return fd.ops.add(scaled, spread(fd, bias, size, at))


def _along(fd: FusionDefinition, value: Any, size: Size, dims: Sequence[int]) -> Any:
    """The mean over ``dims``, broadcast back to the input shape."""
    count = 1
    for dim in dims:
        count *= size[dim]
    mean = fd.ops.mul(total(fd, value, dims), 1.0 / count)
    return spread(fd, mean, size, [d for d in range(len(size)) if d not in dims])


def gradient(
    fd: FusionDefinition, scaled: Any, normal: Any, size: Size, dims: Sequence[int]
) -> Any:
    """The input gradient of a norm over ``dims``, without the factor 1 / standard deviation."""
    along = _along(fd, fd.ops.mul(scaled, normal), size, dims)
    centered = fd.ops.sub(scaled, _along(fd, scaled, size, dims))
    return fd.ops.sub(centered, fd.ops.mul(normal, along))
