"""Sums, maxima and variances over rows, columns, the middle or all dims; a sum with epilogue."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tritonfuser import FusionDefinition

from . import sizes
from .building_blocks import load, matrices, store, total, wide
from .case import Case, Draw, Inputs, Size, Sizes

Tensor = torch.Tensor


def _sum(fd: FusionDefinition, x: Any, dims: list[int]) -> Any:
    return total(fd, x, dims)


def _max(fd: FusionDefinition, x: Any, dims: list[int]) -> Any:
    return fd.ops.max(x, dims=dims)


def _var(fd: FusionDefinition, x: Any, dims: list[int]) -> Any:
    return fd.ops.var(x, dims=dims, correction=1)


Record = Callable[[FusionDefinition, Any, list[int]], Any]


def _reduce(
    record: Record, dims: list[int], fd: FusionDefinition, size: Size, dtype: torch.dtype
) -> None:
    store(fd, record(fd, load(fd, size, dtype), dims), dtype)


OPS: dict[str, tuple[Record, Callable[..., Tensor]]] = {
    "sum": (_sum, torch.sum),
    "max": (_max, torch.amax),
    "var": (_var, torch.var),
}
DIMS: dict[str, tuple[list[int], Sizes]] = {
    "inner": ([1], sizes.ROWS),
    "outer": ([0], sizes.ROWS),
    "all": ([0, 1], sizes.FEW),
    "middle": ([1], sizes.CUBES),
}


def _reductions() -> list[Case]:
    """Each reduction over each set of dims; sums run at more sizes than the others."""
    return [
        Case(
            f"{op}_{place}",
            "reduction",
            sizes.FEW if op != "sum" and where is sizes.ROWS else where,
            partial(_reduce, record, dims),
            matrices(1),
            partial(eager, dim=dims),
        )
        for op, (record, eager) in OPS.items()
        for place, (dims, where) in DIMS.items()
    ]


def _bias_gradient(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """The sum over rows, stored in Float like an accumulated gradient."""
    fd.add_output(total(fd, load(fd, size, dtype), [0]))


def _eager_bias_gradient(grad: Tensor) -> Tensor:
    return wide(grad).sum(0)


def _prepared_bias_gradient(grad: Tensor) -> Callable[[], Tensor]:
    return partial(torch.sum, grad, dim=0, dtype=torch.float32)


def _epilogue(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    sums = total(fd, load(fd, size, dtype), [1])
    scale, bias = load(fd, size[:1], dtype), load(fd, size[:1], dtype)
    store(fd, fd.ops.relu(fd.ops.add(fd.ops.mul(sums, scale), bias)), dtype)


def _epilogue_inputs(draw: Draw, size: Size) -> Inputs:
    return [draw.normal(*size), draw.normal(size[0]), draw.normal(size[0])]


def _eager_epilogue(x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(x.sum(1) * scale + bias)


CASES = (
    *_reductions(),
    Case(
        "bias_grad",
        "reduction",
        sizes.FEW,
        _bias_gradient,
        matrices(1),
        _eager_bias_gradient,
        _prepared_bias_gradient,
    ),
    Case(
        "sum_epilogue",
        "reduction",
        sizes.FEW,
        _epilogue,
        _epilogue_inputs,
        _eager_epilogue,
    ),
)
