"""The benchmark cases as data: a definition, its inputs, and what eager torch does instead.

Definitions are written as Lightning Thunder records them: 16-bit tensors in, a cast to Float, the
arithmetic, a cast back. The inputs of a backward are what torch's own backward takes, so that
both are timed on the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition

SHAPES = ((2048, 4096), (8192, 8192), (16384, 20480))
EPS = 1e-5
FROM_TORCH = {torch.bfloat16: DataType.BFloat16, torch.float32: DataType.Float}

Shape = tuple[int, int]
Run = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes
    ----------
    name : str
    define : callable
        ``(fd, shape, dtype)``: records the case.
    inputs : callable
        ``(shape, dtype, device) -> list[Tensor]``.
    eager : callable
        ``inputs -> result(s)`` in torch; what torch.compile gets, and with ``float64`` inputs the
        reference.
    prepare : callable, optional
        ``inputs -> thunk``, where eager's best is not ``eager`` itself: an autograd backward.
    """

    name: str
    define: Callable[[FusionDefinition, Shape, torch.dtype], None]
    inputs: Callable[[Shape, torch.dtype, str], list[torch.Tensor]]
    eager: Callable[..., Any]
    prepare: Callable[..., Run] | None = None

    def record(self, shape: Shape, dtype: torch.dtype) -> FusionDefinition:
        with FusionDefinition() as fd:
            self.define(fd, shape, dtype)
        return fd

    def eager_run(self, inputs: list[torch.Tensor]) -> Run:
        """Eager torch on these inputs, ready to be timed."""
        return self.prepare(*inputs) if self.prepare else partial(self.eager, *inputs)


# --- pieces of definitions ---------------------------------------------------------------------


def _tensor(fd: FusionDefinition, shape: tuple[int, ...], dtype: DataType) -> Any:
    contiguity = [None if size == 1 else True for size in shape]
    return fd.define_tensor(shape=list(shape), contiguity=contiguity, dtype=dtype)


