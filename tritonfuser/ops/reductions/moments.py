"""Rows of the statistics: welford, and var and var_mean written in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ...dtypes import REDUCED_FLOATS, Category, DataType, real_dtype
from ...ir import Dim, TensorType, Value
from ...symbolic.queries import assume_equal, assume_max
from ...symbolic.sizes import is_size
from ..complex import pairs
from ..forms import Composite, Moments
from ..parameters import Kind, Param
from ..shape_rules import fail, flags, reduced_dims, with_attrs, without
from ..table import Call, Op

_DIMS = (Param("arg", Kind.TENSOR), Param("dims", Kind.DIMS))
_VAR_PARAMS = (*_DIMS, Param("correction", Kind.INT, 1), Param("keepdim", Kind.BOOL, False))


def _record(builder: Any, call: Call) -> Any:
    arg = call.value("arg").tensor
    _check_dtype(call, arg.dtype)
    if not arg.rank:
        raise fail(call.op.name, "a tensor with dims", "a 0-dim tensor")
    correction = call.attrs.get("correction", 0)
    if isinstance(correction, int) and correction < 0:
        raise fail(call.op.name, "a correction of 0 and more", correction)
    return builder.append(with_attrs(call, dims=reduced_dims(call, arg.rank)))


def _check_dtype(call: Call, dtype: DataType) -> None:
    if dtype in REDUCED_FLOATS:
        raise fail(
            call.op.name,
            "a Float or Double tensor",
            dtype,
            "Cast to DataType.Float first: the sum of squares needs its range.",
        )
    if dtype.info.category < Category.FLOAT:
        raise fail(call.op.name, "a floating-point tensor", dtype)


def _infer_welford(call: Call) -> tuple[TensorType, ...]:
    arg = call.value("arg").tensor
    dims = without(arg.dims, call.dims())
    squares = TensorType(dims, real_dtype(arg.dtype))
    return TensorType(dims, arg.dtype), squares, TensorType(dims, DataType.Int)


def _kept_dims(call: Call) -> tuple[Dim, ...]:
    dims = call.value("arg").tensor.dims
    if not call.attrs["keepdim"]:
        return without(dims, call.dims())
    gone = call.dims()
    return tuple(Dim(1) if place in gone else dim for place, dim in enumerate(dims))


def _infer_var(call: Call) -> tuple[TensorType, ...]:
    dims = _kept_dims(call)
    dtype = real_dtype(call.value("arg").dtype)
    return (TensorType(dims, dtype),)


def _infer_var_mean(call: Call) -> tuple[TensorType, ...]:
    (var,) = _infer_var(call)
    return var, TensorType(var.dims, call.value("arg").dtype)


# --- var and var_mean in terms of welford ----------------------------------------------------


def _expand_var(ops: Any, arg: Value, dims: Sequence[int], correction: int, keepdim: bool) -> Value:
    """``var(x)`` -> ``div(welford(x).var_sum, max(n - correction, 0))``."""
    return _expand_var_mean(ops, arg, dims, correction, keepdim)[0]


def _expand_var_mean(
    ops: Any, arg: Value, dims: Sequence[int], correction: int, keepdim: bool
) -> tuple[Value, Value]:
    average, squares, _ = ops.welford(arg, list(dims))
    count = math.prod(arg.tensor.sizes[d] for d in dims)
    # 0 / 0 = nan is torch's variance of too few elements.
    degrees = assume_max(count - correction, 0)
    var = ops.div(squares, degrees if is_size(degrees) else float(degrees))
    mean = ops.div(average, 0.0) if assume_equal(count, 0) else ops.set(average)
    if keepdim:
        new = flags(dims, arg.tensor.rank)
        return ops.broadcast(var, new), ops.broadcast(mean, new)
    return var, mean


# --- torch references ----------------------------------------------------------------------


def _welford(
    arg: torch.Tensor, dims: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean, sum of squared deviations and count; over no elements all are 0."""
    places = sorted(d % arg.dim() for d in dims)
    count = math.prod(arg.shape[d] for d in places)
    mean = torch.sum(arg, places, keepdim=True) / max(count, 1)
    squares = torch.sum((arg - mean).abs() ** 2, places)
    mean = torch.sum(mean, places)
    return mean, squares, torch.full(mean.shape, count, dtype=torch.int64, device=arg.device)


def _var(
    arg: torch.Tensor, dims: Sequence[int], correction: int = 1, keepdim: bool = False
) -> torch.Tensor:
    return torch.var(arg, list(dims), correction=correction, keepdim=keepdim)


def _var_mean(
    arg: torch.Tensor, dims: Sequence[int], correction: int = 1, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    var, mean = torch.var_mean(arg, list(dims), correction=correction, keepdim=keepdim)
    return var, mean


ROWS: tuple[Op, ...] = (
    Op(
        "welford",
        _DIMS,
        "Mean, sum of squared deviations from it, and number of elements over dims.",
        "reduction",
        Moments(),
        _infer_welford,
        _welford,
        _record,
        complex=pairs.welford,
        results=("avg", "var_sum", "n"),
    ),
    Op(
        "var",
        _VAR_PARAMS,
        "Variance over dims: squared deviations divided by max(n - correction, 0).",
        "reduction",
        Composite(_expand_var),
        _infer_var,
        _var,
        _record,
    ),
    Op(
        "var_mean",
        _VAR_PARAMS,
        "Variance, divided by max(n - correction, 0), and mean over dims.",
        "reduction",
        Composite(_expand_var_mean),
        _infer_var_mean,
        _var_mean,
        _record,
        results=("var", "mean"),
    ),
)
