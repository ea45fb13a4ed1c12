"""What norms that subtract a mean have in common: statistics, scale and bias, the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonfuser import FusionDefinition

from .case import Draw, Inputs, Size
from .pieces import EPS, spread, total


def image_inputs(draw: Draw, size: Size) -> Inputs:
    """An image, and weight and bias of its channels."""
    return [draw.normal(*size), draw.normal(size[1]), draw.normal(size[1])]


def statistics(fd: FusionDefinition, x: Any, dims: Sequence[int]) -> tuple[Any, Any]:
    """Mean and 1 / deviation over dims."""
    var, mean = fd.ops.var_mean(x, dims=list(dims), correction=0, keepdim=False)
    return mean, fd.ops.rsqrt(fd.ops.add(var, EPS))


def normalised(fd: FusionDefinition, x: Any, mean: Any, rstd: Any, size: Size, at: Any) -> Any:
    """``(x - mean) * rstd``, both spread from the dims ``at``."""
    centered = fd.ops.sub(x, spread(fd, mean, size, at))
    return fd.ops.mul(centered, spread(fd, rstd, size, at))


def affine(fd: FusionDefinition, normal: Any, weight: Any, bias: Any, size: Size, at: Any) -> Any:
    """``normal * weight + bias``, both spread from the dims ``at``."""
    scaled = fd.ops.mul(normal, spread(fd, weight, size, at))
    return fd.ops.add(scaled, spread(fd, bias, size, at))


def _along(fd: FusionDefinition, value: Any, size: Size, dims: Sequence[int]) -> Any:
    """The mean over dims, spread over them again."""
    count = 1
    for dim in dims:
        count *= size[dim]
    mean = fd.ops.mul(total(fd, value, dims), 1.0 / count)
    return spread(fd, mean, size, [d for d in range(len(size)) if d not in dims])


def gradient(
    fd: FusionDefinition, scaled: Any, normal: Any, size: Size, dims: Sequence[int]
) -> Any:
    """The gradient of what was normalised over ``dims``, but for the factor 1 / deviation."""
    along = _along(fd, fd.ops.mul(scaled, normal), size, dims)
    centered = fd.ops.sub(scaled, _along(fd, scaled, size, dims))
    return fd.ops.sub(centered, fd.ops.mul(normal, along))