def _load(fd: FusionDefinition, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
    return fd.ops.cast(_tensor(fd, shape, FROM_TORCH[dtype]), dtype=DataType.Float)


def _store(fd: FusionDefinition, value: Any, dtype: torch.dtype) -> None:
    fd.add_output(fd.ops.cast(value, dtype=FROM_TORCH[dtype]))


def _over_rows(fd: FusionDefinition, value: Any, shape: Shape) -> Any:
    """A vector of one number a row, spread over the columns."""
    column = fd.ops.broadcast(value, is_broadcast_dim=[False, True])
    return fd.ops.expand(column, shape=list(shape))


def _over_columns(fd: FusionDefinition, value: Any, shape: Shape) -> Any:
    row = fd.ops.broadcast(value, is_broadcast_dim=[True, False])
    return fd.ops.expand(row, shape=list(shape))


def _row_mean(fd: FusionDefinition, value: Any, shape: Shape) -> Any:
    total = fd.ops.sum(value, dims=[1], dtype=DataType.Float)
    return fd.ops.mul(total, 1.0 / shape[1])


# --- softmax -----------------------------------------------------------------------------------


def _softmax(fd: FusionDefinition, shape: Shape, dtype: torch.dtype) -> None:
    x = _load(fd, shape, dtype)
    shifted = fd.ops.sub(x, _over_rows(fd, fd.ops.max(x, dims=[1]), shape))
    exps = fd.ops.exp(shifted)
    total = fd.ops.sum(exps, dims=[1], dtype=DataType.Float)
    _store(fd, fd.ops.mul(exps, _over_rows(fd, fd.ops.reciprocal(total), shape)), dtype)


def _softmax_backward(fd: FusionDefinition, shape: Shape, dtype: torch.dtype) -> None:
    grad, out = _load(fd, shape, dtype), _load(fd, shape, dtype)
    product = fd.ops.mul(grad, out)
    total = fd.ops.sum(product, dims=[1], dtype=DataType.Float)
    _store(fd, fd.ops.sub(product, fd.ops.mul(out, _over_rows(fd, total, shape))), dtype)


def _eager_softmax_backward(grad: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._softmax_backward_data(grad, out, -1, out.dtype)


# --- layernorm ---------------------------------------------------------------------------------


def _layernorm(fd: FusionDefinition, shape: Shape, dtype: torch.dtype) -> None:
    x = _load(fd, shape, dtype)
    weight, bias = (_load(fd, shape[1:], dtype) for _ in range(2))
    var, mean = fd.ops.var_mean(x, dims=[1], correction=0, keepdim=False)
    rstd = fd.ops.rsqrt(fd.ops.add(var, EPS))
    normal = fd.ops.mul(fd.ops.sub(x, _over_rows(fd, mean, shape)), _over_rows(fd, rstd, shape))
    scaled = fd.ops.mul(normal, _over_columns(fd, weight, shape))
    _store(fd, fd.ops.add(scaled, _over_columns(fd, bias, shape)), dtype)
    fd.add_output(mean)
    fd.add_output(rstd)


def _eager_layernorm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> Any:
    out, mean, rstd = torch.ops.aten.native_layer_norm(x, x.shape[1:], weight, bias, EPS)
    return out, mean[:, 0], rstd[:, 0]


def _layernorm_backward(fd: FusionDefinition, shape: Shape, dtype: torch.dtype) -> None:
    grad, x = _load(fd, shape, dtype), _load(fd, shape, dtype)
    mean, rstd = (_tensor(fd, (shape[0], 1), DataType.Float) for _ in range(2))
    weight = _load(fd, shape[1:], dtype)
    spread = fd.ops.expand(rstd, shape=list(shape))
    normal = fd.ops.mul(fd.ops.sub(x, fd.ops.expand(mean, shape=list(shape))), spread)
    scaled = fd.ops.mul(grad, _over_columns(fd, weight, shape))
    along = _over_rows(fd, _row_mean(fd, fd.ops.mul(scaled, normal), shape), shape)
    offset = _over_rows(fd, _row_mean(fd, scaled, shape), shape)
    inner = fd.ops.sub(fd.ops.sub(scaled, offset), fd.ops.mul(normal, along))
    _store(fd, fd.ops.mul(spread, inner), dtype)
    _store(fd, fd.ops.sum(fd.ops.mul(grad, normal), dims=[0], dtype=DataType.Float), dtype)
    _store(fd, fd.ops.sum(grad, dims=[0], dtype=DataType.Float), dtype)


def _layernorm_backward_inputs(shape: Shape, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    grad, x, weight = _matrices(2, 1)(shape, dtype, device)
    var, mean = torch.var_mean(x.float(), 1, correction=0, keepdim=True)
    return [grad, x, mean, torch.rsqrt(var + EPS), weight]


def _eager_layernorm_backward(
    grad: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor, w: torch.Tensor
) -> Any:
    return torch.ops.aten.native_layer_norm_backward(
        grad, x, x.shape[1:], mean, rstd, w, w, [True, True, True]
    )


# --- rmsnorm -----------------------------------------------------------------------------------


def _rmsnorm(fd: FusionDefinition, shape: Shape, dtype: torch.dtype) -> None:
    x = _load(fd, shape, dtype)
    weight = _load(fd, shape[1:], dtype)
    rstd = fd.ops.rsqrt(fd.ops.add(_row_mean(fd, fd.ops.pow(x, 2.0), shape), EPS))
    normal = fd.ops.mul(x, _over_rows(fd, rstd, shape))
    _store(fd, fd.ops.mul(normal, _over_columns(fd, weight, shape)), dtype)


def _eager_rmsnorm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, x.shape[1:], weight, EPS)


def _rmsnorm_backward(fd: FusionDefinition, shape: Shape, dtype: torch.dtype) -> None:
    grad, x = _load(fd, shape, dtype), _load(fd, shape, dtype)
    rstd = _tensor(fd, (shape[0], 1), DataType.Float)
    weight = _load(fd, shape[1:], dtype)
    spread = fd.ops.expand(rstd, shape=list(shape))
    normal = fd.ops.mul(x, spread)
    scaled = fd.ops.mul(grad, _over_columns(fd, weight, shape))
    along = _over_rows(fd, _row_mean(fd, fd.ops.mul(scaled, normal), shape), shape)
    _store(fd, fd.ops.mul(spread, fd.ops.sub(scaled, fd.ops.mul(normal, along))), dtype)
    _store(fd, fd.ops.sum(fd.ops.mul(grad, normal), dims=[0], dtype=DataType.Float), dtype)


def _rmsnorm_backward_inputs(shape: Shape, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    grad, x, weight = _matrices(2, 1)(shape, dtype, device)
    return [grad, x, torch.rsqrt(x.float().pow(2).mean(1, keepdim=True) + EPS), weight]


def _eager_rmsnorm_backward(
    grad: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, weight: torch.Tensor
) -> Any:
    """The formula, in the dtype of ``rstd``: what torch.compile makes of a composite rms_norm."""
    wide = rstd.dtype
    normal = x.to(wide) * rstd
    scaled = grad.to(wide) * weight.to(wide)
    dx = rstd * (scaled - normal * (scaled * normal).mean(1, keepdim=True))
    return dx.to(x.dtype), (grad.to(wide) * normal).sum(0).to(x.dtype)


def _autograd_rmsnorm(
    grad: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, weight: torch.Tensor
) -> Run:
    """torch.nn.functional.rms_norm's backward alone; it keeps what it needs of the forward."""
    x, weight = (t.detach().requires_grad_() for t in (x, weight))
    out = F.rms_norm(x, x.shape[1:], weight, EPS)
    return partial(torch.autograd.grad, out, (x, weight), grad, retain_graph=True)


# --- pointwise and sums ------------------------------------------------------------------------


def _bias_gelu(fd: FusionDefinition, shape: Shape, dtype: torch.dtype) -> None:
    x = _load(fd, shape, dtype)
    x = fd.ops.add(x, _over_columns(fd, _load(fd, shape[1:], dtype), shape))
    cube = fd.ops.mul(fd.ops.mul(x, x), x)
    inner = fd.ops.mul(0.7978845608028654, fd.ops.add(x, fd.ops.mul(0.044715, cube)))
    _store(fd, fd.ops.mul(fd.ops.mul(0.5, x), fd.ops.add(1.0, fd.ops.tanh(inner))), dtype)


def _eager_bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.gelu(x + bias, approximate="tanh")


def _sum(dim: int, fd: FusionDefinition, shape: Shape, dtype: torch.dtype) -> None:
    _store(fd, fd.ops.sum(_load(fd, shape, dtype), dims=[dim], dtype=DataType.Float), dtype)


def _matrices(
    matrices: int, vectors: int = 0
) -> Callable[[Shape, torch.dtype, str], list[torch.Tensor]]:
    """Random matrices of the shape, then vectors as long as a row."""

    def make(shape: Shape, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
        sizes = [shape] * matrices + [shape[1:]] * vectors
        return [torch.randn(size, dtype=dtype, device=device) for size in sizes]

    return make


def _softmax_backward_inputs(shape: Shape, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    grad, x = _matrices(2)(shape, dtype, device)
    return [grad, torch.softmax(x, -1)]


CASES = (
    Case("softmax", _softmax, _matrices(1), partial(torch.softmax, dim=-1)),
    Case("softmax_bwd", _softmax_backward, _softmax_backward_inputs, _eager_softmax_backward),
    Case("layernorm", _layernorm, _matrices(1, 2), _eager_layernorm),
    Case(
        "layernorm_bwd",
        _layernorm_backward,
        _layernorm_backward_inputs,
        _eager_layernorm_backward,
    ),
    Case("rmsnorm", _rmsnorm, _matrices(1, 1), _eager_rmsnorm),
    Case(
        "rmsnorm_bwd",
        _rmsnorm_backward,
        _rmsnorm_backward_inputs,
        _eager_rmsnorm_backward,
        _autograd_rmsnorm,
    ),
    Case("bias_gelu", _bias_gelu, _matrices(1, 1), _eager_bias_gelu),
    Case("sum_inner", partial(_sum, 1), _matrices(1), partial(torch.sum, dim=1)),
    Case("sum_outer", partial(_sum, 0), _matrices(1), partial(torch.sum, dim=0)),
)
BY_NAME = {case.name: case for case in CASES}
