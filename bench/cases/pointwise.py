"""Bias and GELU, SiLU and product, scale with bias and ReLU, broadcast sums; and backward."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import FusionDefinition

from . import liger, sizes
from .building_blocks import autograd, load, matrices, over_columns, spread, store, total
from .case import Case, Draw, Inputs, Run, Size

Tensor = torch.Tensor
ROOT = 0.7978845608028654
"""sqrt(2 / pi), a constant of the tanh approximation of GELU."""
CUBIC = 0.044715


def _inner(fd: FusionDefinition, x: Any) -> Any:
    """``tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))``."""
    cube = fd.ops.mul(fd.ops.mul(x, x), x)
    return fd.ops.tanh(fd.ops.mul(ROOT, fd.ops.add(x, fd.ops.mul(CUBIC, cube))))


def _biased(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> Any:
    x = load(fd, size, dtype)
    return fd.ops.add(x, over_columns(fd, load(fd, size[1:], dtype), size))


def _bias_gelu(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    x = _biased(fd, size, dtype)
    store(fd, fd.ops.mul(fd.ops.mul(0.5, x), fd.ops.add(1.0, _inner(fd, x))), dtype)


def _eager_bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(x + bias, approximate="tanh")


def _bias_gelu_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """The gradients of x and of the bias."""
    grad = load(fd, size, dtype)
    x = _biased(fd, size, dtype)
    tanh = _inner(fd, x)
    steep = fd.ops.sub(1.0, fd.ops.mul(tanh, tanh))
    slope = fd.ops.mul(ROOT, fd.ops.add(1.0, fd.ops.mul(3 * CUBIC, fd.ops.mul(x, x))))
    rise = fd.ops.mul(fd.ops.mul(0.5, x), fd.ops.mul(steep, slope))
    dx = fd.ops.mul(grad, fd.ops.add(fd.ops.mul(0.5, fd.ops.add(1.0, tanh)), rise))
    store(fd, dx, dtype)
    store(fd, total(fd, dx, [0]), dtype)


def _eager_bias_gelu_backward(grad: Tensor, x: Tensor, bias: Tensor) -> Any:
    dx = torch.ops.aten.gelu_backward(grad, x + bias, approximate="tanh")
    return dx, dx.sum(0)


def _autograd_bias_gelu(grad: Tensor, x: Tensor, bias: Tensor) -> Run:
    return autograd(_eager_bias_gelu, grad, x, bias)


# --- SwiGLU --------------------------------------------------------------------------------------


def _silu_mul(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    gate, up = load(fd, size, dtype), load(fd, size, dtype)
    store(fd, fd.ops.mul(fd.ops.mul(gate, fd.ops.sigmoid(gate)), up), dtype)


def _eager_silu_mul(gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(gate) * up


def _silu_mul_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    grad, gate, up = (load(fd, size, dtype) for _ in range(3))
    share = fd.ops.sigmoid(gate)
    silu = fd.ops.mul(gate, share)
    slope = fd.ops.mul(share, fd.ops.add(1.0, fd.ops.sub(gate, silu)))
    store(fd, fd.ops.mul(fd.ops.mul(grad, up), slope), dtype)
    store(fd, fd.ops.mul(grad, silu), dtype)


def _eager_silu_mul_backward(grad: Tensor, gate: Tensor, up: Tensor) -> Any:
    return torch.ops.aten.silu_backward(grad * up, gate), grad * F.silu(gate)


def _autograd_silu_mul(grad: Tensor, gate: Tensor, up: Tensor) -> Run:
    return autograd(_eager_silu_mul, grad, gate, up)


# --- scale, bias, ReLU: the scale belongs to a norm that is frozen -------------------------------


def _scaled(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> tuple[Any, Any]:
    x, scale, bias = load(fd, size, dtype), load(fd, size[1:], dtype), load(fd, size[1:], dtype)
    across = over_columns(fd, scale, size)
    return fd.ops.add(fd.ops.mul(x, across), over_columns(fd, bias, size)), across


def _scale_bias_relu(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    store(fd, fd.ops.relu(_scaled(fd, size, dtype)[0]), dtype)


def _eager_scale_bias_relu(x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(x * scale + bias)


def _scale_bias_relu_backward(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    """The gradient of x, computed from the forward's result."""
    grad, out, scale = load(fd, size, dtype), load(fd, size, dtype), load(fd, size[1:], dtype)
    passed = fd.ops.where(fd.ops.gt(out, 0.0), grad, 0.0)
    store(fd, fd.ops.mul(passed, over_columns(fd, scale, size)), dtype)


def _relu_inputs(draw: Draw, size: Size) -> Inputs:
    return [draw.normal(*size), draw.normal(*size).relu_(), draw.normal(size[1])]


def _eager_scale_bias_relu_backward(grad: Tensor, out: Tensor, scale: Tensor) -> Any:
    return torch.ops.aten.threshold_backward(grad, out, 0) * scale


# --- [N, 1, C] + [1, M, C] -----------------------------------------------------------------------


def _broadcast_add(fd: FusionDefinition, size: Size, dtype: torch.dtype) -> None:
    n, m, c = size
    left, right = load(fd, (n, c), dtype), load(fd, (m, c), dtype)
    store(fd, fd.ops.add(spread(fd, left, size, [0, 2]), spread(fd, right, size, [1, 2])), dtype)


def _broadcast_inputs(draw: Draw, size: Size) -> Inputs:
    n, m, c = size
    return [draw.normal(n, c), draw.normal(m, c)]


def _eager_broadcast_add(left: Tensor, right: Tensor) -> Tensor:
    return left[:, None] + right[None]


CASES = (
    Case("bias_gelu", "pointwise", sizes.ROWS, _bias_gelu, matrices(1, 1), _eager_bias_gelu),
    Case(
        "bias_gelu_bwd",
        "pointwise",
        sizes.ROWS,
        _bias_gelu_backward,
        matrices(2, 1),
        _eager_bias_gelu_backward,
        _autograd_bias_gelu,
    ),
    Case(
        "silu_mul",
        "pointwise",
        sizes.ROWS,
        _silu_mul,
        matrices(2),
        _eager_silu_mul,
        liger=liger.silu_mul,
    ),
    Case(
        "silu_mul_bwd",
        "pointwise",
        sizes.ROWS,
        _silu_mul_backward,
        matrices(3),
        _eager_silu_mul_backward,
        _autograd_silu_mul,
        liger=liger.silu_mul_backward,
    ),
    Case(
        "scale_bias_relu",
        "pointwise",
        sizes.ROWS,
        _scale_bias_relu,
        matrices(1, 2),
        _eager_scale_bias_relu,
    ),
    Case(
        "scale_bias_relu_bwd",
        "pointwise",
        sizes.ROWS,
        _scale_bias_relu_backward,
        _relu_inputs,
        _eager_scale_bias_relu_backward,
    ),
    Case(
        "broadcast_add",
        "pointwise",
        sizes.SUMS,
        _broadcast_add,
        _broadcast_inputs,
        _eager_broadcast_add,
    ),
)
